//! `error`: a synthetic error of a tool.

use http::header::RETRY_AFTER;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde_json::{Value, json};
use squall_documents::{At, Fields, ValueReader};

use super::answers::{AS_RESULT, error_answer, error_reply, reply, text};
use crate::amounts::retry_after;
use crate::changes::{ResultChange, Tools};
use crate::fault::{Fault, IN_MCP};
use crate::faults::fixed::answer;
use crate::plan::ToolSays;

/// `error_code` 503, `body` or a JSON error with `message`, `response_headers`, `retry_after`.
///
/// MCP has three places for an error. An explicit code selects one, and HTTP-only parameters select
/// HTTP. Otherwise it is a failure of the tool.
pub(super) fn read(fields: &mut Fields<'_, '_>, _: &Tools) -> Fault {
    let code = read_code(fields);
    let message = fields.text("message", "What the error says.");
    let message = message.map(|message| message.value);
    let body = fields.any("body", "The body of the response.");
    let wait = retry_after(fields);
    let headers = fields.field("response_headers", "Headers of the response.", |value| {
        value.pairs("a map from name to value", read_header)
    });
    let status = match code {
        Some(Code::Http(status)) => status,
        Some(Code::Protocol(_)) | None => StatusCode::SERVICE_UNAVAILABLE,
    };
    if body.is_some() && message.is_some() {
        fields.error("message", "write either `message` or `body`, not both");
    }
    let mut reply = match body {
        Some(body) => reply(status, &body.value.to_json()),
        None => error_reply(status, message.as_deref()),
    };
    if let Some(wait) = wait {
        // The header only has whole seconds (RFC 9110 §10.2.3); rounded up.
        let seconds = wait.as_millis().div_ceil(1000).to_string();
        let value = HeaderValue::try_from(seconds).expect("digits are a header value");
        reply.headers.insert(RETRY_AFTER, value);
    }
    for (_, (name, value)) in headers.unwrap_or_default() {
        reply.headers.insert(name, value);
    }
    let of_http = ["error_code", "retry_after", "response_headers"];
    let of_http = of_http.into_iter().any(|field| fields.has(field));
    let or_status = |message: Option<String>| {
        let words = reply.status.canonical_reason().unwrap_or("error");
        message.unwrap_or_else(|| words.to_owned())
    };
    let says = match (code, body) {
        (Some(Code::Protocol(code)), _) => {
            refuse_with_protocol_code(fields);
            let message = message.unwrap_or_else(|| "Internal error".to_owned());
            Some(ToolSays::ProtocolError { code, message })
        }
        (_, Some(_)) => None,
        (_, None) if of_http => Some(ToolSays::Status(or_status(message))),
        (_, None) => Some(ToolSays::Failure(message)),
    };
    let code = match code {
        Some(Code::Protocol(code)) => json!(code),
        Some(Code::Http(_)) | None => json!(reply.status.as_u16()),
    };
    let said = text(&reply.body);
    let mut parameters = json!({
        "error_code": code,
        "body": said,
        "response_headers": header_map(&reply.headers),
    });
    if matches!(says, Some(ToolSays::Failure(_))) {
        parameters[IN_MCP] = json!(AS_RESULT);
    }
    answer(parameters, error_answer(reply, says))
        .in_results(move |_, _, _| ResultChange::Failure(said.clone()))
}

/// A code that selects MCP's place for the error.
#[derive(Clone, Copy)]
enum Code {
    /// A status.
    Http(StatusCode),
    /// A JSON-RPC error code.
    Protocol(i64),
}

fn read_code(fields: &mut Fields<'_, '_>) -> Option<Code> {
    let about = "Status of the response, 200 to 599, or on MCP calls a code of JSON-RPC, -32768 to -32000; default \
                 503.";
    fields.parsed("error_code", about, |text| {
        let status = || StatusCode::from_bytes(text.as_bytes()).ok();
        match text.parse() {
            Ok(code @ -32768..=-32000) => Some(Code::Protocol(code)),
            Ok(200..=599) => status().map(Code::Http),
            _ => None,
        }
        .ok_or_else(|| {
            format!(
                "found `{text}`, expected a status from 200 to 599, and for MCP -32768 to -32000"
            )
        })
    })
}

/// Rejects parameters that only apply to HTTP errors.
fn refuse_with_protocol_code(fields: &mut Fields<'_, '_>) {
    for field in ["body", "response_headers", "retry_after"] {
        if fields.has(field) {
            let message = format!(
                "`{field}` belongs to an error of HTTP; a negative `error_code` is one of JSON-RPC's, \
                 which takes `message`"
            );
            fields.error(field, message);
        }
    }
}

/// Framing headers, which only Squall sets.
const FRAMING: [&str; 3] = ["content-length", "transfer-encoding", "connection"];

fn read_header(
    name: &At<String>,
    value: &mut ValueReader<'_, '_>,
) -> Option<(HeaderName, HeaderValue)> {
    let text = value.text()?.value;
    let name = &name.value;
    let typed = HeaderName::try_from(name).ok();
    let typed = typed.zip(HeaderValue::try_from(&text).ok());
    match &typed {
        Some((header, _)) if FRAMING.contains(&header.as_str()) => {
            value.error(format!(
                "`{name}` frames the message and is set by Squall; leave it out"
            ));
        }
        Some(_) => {}
        None => value.error(format!("`{name}: {text}` is no valid header")),
    }
    typed
}

fn header_map(headers: &HeaderMap) -> Value {
    let pairs = headers.iter().map(|(name, value)| {
        (
            name.to_string(),
            json!(String::from_utf8_lossy(value.as_bytes())),
        )
    });
    Value::Object(pairs.collect())
}
