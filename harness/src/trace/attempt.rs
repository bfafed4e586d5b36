//! One exchange, and how it failed if it did.

use std::time::Duration;

use http::Method;
use serde_json::Value;
use squall_dialects::model::Finish;
use squall_journal::record::{ExchangeRecord, Kind, Outcome, RuleOutcome};
use squall_journal::ring::host_and_port;
use squall_profiles::fingerprint::Fingerprint;

use super::retry_after::retry_after;
use crate::reach::{Message, SeenExchange};

/// One exchange.
#[derive(Debug, Clone, PartialEq)]
pub struct Attempt {
    pub(super) place: usize,
    /// The journal's id of it.
    pub id: String,
    /// What it is.
    pub kind: Kind,
    /// Request method.
    pub method: String,
    /// Upstream URL, secrets redacted.
    pub url: String,
    /// Upstream's host in lower case, without its port.
    pub host: String,
    /// The same with the port, the scheme's own included.
    pub host_and_port: String,
    /// The tools that were called; empty where none is known.
    pub tools: Vec<String>,
    /// When the request's head was there, since the invocation began.
    pub began: Duration,
    /// When the answer had ended; `None`: it never did.
    pub ended: Option<Duration>,
    /// Whether it may have been the agent that ended it: it got no answer, or not all of one.
    pub(super) was_hung_up: bool,
    /// What the agent got; `None`: no answer.
    pub status: Option<u16>,
    /// What two requests have in common that are the same; `None`: the body was not read.
    pub identity: Option<u64>,
    /// `Idempotency-Key`.
    pub key: Option<String>,
    /// `amz-sdk-invocation-id`.
    pub invocation: Option<String>,
    /// `x-stainless-retry-count`, by which clients of OpenAI and Anthropic count their own retries: 0 first.
    pub counted: Option<u64>,
    /// Tells the credentials that it showed from others; `None`: nobody looked.
    pub credentials: Option<u64>,
    /// Model asked for.
    pub model: Option<String>,
    /// How it failed.
    pub failure: Option<CallFailure>,
    /// How long the answer asked the agent to wait.
    pub retry_after: Option<Duration>,
}

/// How an exchange failed, as the agent sees it: who made it fail does not count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallFailure {
    /// What is to be done about it.
    pub class: FailureClass,
    /// What happened, in a few words.
    pub why: String,
    /// Whether the agent cannot know if the upstream did what it was asked to.
    pub unclear: bool,
}

/// What is to be done about a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureClass {
    /// Try again, or elsewhere.
    Transient,
    /// Do not try the same again.
    Permanent,
    /// Whether the same again helps depends on what it was: clients try it again, and need not.
    Unsettled,
    /// The exchange went well, and what it says is that the tool failed.
    Reported,
}

/// Modes after which an answer ends before it is whole.
const CUTTING: [&str; 4] = ["reset_peer", "limit_data", "stream_cut", "stream_error"];

impl Attempt {
    pub(super) fn of(place: usize, seen: &SeenExchange) -> Self {
        let record = &seen.record;
        let (host, port) = host_and_port(&record.url);
        let host = host.to_ascii_lowercase();
        let header = |name| {
            let request = seen.request.as_ref()?;
            request.header(name).map(str::to_owned)
        };
        let failure = failure(seen);
        let port = port.map_or_else(|| default_port(&record.url).to_owned(), str::to_owned);
        Self {
            place,
            id: record.id.clone(),
            kind: record.kind,
            method: record.method.clone(),
            url: record.url.clone(),
            host_and_port: format!("{host}:{port}"),
            host,
            tools: record
                .tool
                .iter()
                .chain(&record.more_tools)
                .cloned()
                .collect(),
            began: seen.began,
            ended: seen.ended,
            was_hung_up: record.outcome == Outcome::ClientGone || record.status.is_none(),
            status: record.status,
            identity: identity(seen),
            key: header("idempotency-key"),
            invocation: header("amz-sdk-invocation-id"),
            counted: header("x-stainless-retry-count").and_then(|count| count.trim().parse().ok()),
            credentials: (seen.request.as_ref()).and_then(|request| request.credentials),
            model: record.llm.as_ref().and_then(|llm| llm.model.clone()),
            retry_after: failure.as_ref().and_then(|_| retry_after(seen)),
            failure,
        }
    }

    /// Whether a tool was called by it, over MCP or plain HTTP, or was to be and its connection failed.
    pub fn calls_a_tool(&self) -> bool {
        match self.kind {
            Kind::Tool => true,
            Kind::Mcp => !self.tools.is_empty(),
            Kind::Other => self.method == "CONNECT" && !self.tools.is_empty(),
            Kind::Llm => false,
        }
    }

    /// The path of its URL, `/` where that has none.
    pub(crate) fn path(&self) -> &str {
        let rest = self
            .url
            .split_once("://")
            .map_or(&*self.url, |(_, rest)| rest);
        let end = rest.find(['?', '#']).unwrap_or(rest.len());
        rest.find('/')
            .map_or("/", |at| rest.get(at..end).unwrap_or("/"))
    }

    /// What it is called in reasons.
    pub fn name(&self) -> String {
        let what = match (&self.tools[..], self.kind) {
            ([tool, ..], _) => format!("tool {tool}"),
            ([], Kind::Llm) => "the model".to_owned(),
            ([], Kind::Tool | Kind::Mcp | Kind::Other) => self.host.clone(),
        };
        format!("{what} ({})", self.id)
    }
}

fn default_port(url: &str) -> &'static str {
    if url.starts_with("http://") || url.starts_with("ws://") {
        "80"
    } else {
        "443"
    }
}

/// Method, URL and body, what changes from attempt to attempt left out: of what was kept, else as the
/// draws took it. Of two attempts at one call both are kept or neither is, and redacted alike.
fn identity(seen: &SeenExchange) -> Option<u64> {
    let record = &seen.record;
    let kept = (seen.request.as_ref()).and_then(|request| request.body.as_ref());
    let body: &[u8] = match kept {
        Some(body) if body.whole => &body.bytes,
        None if record.request_bytes == 0 => &[],
        Some(_) | None => {
            let fingerprint = record.fingerprint.as_ref()?;
            return u64::from_str_radix(fingerprint, 16).ok();
        }
    };
    let method: Method = record.method.parse().ok()?;
    Some(Fingerprint::of_request(&method, &record.url, body).0)
}

fn failure(seen: &SeenExchange) -> Option<CallFailure> {
    let record = &seen.record;
    let failed = |class, why: String, unclear| {
        Some(CallFailure {
            class,
            why,
            unclear,
        })
    };
    match (record.outcome, record.status) {
        (Outcome::Open, _) => None,
        // Clients hang up on a model that has said all.
        (Outcome::ClientGone, Some(200)) if has_said_all(record) => None,
        (Outcome::Denied, _) => failed(FailureClass::Permanent, "it was denied".to_owned(), false),
        (Outcome::ClientRejectedCa, _) => failed(
            FailureClass::Permanent,
            "the certificate was rejected".to_owned(),
            false,
        ),
        (Outcome::ClientGone, _) => failed(
            FailureClass::Transient,
            "the agent gave up waiting".to_owned(),
            true,
        ),
        (_, None) => failed(
            FailureClass::Transient,
            "there was no answer".to_owned(),
            true,
        ),
        (_, Some(status)) => of_status(seen, status),
    }
}

/// Whether the agent got what a model says to its end.
fn has_said_all(record: &ExchangeRecord) -> bool {
    record.llm.as_ref().is_some_and(|llm| llm.finish.is_some())
}

fn of_status(seen: &SeenExchange, status: u16) -> Option<CallFailure> {
    let why = format!("the answer was {status}");
    let failure = |class, unclear| {
        Some(CallFailure {
            class,
            why: why.clone(),
            unclear,
        })
    };
    match status {
        429 if says_that_waiting_is_no_use(seen) => failure(FailureClass::Permanent, false),
        408 | 425 => failure(FailureClass::Transient, status == 408),
        429 => failure(FailureClass::Transient, false),
        // An MCP session that is gone: what was asked may be asked again in a new one.
        404 if seen.record.kind == Kind::Mcp => failure(FailureClass::Reported, false),
        500 | 502..=504 | 506..=599 => failure(FailureClass::Transient, true),
        // A conflict may be over, a connection may be the wrong one, a gateway may learn: official clients of
        // providers try all of them again.
        409 | 421 | 501 => failure(FailureClass::Unsettled, false),
        400..=499 | 505 => failure(FailureClass::Permanent, false),
        _ if is_filtered(&seen.record) => Some(CallFailure {
            class: FailureClass::Permanent,
            why: "a content filter stopped the answer".to_owned(),
            unclear: false,
        }),
        _ if is_cut(&seen.record) => Some(CallFailure {
            class: FailureClass::Transient,
            why: "the answer broke off".to_owned(),
            unclear: true,
        }),
        _ => reported(seen).map(|why| CallFailure {
            class: FailureClass::Reported,
            why,
            unclear: false,
        }),
    }
}

/// A quota that is used up is not filled by waiting, and what is too large is so afterwards.
fn says_that_waiting_is_no_use(seen: &SeenExchange) -> bool {
    let by_rule = applied(&seen.record).any(|mode| mode == "quota_exhausted");
    let body = seen
        .response
        .as_ref()
        .and_then(|answer| answer.body.as_ref());
    let said = body.is_some_and(|body| {
        let text = String::from_utf8_lossy(&body.bytes);
        [
            "insufficient_quota",
            "billing_hard_limit",
            "Request too large",
        ]
        .iter()
        .any(|words| text.contains(words))
    });
    by_rule || said
}

fn applied(record: &ExchangeRecord) -> impl Iterator<Item = &str> {
    let rules = record.rules.iter();
    let applied = rules.filter(|rule| rule.outcome == RuleOutcome::Applied);
    applied.map(|rule| rule.mode.as_str())
}

/// Whether a content filter stopped what a model was saying.
fn is_filtered(record: &ExchangeRecord) -> bool {
    let finish = record.llm.as_ref().and_then(|llm| llm.finish.as_deref());
    finish == Some(Finish::Filtered.as_str())
}

/// Whether an answer that had begun never ended as it should.
pub(super) fn is_cut(record: &ExchangeRecord) -> bool {
    let stopped = record
        .llm
        .as_ref()
        .is_some_and(|llm| llm.stream && llm.finish.is_none() && record.outcome != Outcome::Ok);
    record.outcome == Outcome::UpstreamError
        || stopped
        || applied(record).any(|mode| CUTTING.contains(&mode))
}

/// What an MCP server says of a call that failed.
fn reported(seen: &SeenExchange) -> Option<String> {
    if seen.record.kind != Kind::Mcp {
        return None;
    }
    let document = json(seen.response.as_ref()?)?;
    if let Some(error) = document.get("error").filter(|error| error.is_object()) {
        let code = error.get("code").map(Value::to_string).unwrap_or_default();
        return Some(format!("the server answered with error {code}"));
    }
    let is_error = document.pointer("/result/isError") == Some(&Value::Bool(true));
    is_error.then(|| "the tool reported an error".to_owned())
}

/// The body as JSON; of an event stream its last event.
pub(super) fn json(message: &Message) -> Option<Value> {
    let body = &message.body.as_ref()?.bytes;
    if let Ok(document) = serde_json::from_slice(body) {
        return Some(document);
    }
    let text = std::str::from_utf8(body).ok()?;
    let mut data = text
        .lines()
        .rev()
        .filter_map(|line| line.strip_prefix("data:"));
    data.find_map(|data| serde_json::from_str(data.trim()).ok())
}
