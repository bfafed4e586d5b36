//! The result of one invocation of the agent.

use std::collections::BTreeSet;

use squall_journal::record::{ExchangeRecord, RuleOutcome, RuleRecord};
use squall_journal::redact::Redactor;

use super::no_fault::NoFault;
use crate::agents::{AskError, InvocationPlace, ResetError};
use crate::answer::AgentAnswer;
use crate::invariants::Active;
use crate::prompt::Prompt;
use crate::reach::Seen;
use crate::run::EvidenceRecord;
use crate::trace::Trace;

/// Longest text that is kept as evidence, in bytes.
const KEPT: usize = 64 << 10;

/// The answer and the traffic of one invocation.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct InvocationResult {
    pub(super) answer: AgentAnswer,
    pub(super) trace: Trace,
    pub(super) faults_applied: u64,
    /// Why no fault was applied; `None`: one was, or the agent was not called.
    pub(super) no_fault: Option<NoFault>,
    /// The families of the applied rules.
    pub(super) families: BTreeSet<String>,
    pub(super) applied: Active,
    pub(super) exchanges: Vec<String>,
    /// Whether all traffic of the invocation was seen to its end.
    pub(super) is_complete: bool,
    /// Why the invocation cannot be judged.
    pub(super) wrong: Option<String>,
    /// Set if the agent could not be reached.
    pub(super) unreachable: Option<AskError>,
    pub(super) place: InvocationPlace,
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

    /// The result for the agent's answer and the traffic of the invocation.
    pub(super) fn new(
        answer: Result<AgentAnswer, AskError>,
        seen: Seen,
        place: InvocationPlace,
    ) -> Self {
        let mut result = Self {
            faults_applied: applied(&seen).count() as u64,
            families: applied(&seen).map(|rule| rule.family.clone()).collect(),
            applied: Active::applied(applied(&seen)),
            exchanges: (seen.exchanges.iter())
                .map(|one| one.record.id.clone())
                .collect(),
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

    /// Why there is no answer that can be judged.
    pub(super) fn failure(&self) -> Option<&str> {
        self.wrong.as_deref().or(self.answer.error.as_deref())
    }

    /// Whether the proxy saw a call of this invocation.
    pub(super) fn was_seen(&self) -> bool {
        !self.exchanges.is_empty()
    }

    /// The last exchange that failed because of a fault, or else the first that a fault was applied to.
    pub(super) fn cause(&self) -> Option<String> {
        let attempts = self.trace.attempts().iter();
        let records = attempts.map(|attempt| &self.trace.exchange(attempt).record);
        let is_hit = |record: &&ExchangeRecord| {
            let mut rules = record.rules.iter();
            rules.any(|rule| rule.outcome == RuleOutcome::Applied)
        };
        let hit = records.filter(is_hit);
        let first = hit.clone().next();
        let mut failed = hit.filter(|record| record.status.is_none_or(|status| status >= 400));
        Some(failed.next_back().or(first)?.id.clone())
    }

    /// The evidence to keep, with secrets removed.
    pub(super) fn evidence(&self, prompt: &Prompt) -> EvidenceRecord {
        let redactor = Redactor::default();
        let kept = |mut text: String| {
            redactor.text(&mut text, KEPT);
            text
        };
        let has_answer = self.answer.error.is_none() || !self.answer.text.is_empty();
        let has_answer = has_answer && self.wrong.is_none();
        EvidenceRecord {
            repeat: None,
            prompt: kept(prompt.text()),
            answer: has_answer.then(|| kept(self.answer.text.clone())),
            latency_ms: self.answer.latency.as_secs_f64() * 1000.0,
            exchanges: self.exchanges.clone(),
            telling: None,
            state: None,
            reason: None,
            faults_applied: self.faults_applied,
        }
    }
}

/// The applied rules, once for each application.
fn applied(seen: &Seen) -> impl Iterator<Item = &RuleRecord> {
    let rules = seen.exchanges.iter().flat_map(|one| &one.record.rules);
    rules.filter(|rule| rule.outcome == RuleOutcome::Applied)
}
