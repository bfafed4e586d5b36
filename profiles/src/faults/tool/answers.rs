//! Synthetic answers of tools.

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, StatusCode};
use serde_json::{Value, json};

use crate::faults::fixed::Fixed;
use crate::plan::{Answer, Bypass, Plan, Reply, ToolAnswer, ToolSays, VerdictIndex};

/// A tool's answer: in plain HTTP, and what it says in MCP.
pub(super) fn tool_answer(
    parameters: Value,
    plain: Reply,
    says: ToolSays,
) -> Fixed<impl Fn(&mut Plan, VerdictIndex) -> Result<(), Bypass> + Send + Sync + 'static> {
    let answer = ToolAnswer { plain, says };
    Fixed::new(parameters, move |plan: &mut Plan, verdict| {
        plan.answer(verdict, Answer::Tool(answer.clone()))
    })
}

/// Where an `error` is said in MCP, which has three places for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ErrorLayer {
    /// In the tool's result, for the model to see; `None`: in words of its own.
    Tool(Option<String>),
    /// In the protocol around the call, under this code and in these words.
    Protocol(i64, String),
    /// In HTTP around that, with these words in the body.
    Http(String),
    /// In HTTP, with a body that was given.
    Given,
}

/// The value of `in_mcp` where nothing is written that only HTTP or JSON-RPC can say.
pub(super) const AS_RESULT: &str = "result with isError";

/// An error in the place that MCP has for it.
pub(super) fn error_answer(plain: Reply, layer: ErrorLayer) -> Answer {
    let says = match layer {
        ErrorLayer::Given => return Answer::Reply(plain),
        ErrorLayer::Tool(message) => ToolSays::Failure(message),
        ErrorLayer::Http(message) => ToolSays::Status(message),
        ErrorLayer::Protocol(code, message) => ToolSays::ProtocolError { code, message },
    };
    Answer::Tool(ToolAnswer { plain, says })
}

/// A tool's success with the reply's body for what came of it.
pub(super) fn says(plain: Reply) -> Answer {
    let says = ToolSays::Text(text(&plain.body));
    Answer::Tool(ToolAnswer { plain, says })
}

/// A JSON error body, as plain as most HTTP tools have it.
pub(super) fn error_reply(status: StatusCode, message: Option<&str>) -> Reply {
    let message = message.or(status.canonical_reason()).unwrap_or("error");
    reply(
        status,
        &json!({ "error": { "code": status.as_u16(), "message": message } }),
    )
}

/// A reply with a text or a JSON value for body; a text that is a JSON document counts as one.
pub(super) fn reply(status: StatusCode, body: &Value) -> Reply {
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

pub(super) fn typed(status: StatusCode, content_type: &'static str, body: &str) -> Reply {
    let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(content_type))]);
    Reply {
        status,
        headers,
        body: Bytes::copy_from_slice(body.as_bytes()),
    }
}

pub(super) fn text(body: &Bytes) -> String {
    String::from_utf8_lossy(body).into_owned()
}
