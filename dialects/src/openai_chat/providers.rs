//! Providers that speak this dialect with errors of their own.
//!
//! | provider | told by | error's body |
//! |---|---|---|
//! | Azure OpenAI | `…/openai/deployments/…`, or an `api-version` | `{"error": {"code": "429", "message"}}` |
//! | Groq | `…/openai/v1/chat/completions` | OpenAI's, without `param` |
//! | Mistral | `/v1/chat/completions` at a host of Mistral's: the path alone is OpenAI's | `{"object": "error", "message", "type", "code"}` |
//! | `OpenRouter` | `…/api/v1/chat/completions`, models with a `/` | `{"error": {"code": 429, "message", "metadata"}}` |
//!
//! Where a provider hands on the model's own error, it is OpenAI's. Answers need no variation: what
//! the providers add is read from all of them.

use crate::dialect::{Provider, Quirk};
use crate::errors::{self, Templates};
use crate::model::{Finish, FinishWords, UsageKeys};
use crate::target::Target;

pub(super) static OPENAI: Provider = provider("openai-chat", &errors::OPENAI);
pub(super) static AZURE: Provider = provider("openai-chat/azure", &errors::AZURE);
pub(super) static GROQ: Provider = Provider {
    // Messages have no `refusal` beside their `content`, and clients show none.
    quirks: &[Quirk::NoRefusals, Quirk::RejectsBadCalls],
    ..provider("openai-chat/groq", &errors::GROQ)
};
pub(super) static MISTRAL: Provider = Provider {
    quirks: &[Quirk::NoRefusals],
    ..provider("openai-chat/mistral", &errors::MISTRAL)
};
pub(super) static OPENROUTER: Provider = provider("openai-chat/openrouter", &errors::OPENROUTER);

const fn provider(endpoint: &'static str, errors: &'static Templates) -> Provider {
    Provider {
        dialect: "openai-chat",
        endpoint,
        quirks: &[],
        event_number: None,
        end: Some((None, "[DONE]")),
        finish_words: FinishWords(&[
            ("stop", &[Finish::Done, Finish::Refused, Finish::BadTool]),
            ("length", &[Finish::Length, Finish::Context]),
            ("tool_calls", &[Finish::Tool]),
            ("function_call", &[Finish::Tool]),
            ("content_filter", &[Finish::Filtered]),
            // Mistral's word for a context that was full.
            ("model_length", &[Finish::Context]),
        ]),
        usage: UsageKeys {
            input: &["prompt_tokens"],
            output: "completion_tokens",
            hidden: &["completion_tokens_details", "reasoning_tokens"],
            total: "total_tokens",
        },
        errors,
    }
}

/// The provider whose endpoint this is, as far as path and host tell; OpenAI's words are also those
/// of all that cannot be told.
pub(super) fn provider_at(target: Target<'_>, model: Option<&str>) -> &'static Provider {
    let (path, host) = (target.path(), target.host());
    if path == "/v1/chat/completions" && (host == "mistral.ai" || host.ends_with(".mistral.ai")) {
        return &MISTRAL;
    }
    let deployed = path.contains("/openai/deployments/");
    if deployed || target.parameter("api-version").is_some() {
        return &AZURE;
    }
    if path.ends_with("/openai/v1/chat/completions") {
        // Azure's newer path is Groq's. Groq's models are named after their makers.
        let is_openais = model.is_some_and(|model| model.starts_with("gpt-"));
        return if is_openais { &AZURE } else { &GROQ };
    }
    let routed = model.is_none_or(|model| model.contains('/'));
    if routed && path.ends_with("/api/v1/chat/completions") {
        return &OPENROUTER;
    }
    &OPENAI
}
