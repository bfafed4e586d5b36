//! Synthetic responses of tools.

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, StatusCode};
use serde_json::{Value, json};

use crate::fault::Fault;
use crate::faults::fixed::answer;
use crate::plan::{PlannedAnswer, ToolAnswer, ToolSays};
use squall_dialects::WireReply;

/// A tool's response in plain HTTP, and its outcome in MCP.
pub(super) fn tool_answer(parameters: Value, plain: WireReply, says: ToolSays) -> Fault {
    answer(parameters, PlannedAnswer::Tool(ToolAnswer { plain, says }))
}

/// The value of `in_mcp` without parameters that only apply to HTTP or JSON-RPC.
pub(super) const AS_RESULT: &str = "result with isError";

/// An error, and what it is in MCP; `None`: the same reply.
pub(super) fn error_answer(plain: WireReply, says: Option<ToolSays>) -> PlannedAnswer {
    match says {
        None => PlannedAnswer::Reply(plain),
        Some(says) => PlannedAnswer::Tool(ToolAnswer { plain, says }),
    }
}

/// A tool's success with the reply's body as its result.
pub(super) fn says(plain: WireReply) -> PlannedAnswer {
    let says = ToolSays::Text(text(&plain.body));
    PlannedAnswer::Tool(ToolAnswer { plain, says })
}

/// A simple JSON error body, as in most HTTP tools.
pub(super) fn error_reply(status: StatusCode, message: Option<&str>) -> WireReply {
    let message = message.or(status.canonical_reason()).unwrap_or("error");
    reply(
        status,
        &json!({ "error": { "code": status.as_u16(), "message": message } }),
    )
}

/// A reply with a text or a JSON value as its body; a text with a JSON document counts as JSON.
pub(super) fn reply(status: StatusCode, body: &Value) -> WireReply {
    match body {
        Value::String(text) => {
            let document = text.trim_start().starts_with(['{', '['])
                && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
            typed(
                status,
                if document {
                    "application/json"
                } else {
                    "text/plain; charset=utf-8"
                },
                text,
            )
        }
        value => typed(status, "application/json", &value.to_string()),
    }
}

pub(super) fn typed(status: StatusCode, content_type: &'static str, body: &str) -> WireReply {
    let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(content_type))]);
    WireReply {
        status,
        headers,
        body: Bytes::copy_from_slice(body.as_bytes()),
    }
}

pub(super) fn text(body: &Bytes) -> String {
    String::from_utf8_lossy(body).into_owned()
}
