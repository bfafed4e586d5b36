//! Synthetic server messages: results, errors, notifications.

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde_json::{Value as Json, json};

use super::request::{Accepts, Call, Id};
use super::structured::structured;
use crate::errors::WireReply;
use crate::stream::{Framing, SyntheticEvent};

/// JSON-RPC: invalid request; servers also send it for unknown sessions.
const INVALID_REQUEST: i64 = -32600;
/// JSON-RPC: the server failed.
pub const INTERNAL_ERROR: i64 = -32603;

/// The message of a failure without one.
const UNAVAILABLE: &str = "Service Unavailable";
/// The start of a broken result's text.
const BROKEN: &str = "{\"status\": \"ok\", \"data\": {\"items\": [1, 2, \"three";

/// The content of a response to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Says<'a> {
    /// A result with this text; for a tool also in its declared structure.
    Text(&'a str),
    /// A result that reports a failure of the tool (`isError`), which the model can read. `None`: with the message of the
    /// reference servers.
    Failure(Option<&'a str>),
    /// A result without content; for a tool with the minimum of its declared structure.
    Nothing,
    /// A protocol error, which only the client's code sees.
    Error {
        /// JSON-RPC's code.
        code: i64,
        /// The error message.
        message: &'a str,
    },
    /// A result that is truncated inside its text.
    Broken,
}

/// The layout of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// The forms that the agent accepts.
    pub accepts: Accepts,
    /// Whether the requests were sent as a list, so that the responses are a list too.
    pub batch: bool,
    /// Whether results contain their type (`resultType`), as required since 2026-07-28.
    pub typed: bool,
}

/// The response to these calls; notifications get none.
///
/// A failure is a tool result for tool calls, and a protocol error for other calls.
pub fn answer(calls: &[(&Call, Says<'_>)], layout: Layout) -> WireReply {
    let messages = calls
        .iter()
        .filter_map(|(call, says)| message(call, *says, layout.typed));
    let messages: Vec<String> = messages.collect();
    let streams = calls.iter().any(|(call, _)| call.streams());
    if streams || (!layout.accepts.json && layout.accepts.stream) {
        let events: Vec<Bytes> = messages
            .iter()
            .map(|message| event(message, streams))
            .collect();
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

/// The message that responds to a call; `typed`: results contain their type. `None`: the call is a notification,
/// which gets no response.
pub fn message(call: &Call, says: Says<'_>, typed: bool) -> Option<String> {
    let id = call.id.as_ref()?;
    if let Some(agent) = &call.agent {
        let result = |result: Json| {
            json!({ "jsonrpc": "2.0", "id": id.to_json(), "result": result }).to_string()
        };
        return Some(match says {
            Says::Text(text) => result(agent.replied(text)),
            Says::Failure(message) if agent.has_result() => {
                result(agent.failed(message.unwrap_or(UNAVAILABLE)))
            }
            Says::Failure(message) => {
                error(Some(id), INTERNAL_ERROR, message.unwrap_or(UNAVAILABLE))
            }
            Says::Nothing => result(agent.nothing()),
            Says::Error { code, message } => error(Some(id), code, message),
            Says::Broken => broken(&result(agent.replied(BROKEN))),
        });
    }
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
        Says::Failure(message) => {
            let message = message.map_or_else(|| unavailable(call), str::to_owned);
            if call.is_tool_call() {
                // A failure need not match the declared structure.
                result(text(&message), None, true)
            } else {
                error(Some(id), INTERNAL_ERROR, &message)
            }
        }
        Says::Nothing => result(json!([]), structured(""), false),
        Says::Error { code, message } => error(Some(id), code, message),
        Says::Broken => broken(&result(text(BROKEN), structured(BROKEN), false)),
    })
}

/// The beginning of a message, up to the end of its first text.
fn broken(whole: &str) -> String {
    whole.split("\"}]").next().unwrap_or_default().to_owned()
}

/// The message of the reference servers for a tool that failed.
fn unavailable(call: &Call) -> String {
    match &call.tool {
        Some(tool) => format!("Error executing tool {tool}: Service Unavailable"),
        None => UNAVAILABLE.to_owned(),
    }
}

fn error(id: Option<&Id>, code: i64, message: &str) -> String {
    let error = json!({ "code": code, "message": message });
    json!({ "jsonrpc": "2.0", "id": id.map(Id::to_json), "error": error }).to_string()
}

/// The body of a response with an HTTP error status: a JSON-RPC error, as servers and gateways send it. `id` is
/// `None` if it does not respond to a single call.
pub fn error_body(id: Option<&Id>, message: &str) -> String {
    error(id, INTERNAL_ERROR, message)
}

/// The response of a server that does not know the session of a request: 404.
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

/// The headers of a response that is an event stream.
pub fn stream_headers() -> HeaderMap {
    let fields = [
        (CONTENT_TYPE, "text/event-stream"),
        (CACHE_CONTROL, "no-cache, no-transform"),
    ];
    let fields = fields.map(|(name, value)| (name, HeaderValue::from_static(value)));
    HeaderMap::from_iter(fields)
}

/// A message as one server-sent event; those of agents have no name.
pub fn event(message: &str, is_of_agent: bool) -> Bytes {
    Framing::Sse.first_frame(&if is_of_agent {
        SyntheticEvent::data(message)
    } else {
        SyntheticEvent::event("message", message)
    })
}

/// The notification with this number, from 1, that a call is still in progress. It is a progress notification if
/// the call requested those, or else a log message; for a call of an agent an update of its task.
pub fn progress(call: &Call, number: u64) -> String {
    let notification = match &call.progress_token {
        _ if let Some((agent, id)) = call.agent.as_ref().zip(call.id.as_ref()) => {
            json!({ "jsonrpc": "2.0", "id": id.to_json(), "result": agent.progress() })
        }
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
