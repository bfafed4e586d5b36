//! One exchange, and how it failed, if it did.

use std::time::Duration;

use http::Method;
use serde_json::Value;
use squall_dialects::a2a;
use squall_dialects::model::Finish;
use squall_journal::record::{AgentRecord, ExchangeRecord, Kind, Outcome};
use squall_journal::ring::host_and_port;
use squall_profiles::fingerprint::Fingerprint;

use super::input::ModelInput;
use super::retry_after::retry_after;
use crate::reach::{SeenExchange, SeenMessage};

/// One exchange.
#[derive(Debug, Clone, PartialEq)]
pub struct Attempt {
    pub(super) place: usize,
    /// The exchange's id in the journal.
    pub id: String,
    /// The kind of exchange.
    pub kind: Kind,
    /// Request method.
    pub method: String,
    /// Upstream URL, secrets redacted.
    pub url: String,
    /// Upstream host in lower case, without the port.
    pub host: String,
    /// Upstream host with the port, including a default port.
    pub host_and_port: String,
    /// The called tools; empty if none is known.
    pub tools: Vec<String>,
    /// The calling agent, if it is known.
    pub(crate) from: Option<String>,
    /// Whether it sent a message to an agent.
    pub(crate) sends_message: bool,
    /// When the head of the request had arrived, since the start of the invocation.
    pub began: Duration,
    /// When the response had ended; `None`: it never did.
    pub ended: Option<Duration>,
    /// Whether the agent may have closed the connection: it got no response, or only a part of one.
    pub(super) was_hung_up: bool,
    /// Status that the agent received; `None`: no response.
    pub status: Option<u16>,
    /// Equal for requests that are the same; `None`: the body was not read.
    pub identity: Option<u64>,
    /// The `Idempotency-Key` header.
    pub key: Option<String>,
    /// The `amz-sdk-invocation-id` header.
    pub invocation: Option<String>,
    /// Identifies the credentials of the request without revealing them; `None`: they were not examined.
    pub credentials: Option<u64>,
    /// The requested model.
    pub model: Option<String>,
    /// The input of a request to a provider that may keep the conversation.
    pub(super) input: Option<ModelInput>,
    /// How it failed.
    pub failure: Option<CallFailure>,
    /// The delay that the response requested before a retry.
    pub retry_after: Option<Duration>,
}

/// How an exchange failed, as the agent sees it. The cause of the failure does not matter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallFailure {
    /// The correct reaction to the failure.
    pub class: FailureClass,
    /// What happened, in a few words.
    pub why: String,
    /// Whether the agent cannot know if the upstream carried out the request.
    pub unclear: bool,
}

/// The correct reaction to a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureClass {
    /// A retry, or another upstream, may succeed.
    Transient,
    /// The same request must not be retried.
    Permanent,
    /// It depends on the cause whether a retry helps. Clients may retry, but need not.
    Unsettled,
    /// The exchange succeeded, but its response reports that the tool failed.
    Reported,
}

/// Fault modes that end a response before it is complete.
const CUTTING: [&str; 6] = [
    "reset_peer",
    "limit_data",
    "half_open",
    "websocket_close",
    "stream_cut",
    "stream_error",
];

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
            from: record.agent.as_ref().and_then(|agent| agent.from.clone()),
            sends_message: record.kind == Kind::Agent
                && record.method != "GET"
                && record.agent.as_ref().is_none_or(AgentRecord::sends_message),
            key: header("idempotency-key"),
            invocation: header("amz-sdk-invocation-id"),
            credentials: (seen.request.as_ref()).and_then(|request| request.credentials),
            model: record.llm.as_ref().and_then(|llm| llm.model.clone()),
            input: ModelInput::of(seen),
            retry_after: failure.as_ref().and_then(|_| retry_after(seen)),
            failure,
        }
    }

    /// Id of the model's answer or conversation that it continues.
    pub(crate) fn continues(&self) -> Option<&str> {
        self.input.as_ref()?.continues.as_deref()
    }

    /// Whether a later model call sends its input again, with the conversation before it.
    pub(super) fn is_restored_by(&self, later: &Self) -> bool {
        let inputs = self.input.as_ref().zip(later.input.as_ref());
        let place = |one: &Self| (one.host_and_port.clone(), one.model.clone());
        inputs.is_some_and(|(input, later)| input.is_restored_by(later))
            && place(self) == place(later)
    }

    /// Whether it called a tool over MCP or plain HTTP, including calls whose connection failed.
    pub fn calls_a_tool(&self) -> bool {
        match self.kind {
            Kind::Tool => true,
            Kind::Mcp => !self.tools.is_empty(),
            Kind::Agent => self.sends_message,
            Kind::Other => self.method == "CONNECT" && !self.tools.is_empty(),
            Kind::Llm => false,
        }
    }

    /// The path of its URL, `/` if the URL has none.
    pub(crate) fn path(&self) -> &str {
        let rest = self
            .url
            .split_once("://")
            .map_or(&*self.url, |(_, rest)| rest);
        let end = rest.find(['?', '#']).unwrap_or(rest.len());
        rest.find('/')
            .map_or("/", |at| rest.get(at..end).unwrap_or("/"))
    }

    /// Its name in reasons.
    pub fn name(&self) -> String {
        let what = match (&self.tools[..], self.kind) {
            ([tool, ..], _) => format!("tool {tool}"),
            ([], Kind::Llm) => "the model".to_owned(),
            ([], Kind::Tool | Kind::Mcp | Kind::Agent | Kind::Other) => self.host.clone(),
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

/// Hashes method, URL and body without the parts that change between retries. It uses the kept request, or else the
/// fingerprint that random draws use. For two attempts at one call, either both requests are kept or neither is,
/// with the same redaction.
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
        // Clients may close the connection after the end of a model's answer, so this is no failure.
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

/// Whether the agent received a model's answer to its end.
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
        // The MCP session has expired: the client may repeat the request in a new session.
        404 if seen.record.kind == Kind::Mcp => failure(FailureClass::Reported, false),
        500 | 502..=504 | 506..=599 => failure(FailureClass::Transient, true),
        // A conflict may resolve, another connection may work, a gateway may be updated. The providers' official
        // clients retry all of these.
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

/// Waiting does not refill a used-up quota and does not make a request smaller.
fn says_that_waiting_is_no_use(seen: &SeenExchange) -> bool {
    let by_rule = seen
        .record
        .applied()
        .any(|rule| rule.mode == "quota_exhausted");
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

/// Whether a content filter stopped the model's answer.
fn is_filtered(record: &ExchangeRecord) -> bool {
    let finish = record.llm.as_ref().and_then(|llm| llm.finish.as_deref());
    finish == Some(Finish::Filtered.as_str())
}

/// Whether a response began but did not end as it should.
pub(super) fn is_cut(record: &ExchangeRecord) -> bool {
    let stopped = record
        .llm
        .as_ref()
        .is_some_and(|llm| llm.stream && llm.finish.is_none() && record.outcome != Outcome::Ok);
    record.outcome == Outcome::UpstreamError
        || stopped
        || record.applied().any(|rule| CUTTING.contains(&&*rule.mode))
}

/// The error that an MCP server or an agent reports for a failed call.
fn reported(seen: &SeenExchange) -> Option<String> {
    let called = seen
        .record
        .agent
        .as_ref()
        .and_then(|agent| agent.method.as_ref());
    if seen.record.kind != Kind::Mcp && called.is_none() {
        return None;
    }
    let document = json(seen.response.as_ref()?)?;
    if let Some(error) = document.get("error").filter(|error| error.is_object()) {
        let code = error.get("code").map(Value::to_string).unwrap_or_default();
        return Some(format!("the server answered with error {code}"));
    }
    if let Some(state) = document.get("result").and_then(a2a::failure) {
        return Some(format!("the agent reported the state {state}"));
    }
    let is_error = document.pointer("/result/isError") == Some(&Value::Bool(true));
    is_error.then(|| "the tool reported an error".to_owned())
}

/// The body as JSON; for an event stream its last event.
pub(crate) fn json(message: &SeenMessage) -> Option<Value> {
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
