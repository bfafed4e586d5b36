//! `openai-chat`: OpenAI's Chat Completions, and the many servers that speak it.
//!
//! Requests are `POST …/chat/completions`; answers one JSON document, or `data:` events that end
//! with `[DONE]`. Source: OpenAI's API reference and its official Python client.

mod answer;
mod made;
mod request;
#[cfg(test)]
mod tests;
mod variation;

use http::Method;

use crate::dialect::{Dialect, EndOfChoice, ErrorContext, Event, Target, Transcript, WireReply};
use crate::errors::{self, Given, Templates};
use crate::json::{Document, Edits, Kind, Value, quote};
use crate::model::{Conversation, Finish, Finished, ModelError, ModelRequest, Reading, Saying};
use crate::stream::{Framing, Made};
use variation::Variation;

/// The data of the event that ends a stream.
const DONE: &[u8] = b"[DONE]";

/// The dialect `openai-chat`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OpenAiChat {
    /// The provider that the configuration names; `None`: told by the path.
    variation: Option<Variation>,
}

/// The dialect for an endpoint that nobody named.
pub(crate) static PLAIN: OpenAiChat = OpenAiChat { variation: None };

/// The dialect for endpoints of these providers.
pub(crate) static VARIATIONS: &[(&str, &dyn Dialect)] = &[
    ("openai-chat/azure", &OpenAiChat::of(Variation::Azure)),
    ("openai-chat/groq", &OpenAiChat::of(Variation::Groq)),
    ("openai-chat/mistral", &OpenAiChat::of(Variation::Mistral)),
    (
        "openai-chat/openrouter",
        &OpenAiChat::of(Variation::OpenRouter),
    ),
];

impl OpenAiChat {
    const fn of(variation: Variation) -> Self {
        Self {
            variation: Some(variation),
        }
    }

    fn variation(self, context: &ErrorContext<'_>) -> Option<Variation> {
        self.variation
            .or_else(|| Variation::of(context.target, context.model))
    }

    fn templates(self, context: &ErrorContext<'_>) -> &'static Templates {
        self.variation(context)
            .map_or(&errors::OPENAI, Variation::templates)
    }
}

impl Dialect for OpenAiChat {
    fn name(&self) -> &'static str {
        "openai-chat"
    }

    fn recognises(&self, method: &Method, target: Target<'_>) -> bool {
        method == Method::POST && target.path().ends_with("/chat/completions")
    }

    fn confirms(&self, body: Value<'_>) -> bool {
        let messages = body.get("messages");
        messages.is_some_and(|messages| messages.kind() == Kind::Array)
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
        answer::read(answer.root(), "message")
    }

    fn read_event<'d>(&self, event: Event<'d>) -> Reading<'d> {
        answer::read(event.root(), "delta")
    }

    fn is_end_mark(&self, data: &[u8]) -> bool {
        data.trim_ascii() == DONE
    }

    fn put_finish(
        &self,
        edits: &mut Edits<'_>,
        _document: &Document<'_>,
        at: &Finished,
        finish: Option<&Finish>,
    ) -> Option<&'static str> {
        let word = finish.map_or_else(|| "null".to_owned(), made::finish_word);
        edits.replace(at.place, word);
        None
    }

    fn finish_events(&self, event: Event<'_>, end: &EndOfChoice<'_>) -> Vec<Made> {
        let word = made::finish_word(end.finish);
        let chunk = made::chunk(event, end.choice, "{}", &word);
        chunk.into_iter().collect()
    }

    fn end(&self, _framing: Framing) -> Vec<Made> {
        vec![Made::data(DONE)]
    }

    fn say(
        &self,
        edits: &mut Edits<'_>,
        answer: &Document<'_>,
        choice: u64,
        saying: Saying<'_>,
        finish: &Finish,
    ) -> bool {
        made::say(edits, answer.root(), choice, saying, finish)
    }

    fn say_events(&self, event: Event<'_>, choice: u64, saying: Saying<'_>) -> Vec<Made> {
        let chunk = made::say_chunk(event, choice, saying);
        chunk.into_iter().collect()
    }

    fn tells_refusals(&self, context: &ErrorContext<'_>) -> bool {
        self.variation(context).is_none_or(Variation::has_refusals)
    }

    fn rejects_bad_calls(&self, context: &ErrorContext<'_>) -> bool {
        self.variation(context) == Some(Variation::Groq)
    }

    fn whole_answer(&self, transcript: &Transcript<'_>) -> Option<String> {
        made::whole(transcript)
    }

    fn error(&self, error: &ModelError, context: &ErrorContext<'_>) -> WireReply {
        self.templates(context).reply(Given::new(error, context))
    }

    fn error_event(
        &self,
        error: &ModelError,
        context: &ErrorContext<'_>,
        after: Option<Event<'_>>,
    ) -> Option<Made> {
        self.templates(context).event(Given {
            last: after,
            ..Given::new(error, context)
        })
    }
}
