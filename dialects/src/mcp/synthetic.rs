//! Synthetic messages of a server: results, errors, notifications.

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde_json::{Value as Json, json};

use super::request::{Accepts, Call, Id};
use super::structured::structured;
use crate::errors::WireReply;
use crate::stream::{Framing, Made};

/// JSON-RPC: the request is not valid here; what servers answer to sessions they do not know.
const INVALID_REQUEST: i64 = -32600;
/// JSON-RPC: the server failed.
pub const INTERNAL_ERROR: i64 = -32603;

/// What the text of a broken result begins with.
const BROKEN: &str = "{\"status\": \"ok\", \"data\": {\"items\": [1, 2, \"three";

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
    let messages = calls
        .iter()
        .filter_map(|(call, says)| message(call, *says, layout.typed));
    let messages: Vec<String> = messages.collect();
    if !layout.accepts.json && layout.accepts.stream {
        let events: Vec<Bytes> = messages.iter().map(|message| event(message)).collect();
        return WireReply {
            status: StatusCode::OK,
            headers: stream_headers(),
            body: events.concat().into(),
        };
    }
    let is_broken = calls.iter().any(|(_, says)| *says == Says::Broken);
    json_reply(
        StatusCode::OK,
        match (layout.batch, is_broken) {
            (false, _) => messages.concat(),
            (true, true) => format!("[{}", messages.join(",")),
            (true, false) => format!("[{}]", messages.join(",")),
        },
    )
}

/// The message that answers a call; `typed`: results say of what type they are. `None`: it is a
/// notification, which gets no answer.
pub fn message(call: &Call, says: Says<'_>, typed: bool) -> Option<String> {
    let id = call.id.as_ref()?;
    let result = |content: Json, structured: Option<Json>, is_error: bool| {
        let mut result = json!({});
        if typed {
            result["resultType"] = "complete".into();
        }
        result["content"] = content;
        if let Some(structured) = structured {
            result["structuredContent"] = structured;
        }
        result["isError"] = is_error.into();
        json!({ "jsonrpc": "2.0", "id": id.to_json(), "result": result }).to_string()
    };
    let text = |text: &str| json!([{ "type": "text", "text": text }]);
    let structured = |text: &str| structured(&call.output, text).filter(|_| call.is_tool_call());
    Some(match says {
        Says::Text(said) => result(text(said), structured(said), false),
        // A failure need not fit.
        Says::Failure(said) if call.is_tool_call() => result(text(said), None, true),
        Says::Failure(message) => error(Some(id), INTERNAL_ERROR, message),
        Says::Nothing => result(json!([]), structured(""), false),
        Says::Error { code, message } => error(Some(id), code, message),
        Says::Broken => {
            let whole = result(text(BROKEN), structured(BROKEN), false);
            whole.split("\"}]").next().unwrap_or_default().to_owned()
        }
    })
}

fn error(id: Option<&Id>, code: i64, message: &str) -> String {
    let error = json!({ "code": code, "message": message });
    json!({ "jsonrpc": "2.0", "id": id.map(Id::to_json), "error": error }).to_string()
}

/// The body of an answer with an HTTP status that says an error: JSON-RPC's, as servers and their
/// gateways send it. `id` is `None` where no single call is answered.
pub fn error_body(id: Option<&Id>, message: &str) -> String {
    error(id, INTERNAL_ERROR, message)
}

/// The answer of a server that has lost the session that a request names: 404.
pub fn session_expired() -> WireReply {
    let body = error(None, INVALID_REQUEST, "Session not found");
    json_reply(StatusCode::NOT_FOUND, body)
}

fn json_reply(status: StatusCode, body: String) -> WireReply {
    let json = HeaderValue::from_static("application/json");
    WireReply {
        status,
        headers: HeaderMap::from_iter([(CONTENT_TYPE, json)]),
        body: body.into(),
    }
}

/// The headers of an answer that is a stream of events.
pub fn stream_headers() -> HeaderMap {
    let fields = [
        (CONTENT_TYPE, "text/event-stream"),
        (CACHE_CONTROL, "no-cache, no-transform"),
    ];
    let fields = fields.map(|(name, value)| (name, HeaderValue::from_static(value)));
    HeaderMap::from_iter(fields)
}

/// A message as one server-sent event.
pub fn event(message: &str) -> Bytes {
    Framing::Sse.first_frame(&Made::event("message", message))
}

/// The `number`th notification, from 1, that a call is still being worked on: of its progress if it
/// asked for that, else a line for the client's log.
pub fn progress(call: &Call, number: u64) -> String {
    let notification = match &call.progress_token {
        Some(token) => json!({
            "jsonrpc": "2.0",
            "method": "notifications/progress",
            "params": {
                "progressToken": token.to_json(),
                "progress": number,
                "message": "still working",
            },
        }),
        None => json!({
            "jsonrpc": "2.0",
            "method": "notifications/message",
            "params": { "level": "info", "data": "still working" },
        }),
    };
    notification.to_string()
}
