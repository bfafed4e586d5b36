//! What a server says that no server said: results, errors, notifications.

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, StatusCode};

use super::request::{Accepts, Call, Id};
use super::structured::structured;
use crate::dialect::WireReply;
use crate::json::quote;
use crate::stream::{Framing, Made, Template};

/// JSON-RPC: the request is not valid here; what servers say of sessions they do not know.
const INVALID_REQUEST: i64 = -32600;
/// JSON-RPC: the server failed.
pub const INTERNAL_ERROR: i64 = -32603;

/// What a call is answered with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Says<'a> {
    /// A result that holds this text; a tool's also in the structure that it promises.
    Text(&'a str),
    /// A result that says that the tool failed (`isError`), in this text: the model is meant to see
    /// it and to do something about it.
    Failure(&'a str),
    /// A result without content; a tool's with as little as fits the structure that it promises.
    Nothing,
    /// An error of the protocol: nobody but the client's code sees it.
    Error {
        /// JSON-RPC's code.
        code: i64,
        /// What went wrong.
        message: &'a str,
    },
    /// A result that breaks off inside its text.
    Broken,
}

/// How the answer to a request is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// What the agent takes.
    pub accepts: Accepts,
    /// The requests came as a list, so the answers go as one.
    pub batch: bool,
    /// Results say of what type they are (`resultType`), as they do since 2026-07-28.
    pub typed: bool,
}

/// The answer to each of these calls with what it says; those that wait for none get none.
///
/// A tool's failure is the result of a tool call; to anything else it is an error of the protocol.
pub fn answer(calls: &[(&Call, Says<'_>)], layout: Layout) -> WireReply {
    let messages: Vec<String> = calls
        .iter()
        .filter_map(|(call, says)| message(call, *says, layout.typed))
        .collect();
    let as_json = |content_type: &'static str, body: String| WireReply {
        status: StatusCode::OK,
        headers: HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(content_type))]),
        body: Bytes::from(body),
    };
    if layout.accepts.json || !layout.accepts.stream {
        let body = if layout.batch {
            let is_broken = calls.iter().any(|(_, says)| *says == Says::Broken);
            let closed = if is_broken { "" } else { "]" };
            format!("[{}{closed}", messages.join(","))
        } else {
            messages.concat()
        };
        return as_json("application/json", body);
    }
    let events: Vec<u8> = messages
        .into_iter()
        .flat_map(|message| event(&message))
        .collect();
    WireReply {
        status: StatusCode::OK,
        headers: stream_headers(),
        body: Bytes::from(events),
    }
}

/// The message that answers a call; `typed`: results say of what type they are. `None`: it is a
/// notification, which gets no answer.
pub fn message(call: &Call, says: Says<'_>, typed: bool) -> Option<String> {
    call.id.as_ref().map(|id| message_to(call, id, says, typed))
}

fn message_to(call: &Call, id: &Id, says: Says<'_>, typed: bool) -> String {
    let kind = if typed {
        "\"resultType\":\"complete\","
    } else {
        ""
    };
    let id = id.as_json();
    let result =
        |result: &str| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{{kind}{result}}}}}");
    let structured = |text: &str| {
        let structured = structured(&call.output, text).filter(|_| call.is_tool_call());
        structured.map_or_else(String::new, |it| format!("\"structuredContent\":{it},"))
    };
    let content = |text: &str, is_error: bool| {
        // A failure need not fit.
        let structured = if is_error {
            String::new()
        } else {
            structured(text)
        };
        let text = quote(text);
        result(&format!(
            "\"content\":[{{\"type\":\"text\",\"text\":{text}}}],{structured}\"isError\":{is_error}"
        ))
    };
    match says {
        Says::Text(text) => content(text, false),
        Says::Failure(text) if call.is_tool_call() => content(text, true),
        Says::Failure(message) => error(id, INTERNAL_ERROR, message),
        Says::Nothing => {
            let structured = structured("");
            result(&format!("\"content\":[],{structured}\"isError\":false"))
        }
        Says::Error { code, message } => error(id, code, message),
        Says::Broken => {
            let whole = content(
                "{\"status\": \"ok\", \"data\": {\"items\": [1, 2, \"three",
                false,
            );
            whole.split("\"}]").next().unwrap_or_default().to_owned()
        }
    }
}

fn error(id: &str, code: i64, message: &str) -> String {
    let message = quote(message);
    format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{{\"code\":{code},\"message\":{message}}}}}"
    )
}

/// The body of an answer with an HTTP status that says an error: JSON-RPC's, as servers and their
/// gateways send it. `id` is `None` where no single call is answered.
pub fn error_body(id: Option<&Id>, message: &str) -> String {
    error(id.map_or("null", Id::as_json), INTERNAL_ERROR, message)
}

/// What a server says that has lost the session that a request names: 404.
pub fn session_expired() -> WireReply {
    WireReply {
        status: StatusCode::NOT_FOUND,
        headers: json_headers(),
        body: Bytes::from(error("null", INVALID_REQUEST, "Session not found")),
    }
}

fn json_headers() -> HeaderMap {
    HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/json"))])
}

/// The headers of an answer that is a stream of events.
pub fn stream_headers() -> HeaderMap {
    HeaderMap::from_iter([
        (CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        (
            CACHE_CONTROL,
            HeaderValue::from_static("no-cache, no-transform"),
        ),
    ])
}

/// A message as one server-sent event.
pub fn event(message: &str) -> Bytes {
    Template::Fresh(Framing::Sse).frame(&Made::event("message", message.as_bytes()))
}

/// The `number`th notification, from 1, that a call is still being worked on: of its progress if it
/// asked for that, else a line for the client's log.
pub fn progress(call: &Call, number: u64) -> String {
    let params = match &call.progress_token {
        Some(token) => {
            format!("\"method\":\"notifications/progress\",\"params\":{{\"progressToken\":{token},\"progress\":{number},\"message\":\"still working\"}}")
        }
        None => {
            "\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\"data\":\"still working\"}".to_owned()
        }
    };
    format!("{{\"jsonrpc\":\"2.0\",{params}}}")
}
