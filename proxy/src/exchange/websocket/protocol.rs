//! What the messages of a socket mean: which begin a call, whose response an event belongs to, what ends
//! it, and how an error is reported.
//!
//! | | Responses | Realtime | Gemini Live |
//! |---|---|---|---|
//! | calls in progress | one in each lane (`stream_id`) | one in the conversation, others beside it | one after the other |
//! | an event belongs to | the call of its lane | the call of its response, else the first one | the first one |
//! | the server begins a response | never | when it hears the end of speech | then, and for a text of `realtimeInput` |
//! | an error | `error` with `status` and `headers` | a failed response; `error` if the request is wrong | a Close frame |

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use squall_dialects::Dialect;
use tokio::sync::mpsc;

use super::live::LiveMessage;

/// A dialect's protocol on a WebSocket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    Responses,
    Realtime,
    Live,
}

/// A response that the upstream has not ended.
pub(super) struct OpenCall {
    pub(super) lane: Option<String>,
    /// The id that the agent gave the message.
    pub(super) event_id: Value,
    /// The model has begun its turn, where that shows which messages the turn is for.
    pub(super) has_begun: bool,
    /// The id of its response, once known, where the protocol routes by it.
    pub(super) response: Option<String>,
    pub(super) events: mpsc::UnboundedSender<CallEvent>,
    pub(super) beside: Rc<EventsBeside>,
}

/// An event of a response.
pub(super) struct CallEvent {
    pub(super) text: Bytes,
    pub(super) ends: bool,
}

/// The events beside a response that the agent has not got, while the call runs. An exchange that ends
/// a response early does not give them back.
pub(super) struct EventsBeside(RefCell<Option<VecDeque<Bytes>>>);

impl EventsBeside {
    pub(super) fn new() -> Rc<Self> {
        Rc::new(Self(RefCell::new(Some(VecDeque::new()))))
    }

    /// Keeps an event for the end of the call; false if the call has ended.
    pub(super) fn keep(&self, text: Bytes) -> bool {
        let mut kept = self.0.borrow_mut();
        kept.as_mut().map(|kept| kept.push_back(text)).is_some()
    }

    /// The agent gets this event.
    pub(super) fn said(&self, text: &[u8]) {
        if let Some(kept) = &mut *self.0.borrow_mut()
            && let Some(place) = kept.iter().position(|other| other == text)
        {
            kept.remove(place);
        }
    }

    /// The next event at the end of the call.
    pub(super) fn next(&self) -> Option<Bytes> {
        let mut kept = self.0.borrow_mut();
        let next = kept.as_mut().and_then(VecDeque::pop_front);
        if next.is_none() {
            *kept = None;
        }
        next
    }
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
    #[serde(borrow)]
    item: Option<&'m RawValue>,
    /// Those of a message of Gemini Live, which has no others.
    #[serde(skip)]
    pub(super) live: LiveMessage,
}

/// The members of a response, of an error or of an item.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Members {
    id: Value,
    metadata: Value,
    /// The message that an error is about.
    event_id: Value,
    code: Value,
    param: Value,
    #[serde(rename = "type")]
    kind: Value,
    role: Value,
}

/// The server refuses a call because another one is in progress.
const BUSY: &str = "conversation_already_has_active_response";

/// How codes of errors about other messages begin.
const OTHER_CODES: [&str; 5] = [
    "response_cancel_",
    "input_audio_buffer_",
    "output_audio_buffer_",
    "conversation_item_",
    "item_",
];

impl Members {
    fn of(object: Option<&RawValue>) -> Self {
        let members = object.and_then(|object| serde_json::from_str(object.get()).ok());
        members.unwrap_or_default()
    }

    /// Whether a Realtime error refuses this call.
    fn refuses(&self, call: &OpenCall) -> bool {
        // An error in a response is recoverable, and the response ends itself.
        if call.response.is_some() {
            return false;
        }
        if self.code == BUSY && self.event_id.is_null() {
            return true;
        }
        let code = self.code.as_str().unwrap_or_default();
        let param = self.param.as_str().unwrap_or_default();
        let is_of_other_message = OTHER_CODES.iter().any(|other| code.starts_with(other))
            || ["session", "item"].iter().any(|it| param.starts_with(it));
        self.event_id == call.event_id && (!self.event_id.is_null() || !is_of_other_message)
    }

    /// The call that a Realtime error refuses.
    fn refused(&self, calls: &[OpenCall]) -> Option<usize> {
        let is_refused = |call: &OpenCall| self.refuses(call);
        if self.code == BUSY {
            calls.iter().rposition(is_refused)
        } else {
            calls.iter().position(is_refused)
        }
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

    /// The metadata that it gives its response.
    pub(super) fn metadata(&self) -> Value {
        Members::of(self.response).metadata
    }

    /// The id of its response.
    fn response(&self) -> Option<String> {
        let id = match &self.response_id {
            Value::Null => Members::of(self.response).id,
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
            "gemini-live" => Some(Self::Live),
            _ => None,
        }
    }

    /// Reads a message; it has no members if it is not a JSON object.
    pub(super) fn read(self, text: &[u8]) -> Routing<'_> {
        match self {
            Self::Responses | Self::Realtime => Routing::of(text),
            Self::Live => Routing {
                live: LiveMessage::of(text),
                ..Routing::default()
            },
        }
    }

    /// Whether binary messages are read as texts are.
    pub(super) fn reads_binary(self) -> bool {
        self == Self::Live
    }

    /// What makes a message a call that stands alone, until a message of the session says more.
    pub(super) fn prefix(self) -> Bytes {
        Bytes::from_static(match self {
            Self::Responses | Self::Realtime => br#"{"stream":true,"#,
            Self::Live => br#"{"setup":{},"#,
        })
    }

    /// Whether a message of the agent begins a call. `calls`: those that the upstream has not ended.
    pub(super) fn begins(self, message: &Routing<'_>, calls: &[OpenCall]) -> bool {
        match self {
            Self::Responses | Self::Realtime => message.kind() == "response.create",
            // What is sent before the model begins belongs to the same turn.
            Self::Live => {
                message.live.demands_turn() && calls.last().is_none_or(|call| call.has_begun)
            }
        }
    }

    /// The request of a response that the server began by itself.
    pub(super) fn unasked(self) -> Bytes {
        Bytes::from_static(match self {
            Self::Responses | Self::Realtime => br#"{"type":"response.create"}"#,
            Self::Live => br#"{"realtimeInput":{}}"#,
        })
    }

    /// Whether events keep their order across calls.
    pub(super) fn is_one_conversation(self) -> bool {
        self != Self::Responses
    }

    /// Whether the server begins a response with this event, if it belongs to no call.
    pub(super) fn begins_unasked(self, event: &Routing<'_>) -> bool {
        match self {
            Self::Responses => false,
            Self::Realtime => event.kind() == "response.created",
            Self::Live => event.live.begins_turn(),
        }
    }

    /// The call that an event belongs to, by its place.
    pub(super) fn call_of(self, event: &Routing<'_>, calls: &mut [OpenCall]) -> Option<usize> {
        if self == Self::Responses {
            let lane = event.lane();
            return calls.iter().position(|call| call.lane == lane);
        }
        if self == Self::Live {
            let first = calls.first_mut()?;
            first.has_begun |= event.live.begins_turn();
            return Some(0);
        }
        let Some(response) = event.response() else {
            let first = (!calls.is_empty()).then_some(0);
            let is_error = event.kind() == "error";
            let refused = is_error.then(|| Members::of(event.error).refused(calls));
            return refused.flatten().or(first);
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
            (Self::Realtime, "error") => Members::of(event.error).refuses(call),
            (Self::Live, _) => event.live.ends_turn(),
            _ => false,
        }
    }

    /// Whether an event passes although a rule has replaced the rest of the response. Items of the
    /// model repeat the response.
    pub(super) fn is_beside(self, event: &Routing<'_>) -> bool {
        let is_of_model = || {
            let item = Members::of(event.item);
            item.role == "assistant" || item.kind == "function_call"
        };
        match self {
            Self::Responses => false,
            Self::Realtime => !event.kind().starts_with("response.") && !is_of_model(),
            Self::Live => !event.live.is_of_turn(),
        }
    }

    /// The events for a response that is an error (its status, header fields and body). `event_id`
    /// and `metadata`: of the message that it answers.
    pub(super) fn refusal(
        self,
        status: StatusCode,
        headers: &HeaderMap,
        body: &[u8],
        event_id: &Value,
        metadata: &Value,
    ) -> Vec<Bytes> {
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let error = body.get("error").cloned().unwrap_or_else(|| {
            json!({ "type": "server_error", "code": null, "message": status.canonical_reason(), "param": null })
        });
        let events = match self {
            Self::Responses => vec![error_event(status, headers, &error)],
            Self::Realtime => realtime_refusal(status, headers, error, event_id, metadata),
            // The Close frame has the error.
            Self::Live => body
                .get("goAway")
                .map(|it| json!({ "goAway": it }))
                .into_iter()
                .collect(),
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
    metadata: &Value,
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
            "status_details": details, "output": [], "usage": usage, "metadata": metadata,
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
    fn calls(ids: &[(Option<&str>, Option<&str>)]) -> Vec<OpenCall> {
        let call = |(message, response): &(Option<&str>, Option<&str>)| OpenCall {
            lane: None,
            event_id: json!(message),
            has_begun: false,
            response: response.map(str::to_owned),
            events: mpsc::unbounded_channel().0,
            beside: EventsBeside::new(),
        };
        ids.iter().map(call).collect()
    }

    #[test]
    #[rustfmt::skip]
    fn an_event_of_a_realtime_session_belongs_to_the_call_of_its_response() {
        let open = [(Some("a"), Some("r1")), (Some("b"), None), (Some("c"), Some("r3"))];
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
    }

    #[test]
    #[rustfmt::skip]
    fn a_realtime_error_ends_the_call_that_it_refuses() {
        let (running, waiting) = ((Some("a"), Some("r1")), (Some("b"), None));
        let (named, unnamed) = ([running, waiting], [(None, Some("r1")), (None, None)]);
        for (open, about, code, call, ends) in [
            (&named, json!("b"), BUSY, 1, true),
            (&named, json!("b"), "invalid_value", 1, true),
            (&named, json!(null), BUSY, 1, true),
            (&named, json!(null), "invalid_value", 0, false),
            (&named, json!("a"), "invalid_value", 0, false),
            (&named, json!("x"), BUSY, 0, false),
            (&unnamed, json!(null), BUSY, 1, true),
            (&unnamed, json!(null), "invalid_value", 1, true),
            (&unnamed, json!(null), "response_cancel_not_active", 0, false),
            (&unnamed, json!(null), "input_audio_buffer_commit_empty", 0, false),
            (&[(None, None), (None, None)], json!(null), BUSY, 1, true),
            (&[(None, None), (None, None)], json!(null), "invalid_value", 0, true),
            (&[(None, None), (None, None)], json!(null), "item_truncate_invalid_item_id", 0, false),
        ] {
            let event = json!({ "type": "error", "error": { "event_id": about, "code": code } }).to_string();
            let routing = Routing::of(event.as_bytes());
            let mut calls = calls(open);
            let found = Protocol::Realtime.call_of(&routing, &mut calls);
            let ended = found.is_some_and(|it| Protocol::Realtime.ends_response(&routing, &calls[it]));
            assert_eq!((found, ended), (Some(call), ends), "{event}");
        }
        let event = json!({ "type": "error", "error": { "event_id": null, "param": "session.voice" } }).to_string();
        let call = &calls(&[(None, None)])[0];
        assert!(!Protocol::Realtime.ends_response(&Routing::of(event.as_bytes()), call));
    }

    #[test]
    fn a_live_call_begins_after_the_model_began_the_one_before() {
        let [ask, said] = [
            r#"{"toolResponse":{}}"#,
            r#"{"serverContent":{"modelTurn":{}}}"#,
        ]
        .map(|text| Protocol::Live.read(text.as_bytes()));
        let mut open = calls(&[]);
        assert!(Protocol::Live.begins(&ask, &open));
        assert_eq!(Protocol::Live.call_of(&said, &mut open), None);
        open = calls(&[(None, None)]);
        assert!(!Protocol::Live.begins(&ask, &open));
        assert_eq!(Protocol::Live.call_of(&said, &mut open), Some(0));
        assert!(Protocol::Live.begins(&ask, &open));
    }

    #[test]
    fn items_of_the_model_are_not_beside_its_response() {
        for (event, is_beside) in [
            (json!({ "type": "session.updated" }), true),
            (
                json!({ "type": "conversation.item.done", "item": { "role": "user" } }),
                true,
            ),
            (
                json!({ "type": "conversation.item.done", "item": { "role": "assistant" } }),
                false,
            ),
            (
                json!({ "type": "conversation.item.added", "item": { "type": "function_call" } }),
                false,
            ),
            (json!({ "type": "response.done" }), false),
        ] {
            let event = event.to_string();
            let routing = Routing::of(event.as_bytes());
            assert_eq!(Protocol::Realtime.is_beside(&routing), is_beside, "{event}");
        }
    }
}
