//! `ollama`: Ollama's own API. The servers' `/v1` speaks `openai-chat`.
//!
//! Requests are `POST …/api/chat` and `…/api/generate`; answers one JSON document, or one a line,
//! which is the default. The last line says `"done": true` and holds the counts, which only the
//! server knows: a stream that is to end early waits for it. Source: Ollama's server and its
//! official Python client.

mod answer;
mod made;
mod request;
#[cfg(test)]
mod tests;

use http::Method;

use crate::dialect::{Dialect, EndOfChoice, ErrorContext, Event, Target, Transcript, WireReply};
use crate::errors::{self, Given};
use crate::json::{Document, Edits, Value, quote};
use crate::model::{Conversation, Finish, Finished, ModelError, ModelRequest, Reading, Saying};
use crate::stream::{Framing, Made};

/// The dialect `ollama`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ollama;

impl Dialect for Ollama {
    fn name(&self) -> &'static str {
        "ollama"
    }

    fn recognises(&self, method: &Method, target: Target<'_>) -> bool {
        let path = target.path();
        method == Method::POST && (path.ends_with("/api/chat") || path.ends_with("/api/generate"))
    }

    fn confirms(&self, body: Value<'_>) -> bool {
        request::is_of_ollama(body)
    }

    fn request(&self, _target: Target<'_>, body: Value<'_>) -> ModelRequest {
        request::read(body)
    }

    fn conversation<'d>(&self, body: &'d Document<'d>) -> Conversation<'d> {
        request::conversation(body.root())
    }

    fn user_message(&self, text: &str) -> String {
        format!("{{\"role\":\"user\",\"content\":{}}}", quote(text))
    }

    fn read_answer<'d>(&self, answer: &'d Document<'d>) -> Reading<'d> {
        answer::read(answer.root())
    }

    fn read_event<'d>(&self, event: Event<'d>) -> Reading<'d> {
        answer::read(event.root())
    }

    fn tool_calls_end_as_done(&self) -> bool {
        true
    }

    fn put_finish(
        &self,
        edits: &mut Edits<'_>,
        document: &Document<'_>,
        at: &Finished,
        finish: Option<&Finish>,
    ) -> Option<&'static str> {
        made::put_finish(edits, document.root(), at, finish);
        None
    }

    fn finish_events(&self, event: Event<'_>, end: &EndOfChoice<'_>) -> Vec<Made> {
        made::last_line(event, end).into_iter().collect()
    }

    fn end(&self, _framing: Framing) -> Vec<Made> {
        Vec::new()
    }

    fn say(
        &self,
        edits: &mut Edits<'_>,
        answer: &Document<'_>,
        choice: u64,
        saying: Saying<'_>,
        finish: &Finish,
    ) -> bool {
        choice == 0 && made::say(edits, answer.root(), saying, finish)
    }

    fn say_events(&self, event: Event<'_>, choice: u64, saying: Saying<'_>) -> Vec<Made> {
        let line = (choice == 0).then(|| made::line(event, saying)).flatten();
        line.into_iter().collect()
    }

    fn says_at_the_end(&self) -> bool {
        true
    }

    fn whole_answer(&self, transcript: &Transcript<'_>) -> Option<String> {
        made::whole(transcript)
    }

    fn error(&self, error: &ModelError, context: &ErrorContext<'_>) -> WireReply {
        errors::OLLAMA.reply(Given::new(error, context))
    }

    fn error_event(
        &self,
        error: &ModelError,
        context: &ErrorContext<'_>,
        _after: Option<Event<'_>>,
    ) -> Option<Made> {
        errors::OLLAMA.event(Given::new(error, context))
    }
}
