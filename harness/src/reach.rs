//! A run's interface to the proxy: put chaos in force for a scope, end it, and read the exchanges.
//!
//! Code that drives agents depends only on [`Arc<dyn Reach>`](std::sync::Arc). It can therefore run and judge
//! agents in tests without opening a port. One invocation of an agent is one activation of its scope:
//!
//! ```text
//! begin(scope, chaos) ──▶ the agent is invoked and makes calls ──▶ close(activation) ──▶ seen(activation)
//!         └── counters start at zero, unless it continues another      └── later calls are late
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use squall_journal::activation::ActivationRecord;
use squall_journal::record::{ExchangeRecord, RuleRecord};
use squall_journal::tape::{Detected, Session};
use squall_journal::trace_id::TraceId;
use squall_profiles::tools::ToolNames;

/// A pending operation; it starts when it is first polled.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The proxy, as runs use it.
pub trait Reach: Send + Sync {
    /// Puts chaos in force for a scope as a new activation, which replaces the current one. Counters, windows and
    /// attempts start at zero, unless the activation continues another one. Open exchanges of the scope are ended.
    /// Kept-alive connections stay open until the run ends.
    fn begin<'a>(
        &'a self,
        scope: &'a str,
        chaos: RequestedChaos,
    ) -> Pending<'a, Result<ActivationRecord, ReachError>>;

    /// Ends a scope's own activation, so that the default one applies again. Returns whether there was one.
    fn end<'a>(&'a self, scope: &'a str) -> Pending<'a, Result<bool, ReachError>>;

    /// Ends every activation of a run, atomically where possible. Returns how many there were.
    fn end_run<'a>(&'a self, run: &'a str) -> Pending<'a, Result<usize, ReachError>>;

    /// Closes an activation. Later exchanges in its scope are late: they get no faults and appear in [`Self::late`]
    /// only.
    fn close<'a>(&'a self, activation: &'a str) -> Pending<'a, Result<(), ReachError>>;

    /// The exchanges under an activation, oldest first. Waits at most `patience` until its open exchanges have
    /// ended and are in the journal. Exchanges that are still open have the outcome `open`; they are ended if the
    /// activation is closed.
    fn seen<'a>(
        &'a self,
        activation: &'a str,
        patience: Duration,
    ) -> Pending<'a, Result<Seen, ReachError>>;

    /// The late exchanges of a run: those in scopes whose activation was closed and not replaced.
    fn late<'a>(&'a self, run: &'a str) -> Pending<'a, Result<Late, ReachError>>;
}

/// The chaos that a run puts in force for a scope.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestedChaos {
    /// Id of the run, recorded in its exchanges.
    pub run: String,
    /// The rules.
    pub rules: Rules,
    /// Seed of every draw.
    pub seed: u64,
    /// Used in random draws instead of the scope's name, 1 to 256 bytes. It consists of scenario, prompt and
    /// repeat, so a second run with the same seed gets the same draws.
    pub key: String,
    /// A trace that identifies the scope while this chaos is in force. Requests with this trace in `traceparent`
    /// and no explicit scope belong to it. `None`: no trace.
    pub trace: Option<TraceId>,
    /// A name that identifies the scope until it is reassigned. Requests that carry it, but no scope in baggage and
    /// no trace, belong to the scope. It is for long-lived programs that keep one name for all invocations. `None`:
    /// no name.
    pub slot: Option<String>,
    /// The activation of the run whose counters, windows and attempts continue; `None`: they start at zero.
    pub after: Option<String>,
    /// Whether each exchange of the run uses a new connection, which is closed after the response. A reused
    /// connection would bypass faults that make connections fail.
    pub connects_anew: bool,
    /// Additional names of upstreams while this is in force, with their URL globs.
    pub tools: ToolNames,
    /// A replay session whose recorded responses the exchanges get; `None`: upstreams respond.
    pub tape: Option<Arc<Session>>,
}

/// The source of an activation's rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rules {
    /// No rules: the scope is clean, regardless of other chaos.
    Nothing,
    /// A stored profile, by its name.
    Profile(String),
    /// A profile that is not stored anywhere, as YAML or JSON.
    Document {
        /// Its text, variables not expanded.
        text: String,
        /// The values of its variables. They are secret: never stored, logged or shown.
        variables: Values,
    },
    /// Some firings of other rules: each a rule's id and the number of one of its matching calls.
    Limited {
        /// The rules.
        rules: Box<Rules>,
        /// The firings.
        firings: Vec<(String, u64)>,
    },
}

/// Values of variables, by name. `Debug` prints only the names.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Values(BTreeMap<String, String>);

impl Values {
    /// The value of the variable with this name.
    pub fn find(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }
}

impl<N: Into<String>, V: Into<String>> FromIterator<(N, V)> for Values {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(pairs: I) -> Self {
        let owned = pairs
            .into_iter()
            .map(|(name, value)| (name.into(), value.into()));
        Self(owned.collect())
    }
}

impl fmt::Debug for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// The exchanges under one activation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Seen {
    /// The exchanges that began under it, oldest first, including open ones.
    pub exchanges: Vec<SeenExchange>,
    /// Exchanges that began under it but did not fit in the journal. If there are any, a missing exchange may still
    /// have happened.
    pub lost: u64,
    /// Concurrent exchanges of no run in the shared scope. It is unknown whether they belong to the same agent.
    pub elsewhere: u64,
    /// What the tape of the activation did; `None`: it has none.
    pub tape: Option<TapeCounts>,
}

/// Counts of the requests to a tape.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TapeCounts {
    /// Requests that got a recorded response.
    pub served: u64,
    /// Requests without a recorded response that was left.
    pub missed: u64,
    /// Requests and tunnels that went upstream.
    pub dialled: u64,
    /// Numbers of the used responses in the session, from 0: `exchanges`, then `tool_responses`, `llm_responses`.
    pub used: Vec<usize>,
}

impl Seen {
    /// Adds what was seen at the same time under another activation.
    pub fn join(&mut self, other: Self) {
        self.exchanges.extend(other.exchanges);
        self.exchanges.sort_by_key(|seen| seen.began);
        self.lost += other.lost;
        self.elsewhere = self.elsewhere.max(other.elsewhere);
    }

    /// The rules that took effect, once for each exchange.
    pub fn applied(&self) -> impl Iterator<Item = &RuleRecord> {
        self.exchanges.iter().flat_map(|one| one.record.applied())
    }

    /// Whether no exchange is missing or open.
    pub fn is_complete(&self) -> bool {
        self.lost == 0 && self.exchanges.iter().all(|seen| seen.ended.is_some())
    }
}

/// Exchanges that arrived after their activation was closed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Late {
    /// The number of exchanges.
    pub count: u64,
    /// The first of them that is still in the journal.
    pub first: Option<LateCall>,
}

/// An exchange that arrived after its activation was closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LateCall {
    /// Its id.
    pub exchange: String,
    /// Its scope.
    pub scope: String,
    /// The method.
    pub method: String,
    /// The upstream's URL, secrets redacted.
    pub url: String,
}

/// One exchange, with all that invariants need.
#[derive(Debug, Clone, PartialEq)]
pub struct SeenExchange {
    /// The journal's record.
    pub record: ExchangeRecord,
    /// When the head of its request had arrived, since the activation was put in force.
    pub began: Duration,
    /// When the agent had received the end of the response, or the exchange was aborted; `None` while it is open.
    pub ended: Option<Duration>,
    /// The request that the agent sent; `None` if it was not kept.
    pub request: Option<SeenMessage>,
    /// The response that the agent received; `None` if it was not kept, or there was none.
    pub response: Option<SeenMessage>,
    /// The rule that came closest to matching; `None`: one matched, or none was close.
    pub nearest_miss: Option<NearestMiss>,
}

/// A rule in force that failed to match an exchange on exactly one condition. Greater values are closer.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct NearestMiss {
    /// Closeness, 0 to 1000.
    pub closeness: u16,
    /// The rule's id.
    pub rule: String,
    /// The condition that failed, and the value found.
    pub why: String,
}

/// A request or a response.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SeenMessage {
    /// Names and values as on the wire, in order; secrets redacted.
    pub headers: Vec<(String, String)>,
    /// The body; `None` when bodies are not kept for the activation.
    pub body: Option<SeenBody>,
    /// What detectors found in the message before redaction, including URL and headers; `None` if they did not run.
    pub detected: Option<Vec<Detected>>,
    /// Identifies the credentials, including those in the URL, without revealing them. It is stable while the
    /// daemon runs. `None`: they were not examined.
    pub credentials: Option<u64>,
}

impl SeenMessage {
    /// The first value of a header; case does not matter.
    pub fn header(&self, name: &str) -> Option<&str> {
        let named = |(found, _): &&(String, String)| found.eq_ignore_ascii_case(name);
        let (_, value) = self.headers.iter().find(named)?;
        Some(value)
    }
}

/// The body of a message, content codings undone, secrets redacted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SeenBody {
    /// The kept bytes.
    pub bytes: Vec<u8>,
    /// Whether the body is complete; `false` if it was longer than the limit, or aborted.
    pub whole: bool,
}

/// Why a request to the proxy failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReachError {
    /// No profile has that name.
    #[error("there is no profile `{0}`")]
    UnknownProfile(String),
    /// The rules cannot be read or compiled.
    #[error("the chaos cannot be put in force: {0}")]
    BadRules(String),
    /// The activation is unknown, or its exchanges are no longer kept.
    #[error("nothing is known of activation `{0}`; its exchanges are not kept any more")]
    UnknownActivation(String),
    /// The daemon has stopped all chaos, or is stopping.
    #[error("the daemon puts no more chaos in force: {0}")]
    Refused(String),
    /// The journal or the store failed.
    #[error("what went through cannot be read: {0}")]
    Unreadable(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_variables_stand_for_is_found_and_not_printed() {
        let values: Values = [("TOKEN", "hunter2")].into_iter().collect();
        assert_eq!(values.find("TOKEN"), Some("hunter2"));
        let document = Rules::Document {
            text: "chaos: {}".into(),
            variables: values,
        };
        let printed = format!("{document:?}");
        assert!(printed.contains("TOKEN") && !printed.contains("hunter2"));
    }

    #[test]
    fn a_header_is_found_in_any_case_and_the_first_one_counts() {
        let message = SeenMessage {
            headers: vec![
                ("Retry-After".into(), "2".into()),
                ("retry-after".into(), "9".into()),
            ],
            ..SeenMessage::default()
        };
        assert_eq!(message.header("RETRY-AFTER"), Some("2"));
        assert_eq!(message.header("retry"), None);
    }

    #[test]
    fn what_was_lost_makes_it_incomplete() {
        assert!(Seen::default().is_complete());
        let lost = Seen {
            lost: 1,
            ..Seen::default()
        };
        assert!(!lost.is_complete());
    }
}
