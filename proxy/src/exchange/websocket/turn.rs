//! One model call on a WebSocket, as an HTTP exchange.
//!
//! The exchange runs on an HTTP/1.1 connection in memory, as if the agent had sent a POST. Its
//! response becomes text messages again.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body::SizeHint;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use squall_dialects::stream::{Framing, Splitter};
use squall_journal::id::ExchangeId;
use tokio::io::duplex;
use tokio::sync::mpsc;

use super::live::{LiveMessage, closing};
use super::protocol::{CallEvent, EventsBeside, OpenCall, Protocol, Routing};
use super::state::SocketState;
use crate::abort::Abort;
use crate::body::scripted::Scripted;
use crate::body::{self, AgentBody};
use crate::exchange::connection::{Carried, CarriedRules, Ingress, RequestCarrier};
use crate::http1::Control;
use crate::upstream::Outgoing;

/// Bytes in flight on the connection in memory, in each direction.
const PIPE: usize = 64 << 10;

/// Longest error of a response that is read, bytes.
const ERROR: usize = 1 << 20;

/// Why rules do not apply to a compressed socket.
const COMPRESSED: &str =
    "the WebSocket was opened before, with compression; rules apply to the next one";

/// Why rules do not apply to a call that began while none was in force.
const STARTED: &str = "the call began before, on the same WebSocket";

/// A message that began a call, until its response has ended.
pub(super) struct SocketCall {
    session: Rc<SocketState>,
    is_warm_up: bool,
    /// Opened when it is sent; `None` if the session has sent it already.
    open: RefCell<Option<OpenCall>>,
    is_settled: Cell<bool>,
    /// The control of its connection in memory.
    control: RefCell<Option<Rc<Control>>>,
    /// Makes the message a call that stands alone. It is removed before the message is sent.
    prefix: Bytes,
    /// The lane that the call names.
    lane: Option<String>,
    /// The id that the agent gave the message.
    event_id: Value,
    /// The metadata that the message gives its response.
    metadata: Value,
    /// Its events from the upstream, until the exchange takes them.
    events: RefCell<Option<CallEvents>>,
    beside: Rc<EventsBeside>,
}

/// The events of a call from the upstream. Keeps those beside the response, also when it is dropped.
pub(super) struct CallEvents {
    received: mpsc::UnboundedReceiver<CallEvent>,
    protocol: Protocol,
    beside: Rc<EventsBeside>,
}

impl CallEvents {
    pub(super) fn new(
        received: mpsc::UnboundedReceiver<CallEvent>,
        protocol: Protocol,
        beside: Rc<EventsBeside>,
    ) -> Self {
        Self {
            received,
            protocol,
            beside,
        }
    }

    async fn next(&mut self) -> Option<CallEvent> {
        let event = self.received.recv().await?;
        self.keep(&event);
        Some(event)
    }

    fn keep(&self, event: &CallEvent) {
        if self.protocol.is_beside(&self.protocol.read(&event.text)) {
            self.beside.keep(on_one_line(event.text.clone()));
        }
    }
}

impl Drop for CallEvents {
    fn drop(&mut self) {
        self.received.close();
        while let Ok(event) = self.received.try_recv() {
            self.keep(&event);
        }
    }
}

/// An `error` event that the upstream sends instead of a response.
#[derive(Deserialize)]
struct ErrorEvent<'e> {
    #[serde(alias = "status_code")]
    status: u16,
    #[serde(borrow)]
    error: &'e RawValue,
    #[serde(default)]
    headers: std::collections::BTreeMap<String, Value>,
}

impl SocketCall {
    /// `events`: those of its response, as the upstream sends them.
    pub(super) fn new(
        session: &Rc<SocketState>,
        call: &Routing<'_>,
        open: Option<OpenCall>,
        events: CallEvents,
    ) -> Rc<Self> {
        Rc::new(Self {
            session: Rc::clone(session),
            is_warm_up: call.is_warm_up(),
            is_settled: Cell::new(open.is_none()),
            open: RefCell::new(open),
            control: RefCell::default(),
            prefix: session.prefix.borrow().clone(),
            lane: call.lane(),
            event_id: call.event_id.clone(),
            metadata: call.metadata(),
            beside: Rc::clone(&events.beside),
            events: RefCell::new(Some(events)),
        })
    }

    /// Serves the message as an exchange, and sends its response to the agent.
    pub(super) async fn run(self: Rc<Self>, message: Bytes) {
        let session = Rc::clone(&self.session);
        let served = async {
            let response = Rc::clone(&self).response(message).await?;
            self.play(response).await
        };
        if let Err(error) = served.await {
            tracing::debug!(%error, "a call on a WebSocket broke off");
            let control = self.control.take();
            let reset = control.is_some_and(|control| control.is_resetting());
            session.cut(reset).await;
        } else {
            drop(self.events.take());
            while let Some(event) = self.beside.next() {
                session.send_event(event).await;
            }
        }
        self.settle();
    }

    async fn response(self: Rc<Self>, message: Bytes) -> hyper::Result<Response<Incoming>> {
        let (agent, proxy) = duplex(PIPE);
        let session = &self.session;
        let control = session.serve(Box::new(proxy), Ingress::Carried(Rc::clone(&self) as _));
        self.control.replace(Some(control));
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(agent)).await?;
        session.spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "the exchange of a call on a WebSocket broke off");
            }
        });
        let mut request = Request::new(Full::new(as_call(&self.prefix, &message)));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = session.socket.target.clone();
        request.headers_mut().clone_from(&session.socket.headers);
        sender.send_request(request).await
    }
}

impl SocketCall {
    /// Sends a response to the agent, as messages.
    async fn play(&self, response: Response<Incoming>) -> hyper::Result<()> {
        let (head, mut body) = response.into_parts();
        let protocol = self.session.socket.protocol;
        if !head.status.is_success() {
            let whole = Limited::new(body, ERROR).collect().await;
            let whole = whole.map(|whole| whole.to_bytes()).unwrap_or_default();
            let (id, metadata) = (&self.event_id, &self.metadata);
            for event in protocol.refusal(head.status, &head.headers, &whole, id, metadata) {
                self.say(event).await;
            }
            if protocol == Protocol::Live {
                let (code, reason) = closing(head.status, &whole);
                self.session.close(code, &reason).await;
            }
            return Ok(());
        }
        if !is_event_stream(&head.headers) {
            let whole = body.collect().await?.to_bytes();
            self.say(whole).await;
            return Ok(());
        }
        let mut events = Splitter::new(Framing::Sse, usize::MAX);
        let mut last = Bytes::new();
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame?.into_data() else {
                continue;
            };
            for event in events.push(&data) {
                let Some(text) = event.data() else {
                    continue;
                };
                // The upstream's events have no names in this protocol.
                if protocol == Protocol::Live && event.name() == Some("close") {
                    let (code, reason) = closing(head.status, &text);
                    self.session.close(code, &reason).await;
                } else {
                    self.beside.said(&text);
                    last = Bytes::copy_from_slice(&text);
                    self.say(last.clone()).await;
                }
            }
        }
        if protocol == Protocol::Live {
            let calls_tools = LiveMessage::of(&last).calls_tools();
            self.session.is_turn_replaced.set(!calls_tools);
        }
        Ok(())
    }

    /// Messages behind it in its lane need not wait any more.
    fn settle(&self) {
        if !self.is_settled.replace(true) {
            self.session.settled(self.lane.as_ref());
        }
    }

    /// Sends an event in the call's lane.
    async fn say(&self, event: Bytes) {
        let event = match &self.lane {
            Some(lane) if Routing::of(&event).lane().is_none() && event.starts_with(b"{") => {
                let lane = json!(lane).to_string();
                [br#"{"stream_id":"#, lane.as_bytes(), b",", &event[1..]]
                    .concat()
                    .into()
            }
            _ => event,
        };
        self.session.send_event(event).await;
    }
}

impl RequestCarrier for SocketCall {
    fn ingress(&self) -> &Ingress {
        &self.session.ingress
    }

    fn exchange(&self) -> &ExchangeId {
        &self.session.exchange
    }

    fn rules(&self) -> CarriedRules {
        if self.is_warm_up {
            CarriedRules::None
        } else if self.session.decides.get() {
            CarriedRules::InForce
        } else if self.session.is_compressed {
            CarriedRules::Bypassed(COMPRESSED)
        } else {
            CarriedRules::Bypassed(STARTED)
        }
    }

    fn send(self: Rc<Self>, request: Request<Outgoing>) -> Carried {
        Box::pin(async move {
            let body = request.into_body().collect().await;
            let body = body
                .map_err(|error| Abort::close(error.to_string()))?
                .to_bytes();
            if let Some(open) = self.open.take() {
                self.session.open(open);
                self.session
                    .send_upstream(as_sent(&self.prefix, body))
                    .await;
            }
            self.settle();
            let Some(mut events) = self.events.take() else {
                return Err(Abort::close("a call on a WebSocket was sent twice"));
            };
            let Some(first) = events.next().await else {
                return Err(gone());
            };
            Ok(refused(&first.text).unwrap_or_else(|| accepted(first, events)))
        })
    }
}

fn gone() -> Abort {
    Abort::close("the upstream closed the WebSocket before the response ended")
}

/// The message as the body of a call.
fn as_call(prefix: &[u8], message: &[u8]) -> Bytes {
    let members = message
        .iter()
        .position(|byte| *byte == b'{')
        .map(|brace| &message[brace + 1..]);
    match members {
        Some(members) => [prefix, members].concat().into(),
        None => Bytes::copy_from_slice(message),
    }
}

fn as_sent(prefix: &[u8], body: Bytes) -> Bytes {
    match body.strip_prefix(prefix) {
        Some(members) => [b"{", members].concat().into(),
        None => body,
    }
}

/// The response that an `error` event stands for; `None` for all other events.
fn refused(event: &[u8]) -> Option<Response<AgentBody>> {
    let error: ErrorEvent<'_> = serde_json::from_slice(event)
        .ok()
        .filter(|_| Routing::of(event).kind() == "error")?;
    let status = StatusCode::from_u16(error.status)
        .ok()
        .filter(|status| !status.is_success())?;
    let mut response = Response::new(body::full(format!(r#"{{"error":{}}}"#, error.error.get())));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    for (name, value) in &error.headers {
        let value = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        if let (Ok(name), Ok(value)) = (
            header::HeaderName::try_from(name),
            HeaderValue::try_from(value),
        ) && !matches!(
            name,
            header::CONTENT_LENGTH
                | header::TRANSFER_ENCODING
                | header::CONTENT_ENCODING
                | header::CONNECTION
        ) {
            headers.insert(name, value);
        }
    }
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    Some(response)
}

/// The text without line breaks, which are no part of JSON's values.
fn on_one_line(text: Bytes) -> Bytes {
    let breaks = |byte: &u8| matches!(byte, b'\n' | b'\r');
    if !text.iter().any(breaks) {
        return text;
    }
    let spaced = text
        .iter()
        .map(|byte| if breaks(byte) { b' ' } else { *byte });
    spaced.collect::<Vec<_>>().into()
}

/// The event stream of a response.
fn accepted(first: CallEvent, mut events: CallEvents) -> Response<AgentBody> {
    let stream = Scripted::new(SizeHint::new(), |out| async move {
        let mut next = Some(first);
        while let Some(CallEvent { text, ends }) = next {
            let text = on_one_line(text);
            let routing = Routing::of(&text);
            let name = routing.kind();
            let (key, end) = if name.is_empty() {
                ("", "")
            } else {
                ("event: ", "\n")
            };
            let name = [key, name, end].map(str::as_bytes);
            let event = [&name[..], &[b"data: ", &text, b"\n\n"]].concat().concat();
            out.data(event.into(), false).await;
            if ends {
                return Ok(());
            }
            next = events.next().await;
        }
        Err(gone())
    });
    let mut response = Response::new(body::boxed(stream));
    let media_type = HeaderValue::from_static("text/event-stream");
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, media_type);
    response
}

fn is_event_stream(headers: &HeaderMap) -> bool {
    headers
        .get(header::CONTENT_TYPE)
        .is_some_and(|value| value.as_bytes().starts_with(b"text/event-stream"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_becomes_a_streamed_call_and_is_sent_as_it_was() {
        for message in [
            r#"{"type":"response.create","input":"hi"}"#,
            "\n {\"type\": \"response.create\"}",
            "{}",
        ] {
            for protocol in [Protocol::Responses, Protocol::Live] {
                let prefix = protocol.prefix();
                let call = as_call(&prefix, message.as_bytes());
                assert_ne!(call, message, "{message}");
                assert_eq!(as_sent(&prefix, call), message.trim_start(), "{message}");
                assert_eq!(as_sent(&prefix, "[1]".into()), "[1]");
            }
        }
    }

    #[tokio::test]
    async fn a_long_text_of_several_lines_is_one_event() {
        let (events, received) = mpsc::unbounded_channel();
        let long = "x".repeat(2 << 20);
        let text =
            format!("{{\n  \"type\": \"response.completed\",\r\n\r\n \"text\": \"{long}\"\n}}");
        drop(events);
        let event = CallEvent {
            text: text.clone().into(),
            ends: true,
        };
        let events = CallEvents::new(received, Protocol::Realtime, EventsBeside::new());
        let body = accepted(event, events).into_body();
        let stream = body.collect().await.unwrap().to_bytes();
        let found = Splitter::new(Framing::Sse, usize::MAX).push(&stream);
        assert_eq!(found.len(), 1);
        let data = found[0].data().unwrap();
        assert_eq!(*data, *text.replace(['\n', '\r'], " ").as_bytes());
    }

    #[tokio::test]
    async fn events_beside_a_response_that_ends_early_are_kept_in_order() {
        let (events, received) = mpsc::unbounded_channel();
        let beside = EventsBeside::new();
        let mut received = CallEvents::new(received, Protocol::Realtime, Rc::clone(&beside));
        let [said, read, unread] = ["a.said", "a.read", "a.unread"]
            .map(|kind| Bytes::from(json!({ "type": kind }).to_string()));
        let delta = Bytes::from(r#"{"type":"response.output_text.delta"}"#);
        for text in [&said, &delta, &read, &delta, &unread] {
            let (text, ends) = (text.clone(), false);
            assert!(events.send(CallEvent { text, ends }).is_ok());
        }
        for _ in 0..3 {
            received.next().await.unwrap();
        }
        beside.said(&said);
        drop(received);
        let late = Bytes::from(r#"{"type":"a.late"}"#);
        assert!(beside.keep(late.clone()));
        for text in [read, unread, late] {
            assert_eq!(beside.next(), Some(text));
        }
        assert_eq!(beside.next(), None);
        assert!(!beside.keep(said), "after the end of the call");
    }

    #[tokio::test]
    async fn an_error_event_is_the_response_that_it_stands_for() {
        let event = json!({
            "type": "error", "status": 429,
            "error": { "type": "requests", "code": "rate_limit_exceeded", "message": "Slow down", "param": null },
            "headers": { "retry-after": "7", "content-length": "3", "x-limit": 5 },
        });
        let response = refused(event.to_string().as_bytes()).unwrap();
        let (head, body) = response.into_parts();
        assert_eq!(head.status, 429);
        assert_eq!(head.headers["retry-after"], "7");
        assert_eq!(head.headers["x-limit"], "5");
        assert!(!head.headers.contains_key("content-length"));
        let body = body.collect().await.unwrap().to_bytes();
        let events = Protocol::Responses.refusal(
            head.status,
            &head.headers,
            &body,
            &Value::Null,
            &Value::Null,
        );
        let again: Value = serde_json::from_slice(&events[0]).unwrap();
        assert_eq!(again["error"], event["error"]);
        assert_eq!(
            again["headers"],
            json!({ "retry-after": "7", "x-limit": "5" })
        );

        for other in [
            json!({ "type": "error", "error": {} }),
            json!({ "type": "error", "status": 200, "error": {} }),
            json!({ "type": "response.failed", "status": 500, "error": {} }),
        ] {
            assert!(refused(other.to_string().as_bytes()).is_none(), "{other}");
        }
    }
}
