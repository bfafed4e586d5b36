//! The answers that tools' faults make up.

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, StatusCode};
use serde_json::{Value, json};

use crate::plan::{Answer, Reply, ToolAnswer, ToolSays};

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

/// The parameter that says that MCP is told of an error in another place than HTTP; of the journal
/// alone, as it follows from what is written.
pub(super) const IN_MCP: &str = "in_mcp";
/// Its value where nothing is written that only HTTP or JSON-RPC can say.
pub(super) const AS_RESULT: &str = "result with isError";

/// An error in the place that MCP has for it.
pub(super) fn error_answer(reply: &Reply, layer: &ErrorLayer) -> Answer {
    let says = match layer {
        ErrorLayer::Given => return Answer::Reply(reply.clone()),
        ErrorLayer::Tool(message) => ToolSays::Failure(message.clone()),
        ErrorLayer::Http(message) => ToolSays::Status(message.clone()),
        ErrorLayer::Protocol(code, message) => ToolSays::ProtocolError {
            code: *code,
            message: message.clone(),
        },
    };
    Answer::Tool(ToolAnswer {
        plain: reply.clone(),
        says,
    })
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
