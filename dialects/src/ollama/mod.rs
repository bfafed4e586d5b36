//! `ollama`: Ollama's own API. The `/v1` paths of its servers use `openai-chat`.
//!
//! Requests are `POST …/api/chat` and `…/api/generate`. Responses are one JSON document, or by default one per
//! line. The last line has `"done": true` and the counts, which only the server knows. A stream that ends early
//! therefore waits for that line. Source: Ollama's server and its official Python client.

mod answer;
mod request;
mod synthetic;

use crate::answer::{Event, Transcript};
use crate::dialect::{Dialect, Provider};
use crate::json::{Document, Edits, Value};
use crate::model::{Conversation, Finish, Finished, ModelRequest, Reading, Saying};
use crate::target::Target;

/// The dialect `ollama`.
#[derive(Debug)]
pub(crate) struct Ollama;

impl Dialect for Ollama {
    fn provider(&self) -> &'static Provider {
        &answer::OLLAMA
    }

    fn recognises(&self, target: Target<'_>) -> bool {
        let path = target.path();
        path.ends_with("/api/chat") || path.ends_with("/api/generate")
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

    fn read<'d>(&self, event: Event<'d>) -> Reading<'d> {
        answer::read(event.root())
    }

    fn put_finish(
        &self,
        edits: &mut Edits<'_>,
        document: &Document<'_>,
        _at: &Finished,
        finish: Option<&Finish>,
    ) -> Option<&'static str> {
        synthetic::put_finish(edits, document.root(), finish);
        None
    }

    fn say(
        &self,
        edits: &mut Edits<'_>,
        answer: &Document<'_>,
        choice: u64,
        saying: Saying<'_>,
        finish: &Finish,
    ) -> bool {
        choice == 0 && synthetic::say(edits, answer.root(), saying, finish)
    }

    fn whole_answer(&self, transcript: &Transcript<'_>) -> Option<String> {
        synthetic::whole(transcript)
    }
}
