//! What a provider's wire format must be able to say: the seam between providers and faults.

use std::fmt::Debug;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, Method, StatusCode};

use crate::json::Document;
use crate::model::{Finish, ModelError, ModelRequest, Reading};
use crate::sse;

/// One provider's wire format.
///
/// Implementations hold no state and decide nothing: the same input gives the same output.
pub trait Dialect: Debug + Send + Sync {
    /// The name in files, API and metrics: `openai-chat`.
    fn name(&self) -> &'static str;

    /// Whether a request with this method and path (without query) looks like this dialect.
    fn recognises(&self, method: &Method, path: &str) -> bool;

    /// Whether a request's body has this dialect's shape.
    fn confirms(&self, body: &[u8]) -> bool;

    /// What a request's body asks for. `None`: it is no JSON object.
    ///
    /// The body may be a prefix of the real one: what was cut off counts as absent.
    fn request(&self, body: &[u8]) -> Option<ModelRequest>;

    /// What a whole answer says.
    fn read_answer<'d>(&self, answer: &'d Document<'d>) -> Reading<'d>;

    /// What one event of a stream says.
    fn read_event<'d>(&self, event: &'d Document<'d>) -> Reading<'d>;

    /// Whether an event's data is the mark that ends a stream; it need not be JSON.
    fn is_end(&self, data: &[u8]) -> bool;

    /// The mark that ends a stream, framed like `frame`, an event of the same stream; empty when
    /// the provider sends none.
    fn end(&self, frame: &sse::Frame) -> Bytes;

    /// The provider's word for a reason to stop, as a JSON value.
    fn finish_word(&self, finish: &Finish) -> String;

    /// The event or events that end `choice` for this reason, framed.
    ///
    /// `frame` is an event of the same stream that belongs to the choice, and `event` its data:
    /// the model the new ones are made after, so that ids and unknown fields are carried over.
    /// Empty when `event` cannot serve as one.
    fn finish_events(
        &self,
        frame: &sse::Frame,
        event: &Document<'_>,
        choice: u64,
        finish: &Finish,
    ) -> Bytes;

    /// The reply with which this provider reports `error`.
    fn error(&self, error: &ModelError, context: &ErrorContext<'_>) -> WireReply;
}

/// What a made-up error may mention of the exchange it answers.
#[derive(Debug, Clone, Copy, Default)]
pub struct ErrorContext<'a> {
    /// What ids and other irregular figures are derived from: the exchange's own draw.
    pub draw: u64,
    /// The model asked for, when the request's body was read.
    pub model: Option<&'a str>,
}

/// A complete HTTP response as a provider would send it, but for `date` and `content-length`,
/// which belong to whoever sends it.
#[derive(Debug, Clone, PartialEq)]
pub struct WireReply {
    /// Status.
    pub status: StatusCode,
    /// Headers, `content-type` included.
    pub headers: HeaderMap,
    /// Body.
    pub body: Bytes,
}

/// How an answer's body is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AnswerForm {
    /// One JSON document.
    Json,
    /// Server-sent events.
    Stream,
}

impl AnswerForm {
    /// The form that a response's `content-type` announces. `None`: no form that can be read.
    pub fn of(headers: &HeaderMap) -> Option<Self> {
        let value = headers.get(CONTENT_TYPE)?.to_str().ok()?;
        let media_type = value.split(';').next().unwrap_or_default().trim();
        if media_type.eq_ignore_ascii_case("text/event-stream") {
            Some(Self::Stream)
        } else if media_type.eq_ignore_ascii_case("application/json")
            || media_type.to_ascii_lowercase().ends_with("+json")
        {
            Some(Self::Json)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn the_content_type_tells_the_form() {
        for (value, expected) in [
            ("application/json", Some(AnswerForm::Json)),
            ("application/json; charset=utf-8", Some(AnswerForm::Json)),
            ("application/problem+json", Some(AnswerForm::Json)),
            ("Text/Event-Stream;charset=utf-8", Some(AnswerForm::Stream)),
            ("text/html", None),
            ("", None),
        ] {
            let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(value))]);
            assert_eq!(AnswerForm::of(&headers), expected, "{value}");
        }
        assert_eq!(AnswerForm::of(&HeaderMap::new()), None);
    }
}
