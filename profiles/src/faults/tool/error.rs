//! `error`: an error that the tool never sent.

use http::header::RETRY_AFTER;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde_json::{Map, Value, json};

use super::answers::{AS_RESULT, ErrorLayer, IN_MCP, error_answer, error_reply, reply, text};
use crate::dice::Dice;
use crate::fault::ResultChange;
use crate::faults::mode::{FaultMode, Told};
use crate::plan::{Plan, Reply, VerdictIndex};
use crate::profile::located::At;
use crate::profile::raw::RawRule;
use crate::profile::reader::Reader;

/// This one, said there.
#[derive(Debug, Clone, PartialEq)]
pub struct Error(Reply, ErrorLayer);

impl FaultMode for Error {
    const NAME: &'static str = "error";
    const PARAMETERS: &'static [&'static str] = &[
        "error_code",
        "message",
        "body",
        "response_headers",
        "retry_after",
    ];
    const TOLD: Option<Told<Self>> =
        Some(|Self(reply, _), _, _, _| ResultChange::Failure(text(&reply.body)));

    /// `error_code` 503, `body` or a JSON error with `message`, `response_headers`, `retry_after`.
    ///
    /// MCP says an error in one of three places: the code that is written chooses it, and what only HTTP
    /// can say chooses HTTP. With none of that it is the tool that failed.
    fn read(raw: &RawRule, reader: &mut Reader) -> Option<Self> {
        let code = raw.error_code.as_ref();
        let protocol = reader.protocol_code("error_code", code);
        let of_http = code.filter(|code| code.value.value() >= 0.0 || code.value.value().is_nan());
        let status = reader.status("error_code", of_http, 200);
        let status = status.unwrap_or(StatusCode::SERVICE_UNAVAILABLE);
        if let (Some(message), Some(_)) = (&raw.message, &raw.body) {
            let message_text =
                "`message` goes into the body Squall makes up; beside `body` it has no place";
            reader.error("message", message.position, message_text);
        }
        let mut reply = match &raw.body {
            Some(body) => reply(status, &body.value),
            None => error_reply(
                status,
                raw.message.as_ref().map(|message| message.value.as_str()),
            ),
        };
        if let Some(wait) = reader.seconds("retry_after", raw.retry_after.as_ref()) {
            // Whole seconds are all that the header can say (RFC 9110 §10.2.3); never less than asked.
            let seconds = wait.as_millis().div_ceil(1000).to_string();
            let value = HeaderValue::try_from(seconds).expect("digits are a header value");
            reply.headers.insert(RETRY_AFTER, value);
        }
        if let Some(headers) = &raw.response_headers {
            reader.below("response_headers", |reader| {
                for (name, value) in &headers.value.0 {
                    read_header(&name.value, value, &mut reply.headers, reader);
                }
            });
        }
        let message = raw.message.as_ref().map(|message| message.value.clone());
        let of_http =
            of_http.is_some() || raw.retry_after.is_some() || raw.response_headers.is_some();
        let or_status = |message: Option<String>| {
            let words = reply.status.canonical_reason().unwrap_or("error");
            message.unwrap_or_else(|| words.to_owned())
        };
        let layer = match (protocol, &raw.body) {
            (Some(code), _) => {
                refuse_with_protocol_code(raw, reader);
                let message = message.unwrap_or_else(|| "Internal error".to_owned());
                ErrorLayer::Protocol(code, message)
            }
            (None, Some(_)) => ErrorLayer::Given,
            (None, None) if of_http => ErrorLayer::Http(or_status(message)),
            (None, None) => ErrorLayer::Tool(message),
        };
        Some(Self(reply, layer))
    }

    fn apply(&self, plan: &mut Plan, verdict: VerdictIndex, _: &mut Dice) -> Result<(), String> {
        plan.answer(verdict, error_answer(&self.0, &self.1))
    }

    fn parameters(&self, into: &mut Map<String, Value>) {
        let Self(reply, layer) = self;
        let code = match layer {
            ErrorLayer::Protocol(code, _) => json!(code),
            ErrorLayer::Tool(_) | ErrorLayer::Http(_) | ErrorLayer::Given => {
                json!(reply.status.as_u16())
            }
        };
        into.insert("error_code".into(), code);
        into.insert("body".into(), json!(text(&reply.body)));
        into.insert("response_headers".into(), headers(&reply.headers));
        if matches!(layer, ErrorLayer::Tool(_)) {
            into.insert(IN_MCP.into(), json!(AS_RESULT));
        }
    }
}

/// What only an error of HTTP can have.
fn refuse_with_protocol_code(raw: &RawRule, reader: &mut Reader) {
    let positions = [
        ("body", raw.body.as_ref().map(|at| at.position)),
        (
            "response_headers",
            raw.response_headers.as_ref().map(|at| at.position),
        ),
        (
            "retry_after",
            raw.retry_after.as_ref().map(|at| at.position),
        ),
    ];
    for (field, position) in positions {
        if let Some(position) = position {
            let message = format!(
                "`{field}` belongs to an error of HTTP; a negative `error_code` is one of JSON-RPC's, \
                 which takes `message`"
            );
            reader.error(field, position, message);
        }
    }
}

/// Headers that say how the message is framed: Squall's own business.
const FRAMING: [&str; 3] = ["content-length", "transfer-encoding", "connection"];

fn read_header(name: &str, value: &At<String>, headers: &mut HeaderMap, reader: &mut Reader) {
    let typed = HeaderName::try_from(name)
        .ok()
        .zip(HeaderValue::try_from(&value.value).ok());
    match typed {
        Some((header, _)) if FRAMING.contains(&header.as_str()) => {
            let message = format!("`{name}` frames the message and is set by Squall; leave it out");
            reader.error(name, value.position, message);
        }
        Some((header, value)) => {
            headers.insert(header, value);
        }
        None => {
            let message = format!("`{name}: {}` is no valid header", value.value);
            reader.error(name, value.position, message);
        }
    }
}

fn headers(headers: &HeaderMap) -> Value {
    let pairs = headers.iter().map(|(name, value)| {
        (
            name.to_string(),
            json!(String::from_utf8_lossy(value.as_bytes())),
        )
    });
    Value::Object(pairs.collect())
}
