//! One exchange as it is kept by a recording.

use http::Method;
use serde::{Deserialize, Serialize};

use super::content::{Content, Data};
use super::exposed::Exposed;
use super::session::{Answer, Exchange, Matching};
use crate::record::{Kind, Outcome};

/// An exchange with its heads and bodies, as the agent saw them, redacted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recorded {
    /// The journal's id of it.
    pub id: String,
    /// Scope.
    pub scope: String,
    /// When its head was there, milliseconds since 1970.
    pub started_ms: u64,
    /// What it is.
    pub kind: Kind,
    /// Dialect, for kind `llm`.
    pub dialect: Option<String>,
    /// How it ended.
    pub outcome: Outcome,
    /// The request.
    pub request: Request,
    /// The request's fingerprint, redacted as it is kept.
    pub fingerprint: u64,
    /// Of a model call: the last thing that a user said in it.
    pub input: Option<String>,
    /// The answer; `None`: the agent got none.
    pub answer: Option<Answer>,
    /// Version of HTTP towards the agent: `HTTP/1.1`, `HTTP/2.0`.
    pub version: String,
    /// Encoded bytes of the answer's body.
    pub response_bytes: u64,
    /// From the request's head to the answer's end, milliseconds.
    pub duration_ms: u64,
    /// Modes of the faults that were applied.
    pub faults: Vec<String>,
    /// What stood in it before secrets were taken out; `None`: nobody looked. Not written anywhere.
    #[serde(skip)]
    pub exposed: Option<Exposed>,
}

/// A request as it is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// Method.
    pub method: String,
    /// URL as rules see it.
    pub url: String,
    /// Headers, those of the connection left out.
    pub headers: Vec<(String, String)>,
    /// The body, decoded.
    pub body: Data,
    /// Encoded bytes of the body.
    pub bytes: u64,
    /// The body was longer than what is kept of one: it counts as unread.
    pub over_limit: bool,
}

impl Recorded {
    /// The exchange as one that can be played back; `None` for what is no request and answer (a
    /// tunnel, an upgrade), for what Squall refused, and where the agent went away before there was an
    /// answer.
    pub fn to_exchange(&self) -> Option<Exchange> {
        if self.kind == Kind::Other || self.outcome == Outcome::Denied {
            return None;
        }
        let answer = self.answer.clone().or_else(|| {
            (self.outcome != Outcome::ClientGone).then(|| Answer {
                latency_ms: self.duration_ms,
                ..Answer::default()
            })
        })?;
        let body = &self.request.body;
        Some(Exchange {
            matching: Matching {
                method: Method::from_bytes(self.request.method.as_bytes()).ok(),
                url: Some(self.request.url.clone()),
                body: (!body.0.is_empty()).then(|| body.clone()),
                fingerprint: Some(self.fingerprint),
                model: None,
            },
            dialect: self.dialect.clone(),
            http2: self.version == "HTTP/2.0",
            answer,
        })
    }

    /// Bytes that it takes, about.
    pub fn weight(&self) -> usize {
        let headers = |headers: &[(String, String)]| -> usize {
            headers
                .iter()
                .map(|(name, value)| name.len() + value.len())
                .sum()
        };
        let answer = self.answer.as_ref().map_or(0, |answer| {
            let content = match &answer.content {
                Content::Body(body) => body.0.len(),
                Content::Stream(pieces) => pieces.iter().map(|piece| piece.data.0.len() + 32).sum(),
            };
            headers(&answer.headers) + content
        });
        512 + self.request.url.len()
            + headers(&self.request.headers)
            + self.request.body.0.len()
            + answer
    }
}

/// Whether a header says something about the exchange, rather than about the connection, the length
/// or the coding of the body that is kept decoded.
pub fn is_kept(name: &str, decoded: bool) -> bool {
    let of_connection = [
        "connection",
        "keep-alive",
        "proxy-connection",
        "proxy-authenticate",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "content-length",
    ];
    let is_told_otherwise =
        of_connection.contains(&name) || (decoded && name == "content-encoding");
    !is_told_otherwise
}
