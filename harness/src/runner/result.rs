//! The result of one invocation of the agent.

use std::collections::BTreeSet;

use squall_journal::record::{ExchangeRecord, Outcome, RuleRecord};
use squall_journal::redact::Redactor;

use super::no_fault::NoFault;
use crate::agents::conversation::{ConversationTally, FAMILY, PLACE};
use crate::agents::{AskError, ConversationFaultMode, InvocationPlace, ResetError};
use crate::answer::{AgentAnswer, AgentConversation};
use crate::count::count;
use crate::invariants::Active;
use crate::prompt::Prompt;
use crate::reach::{Seen, TapeCounts};
use crate::report::{call_name, is_delay};
use crate::run::EvidenceRecord;
use crate::trace::Trace;

/// Longest text that is kept as evidence, in bytes.
const KEPT: usize = 64 << 10;

/// The answer and the traffic of one invocation.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct InvocationResult {
    pub(super) answer: AgentAnswer,
    /// All its conversations; empty if there is only one.
    pub(super) conversations: Vec<AgentConversation>,
    pub(super) trace: Trace,
    pub(super) faults_applied: u64,
    /// The first applied fault of its conversations; `None`: there is none.
    pub(super) conversation_fault: Option<ConversationFaultMode>,
    /// Why no fault was applied, or a fault of the conversation was not; `None`: otherwise, or the agent was not
    /// called.
    pub(super) no_fault: Option<NoFault>,
    /// The families of the applied rules.
    pub(super) families: BTreeSet<String>,
    pub(super) applied: Active,
    pub(super) exchanges: Vec<String>,
    /// What its tape did; `None`: it had none.
    pub(super) tape: Option<TapeCounts>,
    /// Whether all traffic of the invocation was seen to its end.
    pub(super) is_complete: bool,
    /// Why the invocation cannot be judged.
    pub(super) wrong: Option<String>,
    /// Set if the agent could not be reached.
    pub(super) unreachable: Option<AskError>,
    pub(super) place: InvocationPlace,
    /// Whether the agent was not called because the time of its level of load was over.
    pub(super) is_left_out: bool,
    /// Whether its calls cannot be told from those of other invocations, so that there are none in `trace`.
    pub(super) is_unseen: bool,
}

impl InvocationResult {
    /// The result if the reset failed, so that the agent was not called.
    pub(super) fn not_reset(error: ResetError) -> Self {
        let wrong = Some(error.to_string());
        let unreachable = match error {
            ResetError::NotThere(absent) => Some(absent),
            ResetError::Refused { .. }
            | ResetError::Unanswered { .. }
            | ResetError::Failed { .. } => None,
        };
        Self {
            wrong,
            unreachable,
            is_complete: true,
            ..Self::default()
        }
    }

    /// The result if the time of its level of load was over before it began.
    pub(super) fn left_out() -> Self {
        Self {
            wrong: Some("the level's time was over before it began".to_owned()),
            is_complete: true,
            is_left_out: true,
            ..Self::default()
        }
    }

    /// The result for an answer alone.
    pub(super) fn unseen(answer: Result<AgentAnswer, AskError>, place: InvocationPlace) -> Self {
        Self {
            no_fault: None,
            is_unseen: true,
            ..Self::new(answer, Seen::default(), place)
        }
    }

    /// The result for the agent's answer and the traffic of the invocation.
    pub(super) fn new(
        answer: Result<AgentAnswer, AskError>,
        seen: Seen,
        place: InvocationPlace,
    ) -> Self {
        let mut result = Self {
            faults_applied: seen.applied().count() as u64,
            families: seen.applied().map(|rule| rule.family.clone()).collect(),
            applied: Active::applied(seen.applied()),
            exchanges: (seen.exchanges.iter())
                .map(|one| one.record.id.clone())
                .collect(),
            tape: seen.tape.clone(),
            is_complete: seen.is_complete(),
            place,
            ..Self::default()
        };
        match answer {
            Ok(answer) => result.answer = answer,
            // The agent became unreachable in the middle of a conversation under a fault. The invariants decide
            // whether that is a failure.
            Err(error @ AskError::Unreachable { .. }) if result.faults_applied > 0 => {
                result.answer.error = Some(error.to_string());
                result.unreachable = Some(error);
            }
            // An unreachable agent is not a failed agent.
            Err(error) => {
                result.wrong = Some(error.to_string());
                result.unreachable = Some(error).filter(AskError::is_absence);
            }
        }
        result.no_fault = NoFault::of(&seen, result.failure());
        result.trace = Trace::of(seen);
        result
    }

    /// Adds the faults of its conversations.
    pub(super) fn add_conversation_faults(&mut self, tally: &ConversationTally) {
        if let Some(first) = tally.applied.first() {
            self.conversation_fault = Some(*first);
            self.faults_applied += tally.applied.len() as u64;
            self.families.insert(FAMILY.to_owned());
            self.applied.conversation = true;
            self.no_fault = None;
        }
        if let Some(why) = tally.not_applied.first() {
            let why = why.clone();
            self.no_fault = Some(NoFault::Conversation { why });
        }
    }

    /// Why there is no answer that can be judged.
    pub(super) fn failure(&self) -> Option<&str> {
        self.wrong.as_deref().or(self.answer.error.as_deref())
    }

    /// The first call that could not reach its upstream, with the error.
    pub(super) fn upstream_unreachable(&self) -> Option<String> {
        let mut records = self.records();
        let record = records.find(|record| is_unreachable(record))?;
        let why = record.error.as_deref().unwrap_or("no reason is recorded");
        Some(format!(
            "upstream unreachable: {}: {why}",
            call_name(record)
        ))
    }

    /// What else a replay lacked than the agent: recorded responses, or upstreams.
    pub(super) fn beside_the_tape(&self) -> impl Iterator<Item = String> {
        let missed = self.tape.as_ref().map(|tape| tape.missed);
        let missed = missed.filter(|missed| *missed > 0);
        let missed =
            missed.map(|missed| format!("{} had no recorded response", count(missed, "call")));
        let unreachable = self.tape.as_ref().and_then(|_| self.upstream_unreachable());
        missed.into_iter().chain(unreachable)
    }

    /// The last failed response of the tape and its call, or else what the tape lacked.
    fn failed_response(&self) -> Option<(String, Option<String>)> {
        self.tape.as_ref()?;
        let failed = self.records().rev().find_map(|record| {
            let what = match record.status {
                _ if record.outcome == Outcome::Denied => return None,
                _ if is_unreachable(record) => return None,
                Some(status @ 400..) => format!("recorded {status}"),
                _ if record.outcome != Outcome::UpstreamError => return None,
                Some(_) => "recorded abort".to_owned(),
                None => "recorded absence of a response".to_owned(),
            };
            Some((what, Some(call_name(record))))
        });
        failed.or_else(|| Some((self.beside_the_tape().next()?, None)))
    }

    /// Whether the proxy saw a call of this invocation.
    pub(super) fn was_seen(&self) -> bool {
        !self.exchanges.is_empty()
    }

    /// The last exchange that failed because of a fault; else the first that was more than delayed; else the first
    /// that was delayed.
    fn cause(&self) -> Option<&ExchangeRecord> {
        let hit = self.records().filter(|record| fault(record).is_some());
        let first = hit
            .clone()
            .min_by_key(|record| fault(record).is_some_and(is_delay));
        let mut failed = hit.filter(|record| record.status.is_none_or(|status| status >= 400));
        failed.next_back().or(first)
    }

    /// The exchanges, oldest first.
    pub(super) fn records(&self) -> impl DoubleEndedIterator<Item = &ExchangeRecord> + Clone {
        let attempts = self.trace.attempts().iter();
        attempts.map(|attempt| &self.trace.exchange(attempt).record)
    }

    /// The evidence to keep, with secrets removed. `decisive`: the exchange that the invariant found.
    pub(super) fn evidence(&self, prompt: &Prompt, decisive: Option<String>) -> EvidenceRecord {
        let cause = self.cause();
        let telling = decisive.or_else(|| cause.map(|record| record.id.clone()));
        let found = self
            .records()
            .find(|record| Some(&record.id) == telling.as_ref());
        let hit = found.filter(|record| fault(record).is_some()).or(cause);
        let fault = hit.and_then(fault).map(|rule| rule.mode.clone());
        let call = hit.or(found).map(call_name);
        let (fault, call) = match self.failed_response().filter(|_| fault.is_none()) {
            Some((fault, on)) => (Some(fault), on.or(call)),
            None => (fault, call),
        };
        let (fault, call) = match self.conversation_fault.filter(|_| fault.is_none()) {
            Some(mode) => (Some(mode.as_str().to_owned()), Some(PLACE.to_owned())),
            None => (fault, call),
        };
        let has_answer = self.answer.error.is_none() || !self.answer.text.is_empty();
        let has_answer = has_answer && self.wrong.is_none();
        EvidenceRecord {
            repeat: None,
            prompt: kept(prompt.text()),
            answer: has_answer.then(|| kept(self.answer.text.clone())),
            latency_ms: self.answer.latency.as_secs_f64() * 1000.0,
            exchanges: self.exchanges.clone(),
            fault,
            call,
            telling,
            state: None,
            reason: None,
            faults_applied: self.faults_applied,
            mutant: None,
        }
    }
}

/// A text for evidence: without secrets, and not too long.
pub(super) fn kept(mut text: String) -> String {
    Redactor::default().text(&mut text, KEPT);
    text
}

/// Whether a call went to its upstream, and the upstream could not be reached.
fn is_unreachable(record: &ExchangeRecord) -> bool {
    record.outcome == Outcome::UpstreamError
        && record.upstream_status.is_none()
        && matches!(record.status, Some(502 | 504))
}

/// The rule that was applied to an exchange; of several, one that does more than delay.
fn fault(record: &ExchangeRecord) -> Option<&RuleRecord> {
    record.applied().min_by_key(|rule| is_delay(rule))
}
