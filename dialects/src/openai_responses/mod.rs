//! `openai-responses`: OpenAI's Responses API, and the gateways and servers that support it.
//!
//! Requests are `POST …/responses`. Responses are one `response` object, or events. Each event has its name twice,
//! as the event's name and as `type` in the data. Later events repeat the text of earlier ones, and the last one
//! contains the whole response. Such deltas are marked as repetitions. An end is never synthetic: Squall waits for
//! the upstream's own end and edits it. Source: OpenAI's API reference and its official Python client.

pub(crate) mod answer;
pub(crate) mod request;
mod synthetic;

use crate::answer::{Event, Transcript};
use crate::dialect::{Dialect, Provider};
use crate::errors::{ErrorContext, ErrorTerms};
use crate::json::{Document, Edits, Value};
use crate::model::{Conversation, Finish, Finished, ModelRequest, Reading, Saying};
use crate::stream::SyntheticEvent;
use crate::target::Target;

/// The dialect `openai-responses`.
#[derive(Debug)]
pub(crate) struct OpenAiResponses;

impl Dialect for OpenAiResponses {
    fn provider(&self) -> &'static Provider {
        &answer::RESPONSES
    }

    fn recognises(&self, target: Target<'_>) -> bool {
        target.path().ends_with("/responses")
    }

    fn confirms(&self, body: Value<'_>) -> bool {
        // The prompt may be in the request, in an earlier response or stored at the provider.
        let sources = ["input", "previous_response_id", "conversation", "prompt"];
        let asks = sources.iter().any(|source| body.get(source).is_some());
        asks && body.get("messages").is_none()
    }

    fn request(&self, _target: Target<'_>, body: Value<'_>) -> ModelRequest {
        request::read(body)
    }

    fn conversation<'d>(&self, body: &'d Document<'d>) -> Conversation<'d> {
        request::conversation(body.root())
    }

    fn read<'d>(&self, event: Event<'d>) -> Reading<'d> {
        answer::read(event.root(), &answer::RESPONSES.usage)
    }

    fn put_finish(
        &self,
        edits: &mut Edits<'_>,
        document: &Document<'_>,
        _at: &Finished,
        finish: Option<&Finish>,
    ) -> Option<&'static str> {
        synthetic::put_finish(edits, document.root(), finish)
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

    fn say_events(&self, event: Event<'_>, choice: u64, saying: Saying<'_>) -> Vec<SyntheticEvent> {
        if choice > 0 {
            return Vec::new();
        }
        synthetic::say_events(event.root(), saying)
    }

    fn whole_answer(&self, transcript: &Transcript<'_>) -> Option<String> {
        let root = transcript.last.root();
        let whole = root.get("response").filter(|_| answer::is_last(root))?;
        Some(whole.raw().to_owned())
    }

    fn error_terms(&self, _context: &ErrorContext<'_>, after: Option<Event<'_>>) -> ErrorTerms {
        let number = after.map_or(0, |after| synthetic::number(after.root()) + 1);
        ErrorTerms {
            conditions: vec!["responses"],
            values: vec![("next_number", number.into())],
        }
    }
}
