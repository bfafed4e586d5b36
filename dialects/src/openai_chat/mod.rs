//! `openai-chat`: OpenAI's Chat Completions API, and the many servers that support it.
//!
//! Requests are `POST …/chat/completions`. Responses are one JSON document, or `data:` events that end with
//! `[DONE]`. Source: OpenAI's API reference and its official Python client.

mod answer;
mod providers;
mod request;
mod synthetic;

use crate::answer::{Event, Transcript};
use crate::dialect::{Dialect, Provider};
use crate::errors::ErrorContext;
use crate::json::{Document, Edits, JsonKind, Value};
use crate::model::{Conversation, Finish, ModelRequest, Reading, Saying};
use crate::stream::SyntheticEvent;
use crate::target::Target;
use providers::{AZURE, GROQ, MISTRAL, OPENAI, OPENROUTER};

/// The dialect `openai-chat`.
#[derive(Debug)]
pub(crate) struct OpenAiChat {
    /// The configured provider; `None`: the path decides.
    named: Option<&'static Provider>,
}

/// The dialect for endpoints that are not configured.
pub(crate) static PLAIN: OpenAiChat = OpenAiChat { named: None };

/// The dialect for endpoints that are configured with these providers.
pub(crate) static VARIATIONS: [&dyn Dialect; 4] = [
    &OpenAiChat::of(&AZURE),
    &OpenAiChat::of(&GROQ),
    &OpenAiChat::of(&MISTRAL),
    &OpenAiChat::of(&OPENROUTER),
];

impl OpenAiChat {
    const fn of(provider: &'static Provider) -> Self {
        Self {
            named: Some(provider),
        }
    }
}

impl Dialect for OpenAiChat {
    fn provider(&self) -> &'static Provider {
        self.named.unwrap_or(&OPENAI)
    }

    fn provider_of(&self, context: &ErrorContext<'_>) -> &'static Provider {
        self.named
            .unwrap_or_else(|| providers::provider_at(context.target, context.model))
    }

    fn recognises(&self, target: Target<'_>) -> bool {
        target.path().ends_with("/chat/completions")
    }

    fn confirms(&self, body: Value<'_>) -> bool {
        let messages = body.get("messages");
        messages.is_some_and(|messages| messages.kind() == JsonKind::Array)
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

    fn say(
        &self,
        edits: &mut Edits<'_>,
        answer: &Document<'_>,
        choice: u64,
        saying: Saying<'_>,
        finish: &Finish,
    ) -> bool {
        synthetic::say(edits, answer.root(), choice, saying, finish).is_some()
    }

    fn say_events(&self, event: Event<'_>, choice: u64, saying: Saying<'_>) -> Vec<SyntheticEvent> {
        let chunk = synthetic::say_chunk(event, choice, saying);
        chunk.into_iter().collect()
    }

    fn whole_answer(&self, transcript: &Transcript<'_>) -> Option<String> {
        synthetic::whole(transcript)
    }
}
