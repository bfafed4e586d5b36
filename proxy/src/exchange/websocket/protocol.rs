//! What the messages of a socket mean: which begin a call, whose response an event belongs to, what ends
//! it, and how an error is reported.
//!
//! | | Responses | Realtime |
//! |---|---|---|
//! | calls in progress | one in each lane (`stream_id`) | one in the conversation, others beside it |
//! | an event belongs to | the call of its lane | the call of its response, else the first one |
//! | the server begins a response | never | when it hears the end of speech |
//! | an error | `error` with `status` and `headers` | a failed response; `error` if the request is wrong |

use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use squall_dialects::Dialect;
use tokio::sync::mpsc;

/// A dialect's protocol on a WebSocket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    Responses,
    Realtime,
}

/// A response that the upstream has not ended.
pub(super) struct OpenCall {
    pub(super) lane: Option<String>,
    /// The id that the agent gave the message.
    pub(super) event_id: Value,
    /// The id of its response, once known, where the protocol routes by it.
    pub(super) response: Option<String>,
    pub(super) events: mpsc::UnboundedSender<CallEvent>,
}

/// An event of a response.
pub(super) struct CallEvent {
    pub(super) text: Bytes,
    pub(super) ends: bool,
}

/// The members of a message that route it.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct Routing<'m> {
    #[serde(rename = "type")]
    kind: Value,
    stream_id: Value,
    /// False: the call prepares the connection, and gets no output.
    generate: Value,
    pub(super) event_id: Value,
    response_id: Value,
    #[serde(borrow)]
    response: Option<&'m RawValue>,
    #[serde(borrow)]
    error: Option<&'m RawValue>,
}

/// The ids of a response or of an error.
#[derive(Deserialize, Default)]
#[serde(default)]
struct MessageIds {
    id: Value,
    /// The message that an error is about.
    event_id: Value,
}

impl MessageIds {
    fn of(object: Option<&RawValue>) -> Self {
        let ids = object.and_then(|object| serde_json::from_str(object.get()).ok());
        ids.unwrap_or_default()
    }
}

impl<'m> Routing<'m> {
    /// Reads a message; it has no members if it is not a JSON object.
    pub(super) fn of(text: &'m [u8]) -> Self {
        serde_json::from_slice(text).unwrap_or_default()
    }

    pub(super) fn kind(&self) -> &str {
        self.kind.as_str().unwrap_or_default()
    }

    /// The lane that it names.
    pub(super) fn lane(&self) -> Option<String> {
        match &self.stream_id {
            Value::Null => None,
            Value::String(lane) => Some(lane.clone()),
            other => Some(other.to_string()),
        }
    }

    /// Whether the call only prepares the connection.
    pub(super) fn is_warm_up(&self) -> bool {
        self.generate == false
    }

    /// The id of its response.
    fn response(&self) -> Option<String> {
        let id = match &self.response_id {
            Value::Null => MessageIds::of(self.response).id,
            id => id.clone(),
        };
        id.as_str().map(str::to_owned)
    }
}

impl Protocol {
    /// The protocol of a dialect that works over WebSocket.
    pub(super) fn of(dialect: &dyn Dialect) -> Option<Self> {
        match dialect.name() {
            "openai-responses" => Some(Self::Responses),
            "openai-realtime" => Some(Self::Realtime),
            _ => None,
        }
    }

    /// Whether events keep their order across calls.
    pub(super) fn is_one_conversation(self) -> bool {
        self == Self::Realtime
    }

    /// Whether the server begins a response with this event, if it belongs to no call.
    pub(super) fn begins_unasked(self, event: &Routing<'_>) -> bool {
        self == Self::Realtime && event.kind() == "response.created"
    }

    /// The call that an event belongs to, by its place.
    pub(super) fn call_of(self, event: &Routing<'_>, calls: &mut [OpenCall]) -> Option<usize> {
        if self == Self::Responses {
            let lane = event.lane();
            return calls.iter().position(|call| call.lane == lane);
        }
        let Some(response) = event.response() else {
            return (!calls.is_empty()).then_some(0);
        };
        let is_of = |call: &OpenCall| call.response.as_ref() == Some(&response);
        calls.iter().position(is_of).or_else(|| {
            let waits = |call: &OpenCall| call.response.is_none();
            let begins = event.kind() == "response.created";
            let place = calls.iter().position(waits).filter(|_| begins)?;
            calls[place].response = Some(response.clone());
            Some(place)
        })
    }

    /// Whether an event ends the response of the call that it belongs to.
    pub(super) fn ends_response(self, event: &Routing<'_>, call: &OpenCall) -> bool {
        match (self, event.kind()) {
            (
                Self::Responses,
                "response.completed" | "response.failed" | "response.incomplete" | "error",
            )
            | (Self::Realtime, "response.done") => true,
            // An error in a response is recoverable, and the response ends itself.
            (Self::Realtime, "error") if call.response.is_none() => {
                let about = MessageIds::of(event.error).event_id;
                about.is_null() || about == call.event_id
            }
            _ => false,
        }
    }

    /// Whether an event passes although a rule has replaced the rest of the response.
    pub(super) fn is_beside(self, event: &Routing<'_>) -> bool {
        self == Self::Realtime && !event.kind().starts_with("response.")
    }

    /// The events for a response that is an error (its status, header fields and body). `event_id`:
    /// of the message that it answers.
    pub(super) fn refusal(
        self,
        status: StatusCode,
        headers: &HeaderMap,
        body: &[u8],
        event_id: &Value,
    ) -> Vec<Bytes> {
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let error = body.get("error").cloned().unwrap_or_else(|| {
            json!({ "type": "server_error", "code": null, "message": status.canonical_reason(), "param": null })
        });
        let events = match self {
            Self::Responses => vec![error_event(status, headers, &error)],
            Self::Realtime => realtime_refusal(status, headers, error, event_id),
        };
        let texts = events.iter().map(|event| event.to_string().into());
        texts.collect()
    }
}

fn error_event(status: StatusCode, headers: &HeaderMap, error: &Value) -> Value {
    let fields = headers.iter().filter(|(name, _)| {
        !matches!(
            **name,
            header::CONTENT_LENGTH
                | header::CONTENT_TYPE
                | header::TRANSFER_ENCODING
                | header::CONNECTION
        )
    });
    let fields: serde_json::Map<String, Value> = fields
        .filter_map(|(name, value)| Some((name.as_str().to_owned(), value.to_str().ok()?.into())))
        .collect();
    json!({ "type": "error", "status": status.as_u16(), "error": error, "headers": fields })
}

/// A limit or a failure of the server is a response that failed; what is wrong with the request is
/// an `error`.
///
/// Source: for the former the events in openai-python issue 2502 and openai-realtime-api-beta issue 116;
/// for the latter OpenAI's reference of server events.
fn realtime_refusal(
    status: StatusCode,
    headers: &HeaderMap,
    mut error: Value,
    event_id: &Value,
) -> Vec<Value> {
    let id = headers.get("x-request-id");
    let id = id.and_then(|id| id.to_str().ok()).unwrap_or("req_0");
    let id = id.strip_prefix("req_").unwrap_or(id);
    let is_failure = status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error();
    if !is_failure {
        if let Some(error) = error.as_object_mut() {
            error.insert("event_id".to_owned(), event_id.clone());
        }
        return vec![json!({ "type": "error", "event_id": format!("event_{id}"), "error": error })];
    }
    let response = |status: &str, details: Value, usage: Value| {
        json!({
            "object": "realtime.response", "id": format!("resp_{id}"), "status": status,
            "status_details": details, "output": [], "usage": usage, "metadata": null,
        })
    };
    let error =
        json!({ "type": error["type"], "code": error["code"], "message": error["message"] });
    let details = json!({ "type": "failed", "error": error });
    let usage = json!({ "total_tokens": 0, "input_tokens": 0, "output_tokens": 0 });
    vec![
        json!({
            "type": "response.created", "event_id": format!("event_{id}0"),
            "response": response("in_progress", Value::Null, Value::Null),
        }),
        json!({
            "type": "response.done", "event_id": format!("event_{id}1"),
            "response": response("failed", details, usage),
        }),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls by the id of their message, and of their response if it has begun.
    fn calls(ids: &[(&str, Option<&str>)]) -> Vec<OpenCall> {
        let call = |(message, response): &(&str, Option<&str>)| OpenCall {
            lane: None,
            event_id: json!(message),
            response: response.map(str::to_owned),
            events: mpsc::unbounded_channel().0,
        };
        ids.iter().map(call).collect()
    }

    #[test]
    #[rustfmt::skip]
    fn an_event_of_a_realtime_session_belongs_to_the_call_of_its_response() {
        let open = [("a", Some("r1")), ("b", None), ("c", Some("r3"))];
        for (event, call, ends) in [
            (json!({ "type": "response.output_text.delta", "response_id": "r3" }), Some(2), false),
            (json!({ "type": "response.done", "response": { "id": "r3" } }), Some(2), true),
            (json!({ "type": "response.created", "response": { "id": "r2" } }), Some(1), false),
            (json!({ "type": "response.done", "response": { "id": "r4" } }), None, false),
            (json!({ "type": "input_audio_buffer.speech_started" }), Some(0), false),
            (json!({ "type": "error", "error": { "event_id": null } }), Some(0), false),
        ] {
            let event = event.to_string();
            let routing = Routing::of(event.as_bytes());
            let mut calls = calls(&open);
            let found = Protocol::Realtime.call_of(&routing, &mut calls);
            let ended = found.is_some_and(|it| Protocol::Realtime.ends_response(&routing, &calls[it]));
            assert_eq!((found, ended), (call, ends), "{event}");
        }
        for (about, ends) in [(json!(null), true), (json!("a"), true), (json!("x"), false)] {
            let event = json!({ "type": "error", "error": { "event_id": about } }).to_string();
            let routing = Routing::of(event.as_bytes());
            let call = &calls(&[("a", None)])[0];
            assert_eq!(Protocol::Realtime.ends_response(&routing, call), ends, "{event}");
        }
    }
}
