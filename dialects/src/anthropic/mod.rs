//! `anthropic`: Anthropic's Messages API, and the gateways and servers that support it.
//!
//! Requests are `POST …/v1/messages`. Responses are one JSON document, or events. Each event has its name twice, as
//! the event's name and as `type` in the data. Squall reads the latter, because some framings have no names.
//! Source: Anthropic's API reference and its official Python client.

mod answer;
mod request;
mod synthetic;

use crate::answer::{Event, Transcript};
use crate::dialect::{Dialect, Provider};
use crate::json::{Document, Edits, JsonKind, Value};
use crate::model::{
    Conversation, Finish, Finished, ModelRequest, Reading, ResultSaying, Saying, ToolResult,
};
use crate::stream::SyntheticEvent;
use crate::target::Target;

/// The dialect `anthropic`.
#[derive(Debug)]
pub(crate) struct Anthropic;

impl Dialect for Anthropic {
    fn provider(&self) -> &'static Provider {
        &answer::ANTHROPIC
    }

    fn recognises(&self, target: Target<'_>) -> bool {
        target.path().ends_with("/v1/messages")
    }

    fn confirms(&self, body: Value<'_>) -> bool {
        let is = |key, kind| body.get(key).is_some_and(|value| value.kind() == kind);
        // No other dialect requires `max_tokens`.
        is("messages", JsonKind::Array) && is("max_tokens", JsonKind::Number)
    }

    fn request(&self, _target: Target<'_>, body: Value<'_>) -> ModelRequest {
        request::read(body)
    }

    fn conversation<'d>(&self, body: &'d Document<'d>) -> Conversation<'d> {
        request::conversation(body.root())
    }

    fn say_result(
        &self,
        edits: &mut Edits<'_>,
        body: &Document<'_>,
        result: &ToolResult<'_>,
        saying: ResultSaying<'_>,
    ) {
        synthetic::say_result(edits, body.value(result.place), saying);
    }

    fn read<'d>(&self, event: Event<'d>) -> Reading<'d> {
        answer::read(event.root())
    }

    fn put_finish(
        &self,
        edits: &mut Edits<'_>,
        document: &Document<'_>,
        at: &Finished,
        finish: Option<&Finish>,
    ) -> Option<&'static str> {
        synthetic::put_finish(edits, document.root(), at, finish);
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

    fn say_events(&self, event: Event<'_>, choice: u64, saying: Saying<'_>) -> Vec<SyntheticEvent> {
        if choice > 0 {
            return Vec::new();
        }
        synthetic::say_events(event.root(), saying)
    }

    fn whole_answer(&self, transcript: &Transcript<'_>) -> Option<String> {
        synthetic::whole(transcript)
    }
}
