//! `anthropic`: Anthropic's Messages, and the gateways and servers that speak it.
//!
//! Requests are `POST …/v1/messages`; answers one JSON document, or events that each carry their
//! name twice, as the event's and as `type` in the data. The latter is read, because some framings
//! have no names. Source: Anthropic's API reference and its official Python client.

mod answer;
mod made;
mod request;
#[cfg(test)]
mod tests;

use http::Method;

use crate::dialect::{Dialect, EndOfChoice, ErrorContext, Event, Target, Transcript, WireReply};
use crate::errors::{self, Given};
use crate::json::{Document, Edits, Kind, Value, quote};
use crate::model::{
    Conversation, Finish, Finished, ModelError, ModelRequest, Reading, ResultSaying, Saying,
    ToolResult,
};
use crate::stream::{Framing, Made};

/// The dialect `anthropic`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Anthropic;

impl Dialect for Anthropic {
    fn name(&self) -> &'static str {
        "anthropic"
    }

    fn recognises(&self, method: &Method, target: Target<'_>) -> bool {
        method == Method::POST && target.path().ends_with("/v1/messages")
    }

    fn confirms(&self, body: Value<'_>) -> bool {
        let is = |key, kind| body.get(key).is_some_and(|value| value.kind() == kind);
        // Nobody else demands `max_tokens` of everyone.
        is("messages", Kind::Array) && is("max_tokens", Kind::Number)
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

    fn say_result(
        &self,
        edits: &mut Edits<'_>,
        body: &Document<'_>,
        result: &ToolResult<'_>,
        saying: ResultSaying<'_>,
    ) {
        let block = body.value(result.place);
        let said = quote(saying.text());
        let behind = if result.says_nothing() {
            let Some(last) = block.members().last() else {
                return;
            };
            edits.insert_after(last.id(), "content", &said);
            last.id()
        } else {
            edits.replace(result.content, said);
            result.content
        };
        if let ResultSaying::Failure(_) = saying {
            match block.get("is_error") {
                Some(flag) => edits.replace(flag.id(), "true"),
                None => edits.insert_after(behind, "is_error", "true"),
            }
        }
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
        at: &Finished,
        finish: Option<&Finish>,
    ) -> Option<&'static str> {
        made::put_finish(edits, document.root(), at, finish);
        None
    }

    fn remove_results_behind(&self, edits: &mut Edits<'_>, answer: &Document<'_>, part: u64) {
        made::remove_results_behind(edits, answer.root(), part);
    }

    fn finish_events(&self, event: Event<'_>, end: &EndOfChoice<'_>) -> Vec<Made> {
        made::finish_events(event, end)
    }

    fn end(&self, _framing: Framing) -> Vec<Made> {
        vec![made::event("message_stop", "")]
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
        made::whole(transcript)
    }

    fn error(&self, error: &ModelError, context: &ErrorContext<'_>) -> WireReply {
        errors::ANTHROPIC.reply(Given::new(error, context))
    }

    fn error_event(
        &self,
        error: &ModelError,
        context: &ErrorContext<'_>,
        _after: Option<Event<'_>>,
    ) -> Option<Made> {
        errors::ANTHROPIC.event(Given::new(error, context))
    }
}
