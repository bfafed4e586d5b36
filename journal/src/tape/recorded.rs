//! One exchange as a recording stores it.

use http::Method;
use serde::{Deserialize, Serialize};

use super::content::{Content, Data};
use super::session::{Answer, Matching, RecordedExchange, Session};
use crate::record::{Kind, Outcome, Place};

/// An exchange with its heads and bodies, as the agent saw them, redacted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recorded {
    /// Its id in the journal.
    pub id: String,
    /// Scope.
    pub scope: String,
    /// When its head was received, milliseconds since 1970.
    pub started_ms: u64,
    /// Its kind.
    pub kind: Kind,
    /// Dialect, for kind `llm`.
    pub dialect: Option<String>,
    /// How it ended.
    pub outcome: Outcome,
    /// The request.
    pub request: Request,
    /// The fingerprint of the redacted request.
    pub fingerprint: u64,
    /// Of a model call: the last user message.
    pub input: Option<String>,
    /// The response; `None` if the agent got none.
    pub answer: Option<Answer>,
    /// Version of HTTP towards the agent: `HTTP/1.1`, `HTTP/2.0`.
    pub version: String,
    /// Encoded bytes of the response's body.
    pub response_bytes: u64,
    /// From the request's head to the response's end, milliseconds.
    pub duration_ms: u64,
    /// Modes of the faults that were applied.
    pub faults: Vec<String>,
    /// Secrets and personal data in it before redaction; `None` if it was not searched. Not stored.
    #[serde(skip)]
    pub exposed: Option<Exposed>,
}

/// A request as it is stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// Method.
    pub method: String,
    /// URL as rules see it.
    pub url: String,
    /// Headers, without those of the connection.
    pub headers: Vec<(String, String)>,
    /// The body, decoded.
    pub body: Data,
    /// Encoded bytes of the body.
    pub bytes: u64,
    /// The body was longer than the stored limit, so it counts as not captured.
    pub over_limit: bool,
}

/// A secret or personal data in a message, without its value.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Detected {
    /// Name of the detector.
    pub detector: String,
    /// Whether it is personal data; otherwise it is a secret.
    pub personal: bool,
    /// Its place in the message.
    pub place: Place,
}

/// Prefix of detectors that recognise a header by its name.
pub(crate) const BY_NAME: &str = "header ";

impl Detected {
    /// Whether it is a header with the client's credentials.
    pub fn is_credential(&self) -> bool {
        self.place == Place::Header && !self.personal && self.detector.starts_with(BY_NAME)
    }
}

/// Secrets and personal data in both messages of an exchange.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exposed {
    /// In the request.
    pub request: Vec<Detected>,
    /// In the response.
    pub answer: Vec<Detected>,
    /// Hash of the credentials in the request. It differs between credentials and does not reveal them.
    pub credentials: u64,
}

impl Recorded {
    /// The exchange in a form for playback. `None` for a tunnel or an upgrade, for a rejected exchange, and if
    /// the agent disconnected before a response.
    pub fn to_exchange(&self) -> Option<RecordedExchange> {
        if self.kind == Kind::Other || self.outcome == Outcome::Denied {
            return None;
        }
        let none = Answer {
            latency_ms: self.duration_ms,
            ..Answer::default()
        };
        let none = (self.outcome != Outcome::ClientGone).then_some(none);
        let body = &self.request.body;
        Some(RecordedExchange {
            matching: Matching {
                method: Method::from_bytes(self.request.method.as_bytes()).ok(),
                url: Some(self.request.url.clone()),
                body: (!body.0.is_empty()).then(|| body.clone()),
                fingerprint: Some(self.fingerprint),
                model: None,
            },
            dialect: self.dialect.clone(),
            http2: self.version == "HTTP/2.0",
            answer: self.answer.clone().or(none)?,
        })
    }

    /// Approximate size in bytes.
    pub fn weight(&self) -> usize {
        let headers = |headers: &[(String, String)]| -> usize {
            let each = headers.iter();
            each.map(|(name, value)| name.len() + value.len()).sum()
        };
        let answer = self.answer.as_ref().map_or(0, |answer| {
            let content = match &answer.content {
                Content::Body(body) => body.0.len(),
                Content::Stream(pieces) => pieces.iter().map(|piece| piece.data.0.len() + 32).sum(),
            };
            headers(&answer.headers) + content
        });
        let request = &self.request;
        512 + request.url.len() + headers(&request.headers) + request.body.0.len() + answer
    }
}

impl Session {
    /// A recording as a session, its exchanges in order of their start. Exchanges without a response are left
    /// out.
    pub fn of_recording(id: &str, name: Option<&str>, recorded: &[Recorded]) -> Self {
        let began = recorded.first().map(|first| first.started_ms);
        Self {
            id: id.to_owned(),
            name: name.map(str::to_owned),
            input: (recorded.iter().find_map(|one| one.input.clone()))
                .into_iter()
                .collect(),
            source: Some("recording".to_owned()),
            captured_at: began.map(crate::timestamp::rfc3339),
            exchanges: recorded.iter().filter_map(Recorded::to_exchange).collect(),
            ..Self::default()
        }
    }
}

/// Whether a header is stored. Headers about the connection, or the body's length or coding, are not: the body is
/// stored decoded.
#[rustfmt::skip]
pub fn is_kept(name: &str, decoded: bool) -> bool {
    let left_out = [
        "connection", "keep-alive", "proxy-connection", "proxy-authenticate", "te", "trailer", "transfer-encoding",
        "upgrade", "content-length",
    ];
    let is_left_out = left_out.contains(&name) || (decoded && name == "content-encoding");
    !is_left_out
}
