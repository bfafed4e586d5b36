//! `openai-responses`: OpenAI's Responses, and the gateways and servers that speak it.
//!
//! Requests are `POST …/responses`; answers one `response` object, or events that each carry their
//! name twice, as the event's and as `type` in the data. Later events repeat what earlier ones
//! said, up to the last, which holds the whole response: those deltas are marked, and an end is
//! never made up, but the upstream's is waited for and edited. Source: OpenAI's API reference and
//! its official Python client.

mod answer;
mod made;
mod request;
#[cfg(test)]
mod tests;

use http::Method;

use crate::dialect::{Dialect, EndOfChoice, ErrorContext, Event, Target, Transcript, WireReply};
use crate::errors::{self, Given, Term};
use crate::json::{Document, Edits, NodeId, Value, quote};
use crate::model::{Conversation, Finish, Finished, ModelError, ModelRequest, Reading, Saying};
use crate::stream::{Framing, Made};

/// The dialect `openai-responses`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OpenAiResponses;

impl Dialect for OpenAiResponses {
    fn name(&self) -> &'static str {
        "openai-responses"
    }

    fn recognises(&self, method: &Method, target: Target<'_>) -> bool {
        method == Method::POST && target.path().ends_with("/responses")
    }

    fn confirms(&self, body: Value<'_>) -> bool {
        // What to say may stand in the request, in an earlier response or in a stored prompt.
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

    fn keeps_conversations(&self) -> bool {
        // `previous_response_id`, `conversation`.
        true
    }

    fn user_message(&self, text: &str) -> String {
        format!("{{\"role\":\"user\",\"content\":{}}}", quote(text))
    }

    fn read_answer<'d>(&self, answer: &'d Document<'d>) -> Reading<'d> {
        answer::read(answer.root())
    }

    fn read_event<'d>(&self, event: Event<'d>) -> Reading<'d> {
        answer::read_event(event.root())
    }

    fn put_finish(
        &self,
        edits: &mut Edits<'_>,
        document: &Document<'_>,
        _at: &Finished,
        finish: Option<&Finish>,
    ) -> Option<&'static str> {
        made::put_finish(edits, document.root(), finish)
    }

    fn put_cut(&self, edits: &mut Edits<'_>, document: &Document<'_>, place: NodeId) {
        made::put_cut(edits, document.root(), document.value(place));
    }

    fn finish_events(&self, _event: Event<'_>, _end: &EndOfChoice<'_>) -> Vec<Made> {
        // The end repeats what only the upstream knows.
        Vec::new()
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
        if choice == 0 {
            made::say_events(event.root(), saying)
        } else {
            Vec::new()
        }
    }

    fn whole_answer(&self, transcript: &Transcript<'_>) -> Option<String> {
        let root = transcript.last.root();
        let whole = root.get("response").filter(|_| answer::is_last(root))?;
        Some(whole.raw().to_owned())
    }

    fn number<'d>(&self, event: Event<'d>) -> Option<Value<'d>> {
        event.root().get("sequence_number")
    }

    fn error(&self, error: &ModelError, context: &ErrorContext<'_>) -> WireReply {
        errors::OPENAI.reply(Given {
            conditions: &["responses"],
            ..Given::new(error, context)
        })
    }

    fn error_event(
        &self,
        error: &ModelError,
        context: &ErrorContext<'_>,
        after: Option<Event<'_>>,
    ) -> Option<Made> {
        let number = after.map_or(0, |after| made::number(after.root()) + 1);
        errors::OPENAI.event(Given {
            conditions: &["responses"],
            values: &[("next_number", Term::Number(number))],
            ..Given::new(error, context)
        })
    }
}
