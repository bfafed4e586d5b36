//! `openai-chat`: OpenAI's Chat Completions, and the many servers that speak it.
//!
//! Requests are `POST …/chat/completions`; answers one JSON document, or `data:` events that end
//! with `[DONE]`. Source: OpenAI's API reference and its official Python client.

mod answer;
mod error;
mod request;
#[cfg(test)]
mod tests;

use bytes::Bytes;
use http::Method;

use crate::dialect::{Dialect, ErrorContext, WireReply};
use crate::json::{Document, Edits, Kind};
use crate::model::{Finish, ModelError, ModelRequest, Reading};
use crate::sse;

/// The dialect `openai-chat`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OpenAiChat;

impl Dialect for OpenAiChat {
    fn name(&self) -> &'static str {
        "openai-chat"
    }

    fn recognises(&self, method: &Method, path: &str) -> bool {
        let path = path.strip_suffix('/').unwrap_or(path);
        method == Method::POST && path.ends_with("/chat/completions")
    }

    fn confirms(&self, body: &[u8]) -> bool {
        let messages = |document: Document<'_>| {
            let messages = document.root().get("messages");
            messages.is_some_and(|messages| messages.kind() == Kind::Array)
        };
        Document::parse_prefix(body).is_some_and(messages)
    }

    fn request(&self, body: &[u8]) -> Option<ModelRequest> {
        let document = Document::parse_prefix(body)?;
        (document.root().kind() == Kind::Object).then(|| request::read(document.root()))
    }

    fn read_answer<'d>(&self, document: &'d Document<'d>) -> Reading<'d> {
        answer::read(document.root(), "message")
    }

    fn read_event<'d>(&self, document: &'d Document<'d>) -> Reading<'d> {
        answer::read(document.root(), "delta")
    }

    fn is_end(&self, data: &[u8]) -> bool {
        data.trim_ascii() == b"[DONE]"
    }

    fn end(&self, frame: &sse::Frame) -> Bytes {
        frame.another(b"[DONE]")
    }

    fn finish_word(&self, finish: &Finish) -> String {
        answer::finish_word(finish)
    }

    fn finish_events(
        &self,
        frame: &sse::Frame,
        event: &Document<'_>,
        choice: u64,
        finish: &Finish,
    ) -> Bytes {
        let mut edits = Edits::new(event);
        if answer::make_finish(&mut edits, event.root(), choice, finish) {
            frame.another(&edits.apply())
        } else {
            Bytes::new()
        }
    }

    fn error(&self, error: &ModelError, context: &ErrorContext<'_>) -> WireReply {
        error::reply(error, context)
    }
}
