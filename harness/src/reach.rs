//! How a run reaches the proxy: put chaos in force for a scope, end it, read what went through.
//!
//! Whoever drives agents holds an [`Arc<dyn Reach>`](std::sync::Arc) and knows nothing else of the
//! proxy, so that agents can be driven and judged without a port. One invocation of an agent is one
//! activation of the scope it runs in:
//!
//! ```text
//! begin(scope, chaos) ──▶ the agent is asked, its calls go through ──▶ close(activation) ──▶ seen(activation)
//!         └── counters are at zero, unless it goes on after another        └── what comes now is late
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use squall_journal::activation::ActivationRecord;
use squall_journal::record::ExchangeRecord;
use squall_journal::tape::Detected;
use squall_journal::trace_id::TraceId;

/// What is on its way; not begun before it is polled.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The proxy as runs see it.
pub trait Reach: Send + Sync {
    /// Puts chaos in force for a scope as a new activation, in place of what was there: unless it goes on after
    /// another, counters, windows and attempts begin at zero; open exchanges of the scope are ended. Connections
    /// that are kept alive stay until the run is over.
    fn begin<'a>(
        &'a self,
        scope: &'a str,
        chaos: Wanted,
    ) -> Pending<'a, Result<ActivationRecord, ReachError>>;

    /// Ends a scope's own activation; it is under the default one again. Whether there was one.
    fn end<'a>(&'a self, scope: &'a str) -> Pending<'a, Result<bool, ReachError>>;

    /// Ends every activation that a run has begun, in one swap where it can. How many there were.
    fn end_run<'a>(&'a self, run: &'a str) -> Pending<'a, Result<usize, ReachError>>;

    /// Closes an activation: what comes in its scope from now on is none of what was seen under it, but late. It
    /// meets no chaos, and [`Self::late`] tells of it.
    fn close<'a>(&'a self, activation: &'a str) -> Pending<'a, Result<(), ReachError>>;

    /// What went through under an activation, oldest first. Waits until its open exchanges have
    /// ended and all of them are written down, but no longer than `patience`; what is open even then
    /// is among them with outcome `open`, and is ended if the activation is closed.
    fn seen<'a>(
        &'a self,
        activation: &'a str,
        patience: Duration,
    ) -> Pending<'a, Result<Seen, ReachError>>;

    /// What came so far in scopes of a run whose activation was closed, and was not put in force again.
    fn late<'a>(&'a self, run: &'a str) -> Pending<'a, Result<Late, ReachError>>;
}

/// Chaos that a run wants in force for a scope.
#[derive(Debug, Clone, PartialEq)]
pub struct Wanted {
    /// Id of the run, which its exchanges then carry.
    pub run: String,
    /// The rules.
    pub rules: Rules,
    /// Seed of every draw.
    pub seed: u64,
    /// Stands for the scope in the draws, 1 to 256 bytes: scenario, prompt and repeat, so that a
    /// second run with the same seed draws the same.
    pub key: String,
    /// A trace that stands for the scope for as long as this is in force: requests that carry it in
    /// `traceparent` and name no scope fall into this one. `None`: none does.
    pub trace: Option<TraceId>,
    /// A name that stands for the scope from now on, until it stands for another: what names it, and neither a
    /// scope in its baggage nor a trace, falls into this one. For programs that are asked again and again and know
    /// one name only. `None`: none does.
    pub slot: Option<String>,
    /// The activation of the run whose counters, windows and attempts go on in this one; `None`: they begin at zero.
    pub after: Option<String>,
    /// Whether each exchange of the run is to have a connection of its own from now on, closed behind its answer:
    /// what fails connections is not met on one that is open.
    pub connects_anew: bool,
    /// What the journal reads.
    pub observe: Observe,
    /// Names for upstreams that hold as long, beside the config's, and the URL globs they stand for.
    pub tools: Vec<(String, Vec<String>)>,
    /// How long it holds at most; `None`: until it is ended, or as long as the config allows.
    pub ttl: Option<Duration>,
}

/// Where the rules of an activation come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rules {
    /// No rule: the scope is kept clean, whatever else is in force.
    Nothing,
    /// A profile by its name.
    Profile(String),
    /// A profile as it is written, YAML or JSON, that nobody has put anywhere.
    Document {
        /// Its text, variables not expanded.
        text: String,
        /// What the variables in it stand for. They are secrets: never stored, logged or shown.
        variables: Values,
    },
}

/// What variables stand for, by name. Printing it shows the names only.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Values(BTreeMap<String, String>);

impl Values {
    /// What the variable of this name stands for.
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

/// What the journal reads of the exchanges under an activation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Observe {
    /// Heads only.
    Headers,
    /// Heads, and of model and MCP exchanges what they say about themselves.
    Model,
    /// Whole bodies, bounded.
    Bodies,
}

impl Observe {
    /// The name in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Headers => "headers",
            Self::Model => "model",
            Self::Bodies => "bodies",
        }
    }
}

/// What went through under one activation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Seen {
    /// The exchanges that began under it, oldest first, those that were still open included.
    pub exchanges: Vec<SeenExchange>,
    /// Exchanges that began under it and are not among them: they did not fit in the journal. With
    /// one of these, what did not happen cannot be told from what was not seen.
    pub lost: u64,
    /// Exchanges that began meanwhile in the scope of what names none, under no run: nobody knows whether they
    /// were the same agent's.
    pub elsewhere: u64,
}

impl Seen {
    /// Takes in what was seen at the same time under another activation.
    pub fn join(&mut self, other: Self) {
        self.exchanges.extend(other.exchanges);
        self.exchanges.sort_by_key(|seen| seen.began);
        self.lost += other.lost;
        self.elsewhere = self.elsewhere.max(other.elsewhere);
    }

    /// Whether everything is here and nothing is open.
    pub fn is_complete(&self) -> bool {
        self.lost == 0 && self.exchanges.iter().all(|seen| seen.ended.is_some())
    }
}

/// What came when its activation was closed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Late {
    /// How many exchanges.
    pub count: u64,
    /// The first of them that the journal still has.
    pub first: Option<LateCall>,
}

/// An exchange that came when its activation was closed.
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

/// One exchange as a judge needs it.
#[derive(Debug, Clone, PartialEq)]
pub struct SeenExchange {
    /// As the journal keeps it.
    pub record: ExchangeRecord,
    /// When its request's head was there, since the activation was put in force.
    pub began: Duration,
    /// When the agent had the end of the answer, or the exchange broke off; `None` while it is open.
    pub ended: Option<Duration>,
    /// What the agent sent; `None` when it was not kept.
    pub request: Option<Message>,
    /// What the agent received; `None` when it was not kept, or there was no answer.
    pub response: Option<Message>,
    /// The rule that was nearest; `None`: one matched, or none was near.
    pub nearest_miss: Option<NearMiss>,
}

/// A rule in force that failed to match an exchange on exactly one condition. The greatest is the nearest.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct NearMiss {
    /// How near it was, 0 to 1000.
    pub closeness: u16,
    /// The rule's id.
    pub rule: String,
    /// What it wants, and what was there instead.
    pub why: String,
}

/// A request or an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Message {
    /// Names and values in order, as they were on the wire; secrets redacted.
    pub headers: Vec<(String, String)>,
    /// The body; `None` when bodies are not kept for the activation.
    pub body: Option<Body>,
    /// What detectors found in it, URL and headers included, before it was redacted; `None` when
    /// nobody looked.
    pub detected: Option<Vec<Detected>>,
    /// Tells one set of credentials from another, those in the URL included, while the daemon runs; what they
    /// were is not told. `None`: nobody looked.
    pub credentials: Option<u64>,
}

impl Message {
    /// The first value of a header, by its name in any case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let named = |(found, _): &&(String, String)| found.eq_ignore_ascii_case(name);
        let (_, value) = self.headers.iter().find(named)?;
        Some(value)
    }
}

/// The body of a message, content codings undone, secrets redacted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Body {
    /// What was kept of it.
    pub bytes: Vec<u8>,
    /// Whether this is all that was sent; `false` when it was longer than is kept, or broke off.
    pub whole: bool,
}

/// Why the proxy could not be reached, or did not do what it was asked to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReachError {
    /// No profile has that name.
    #[error("there is no profile `{0}`")]
    UnknownProfile(String),
    /// The rules cannot be read or compiled.
    #[error("the chaos cannot be put in force: {0}")]
    BadRules(String),
    /// Nobody knows that activation, or its exchanges are not kept any more.
    #[error("nothing is known of activation `{0}`; its exchanges are not kept any more")]
    UnknownActivation(String),
    /// The daemon ends all chaos by itself, or is stopping.
    #[error("the daemon puts no more chaos in force: {0}")]
    Refused(String),
    /// The journal or the store did not answer.
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
        let message = Message {
            headers: vec![
                ("Retry-After".into(), "2".into()),
                ("retry-after".into(), "9".into()),
            ],
            ..Message::default()
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
