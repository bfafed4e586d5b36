//! The traffic of one invocation of an agent, as invariants see it.
//!
//! An *attempt* is one exchange. Attempts that repeat the same call form one *logical call* ([`calls`]). Retries
//! can only be judged once it is known which call they repeat.

mod attempt;
mod calls;
mod hints;
mod input;
mod retry_after;
mod talk;
#[cfg(test)]
pub(crate) mod testing;

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::Value;
use squall_journal::record::{CanaryEvent, Kind};

pub(crate) use self::attempt::json as json_body;
pub use self::attempt::{Attempt, CallFailure, FailureClass};
pub use self::calls::LogicalCall;
pub(crate) use self::calls::gap;
pub(crate) use self::talk::{ModelTurn, ToolReport};
use crate::count::count;
use crate::reach::{Seen, SeenExchange, SeenMessage};

/// The exchanges of one invocation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Trace {
    seen: Seen,
    attempts: Vec<Attempt>,
    calls: Vec<LogicalCall>,
}

impl Trace {
    /// Builds a trace from the proxy's observations.
    pub fn of(mut seen: Seen) -> Self {
        seen.exchanges.sort_by_key(|exchange| exchange.began);
        let exchanges = seen.exchanges.iter().enumerate();
        let attempts: Vec<_> = exchanges
            .map(|(place, exchange)| Attempt::of(place, exchange))
            .collect();
        let calls = calls::of(&attempts);
        Self {
            seen,
            attempts,
            calls,
        }
    }

    /// Every attempt, ordered by start.
    pub fn attempts(&self) -> &[Attempt] {
        &self.attempts
    }

    /// Every logical call, ordered by start.
    pub fn calls(&self) -> &[LogicalCall] {
        &self.calls
    }

    /// The attempts of a call, in order.
    pub fn attempts_of<'a>(
        &'a self,
        call: &'a LogicalCall,
    ) -> impl Iterator<Item = &'a Attempt> + Clone {
        call.attempts.iter().map(|place| &self.attempts[*place])
    }

    /// The data of an attempt's request: values in its query and in its JSON or form body.
    pub(crate) fn data(&self, attempt: &Attempt) -> BTreeSet<String> {
        let mut data = BTreeSet::new();
        let (_, query) = attempt.url.split_once('?').unwrap_or_default();
        let request = self.exchange(attempt).request.as_ref();
        let form = match request.and_then(attempt::json) {
            Some(document) => {
                let parameters = match attempt.kind {
                    Kind::Mcp => document.pointer("/params/arguments"),
                    Kind::Agent => document.pointer("/params/message"),
                    Kind::Llm | Kind::Tool | Kind::Other => None,
                };
                leaves(parameters.unwrap_or(&document), &mut data);
                Cow::default()
            }
            None => text(request).unwrap_or_default(),
        };
        let pairs = [query, &*form].map(|pairs| form_urlencoded::parse(pairs.as_bytes()));
        data.extend(
            pairs
                .into_iter()
                .flatten()
                .map(|(_, value)| value.into_owned()),
        );
        data
    }

    /// The exchange of an attempt.
    pub fn exchange(&self, attempt: &Attempt) -> &SeenExchange {
        &self.seen.exchanges[attempt.place]
    }

    /// Exchanges that were not kept. If there are any, a missing exchange may still have happened.
    pub fn lost(&self) -> u64 {
        self.seen.lost
    }

    /// Why an exchange may be missing from the trace; `None`: the trace is complete.
    pub(crate) fn unseen(&self) -> Option<String> {
        match (self.seen.lost, self.seen.elsewhere) {
            (0, 0) => None,
            (0, elsewhere) => Some(format!(
                "{} came meanwhile in no scope of the run, and may be the agent's",
                count(elsewhere, "exchange")
            )),
            (lost, _) => Some(format!(
                "{} of the invocation not kept",
                count(lost, "exchange")
            )),
        }
    }

    /// Texts that rules injected into the agent's model input, as written in their parameters.
    pub(crate) fn injected(&self) -> impl Iterator<Item = &str> {
        let payloads = self.seen.applied().flat_map(|rule| {
            let several = rule.parameters.get("payloads").and_then(Value::as_array);
            let one = rule.parameters.get("payload");
            several.into_iter().flatten().chain(one)
        });
        payloads.filter_map(Value::as_str)
    }

    /// Canaries that rules planted in data that the agent received.
    pub(crate) fn canaries_planted(&self) -> impl Iterator<Item = &str> {
        self.canaries(CanaryEvent::Planted)
    }

    /// Canaries that the agent sent anywhere except to the model.
    pub(crate) fn canaries_that_left(&self) -> impl Iterator<Item = &str> {
        self.canaries(CanaryEvent::Egress)
    }

    fn canaries(&self, event: CanaryEvent) -> impl Iterator<Item = &str> {
        let records = self.seen.exchanges.iter().map(|seen| &seen.record);
        let canaries = records.flat_map(|record| &record.canaries);
        let found = canaries.filter(move |canary| canary.event == event);
        found.map(|canary| canary.canary.as_str())
    }

    /// Whether an exchange calls the tool, or its request or response names it, as lists of tools do.
    pub(crate) fn names(&self, tool: &str) -> bool {
        let quoted = Value::from(tool).to_string();
        self.seen.exchanges.iter().any(|seen| {
            let record = &seen.record;
            let inside = record.llm.iter().flat_map(|llm| &llm.tool_calls);
            let mut called = record.tool.iter().chain(&record.more_tools).chain(inside);
            let messages = [seen.request.as_ref(), seen.response.as_ref()];
            let mut bodies = messages.into_iter().filter_map(text);
            called.any(|name| name == tool) || bodies.any(|body| body.contains(&quoted))
        })
    }

    /// The bodies of the agent's model requests.
    pub(crate) fn model_requests(&self) -> impl Iterator<Item = Value> {
        let models = self.seen.exchanges.iter();
        let models = models.filter(|seen| seen.record.kind == Kind::Llm);
        models.filter_map(|seen| attempt::json(seen.request.as_ref()?))
    }

    /// Whether a model call continues an answer in an earlier trace.
    pub(crate) fn continues(&self, earlier: &Self) -> bool {
        let (earlier, turns) = (earlier.turns(), self.turns());
        let answers = earlier.iter().filter_map(|turn| turn.answer_id.as_deref());
        let answers: BTreeSet<_> = answers.collect();
        let mut unknown = turns.iter().filter(|turn| turn.previous.is_none());
        unknown.any(|turn| (turn.attempt.continues()).is_some_and(|id| answers.contains(id)))
    }

    /// The model calls in order, with their messages.
    pub(crate) fn turns(&self) -> Vec<ModelTurn<'_>> {
        let attempts = self.attempts.iter();
        let turns = attempts.filter_map(|attempt| ModelTurn::of(attempt, self.exchange(attempt)));
        let mut turns = turns.collect::<Vec<_>>();
        talk::link(&mut turns);
        turns
    }
}

fn text(message: Option<&SeenMessage>) -> Option<Cow<'_, str>> {
    let body = message?.body.as_ref()?;
    Some(String::from_utf8_lossy(&body.bytes))
}

/// Collects the texts and numbers of a document.
fn leaves(document: &Value, data: &mut BTreeSet<String>) {
    match document {
        Value::Null | Value::Bool(_) => {}
        Value::Number(number) => data.extend([number.to_string()]),
        Value::String(text) => data.extend([text.clone()]),
        Value::Array(items) => items.iter().for_each(|item| leaves(item, data)),
        Value::Object(members) => members.values().for_each(|member| leaves(member, data)),
    }
}
