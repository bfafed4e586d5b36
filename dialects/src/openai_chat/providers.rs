//! Providers that use this dialect with their own errors.
//!
//! | provider | recognised by | error body |
//! |---|---|---|
//! | Azure OpenAI | `…/openai/deployments/…`, or an `api-version` | `{"error": {"code": "429", "message"}}` |
//! | Groq | `…/openai/v1/chat/completions` | OpenAI's, without `param` |
//! | Mistral | `/v1/chat/completions` at a Mistral host | `{"object": "error", "message", "type", "code"}` |
//! | `OpenRouter` | `…/api/v1/chat/completions`, `/` in models | `{"error": {"code": 429, "message", "metadata"}}` |
//!
//! If a provider forwards the model's own error, that is OpenAI's. Responses need no variation: additional fields
//! of all providers are read everywhere.

use crate::dialect::{Provider, Quirk};
use crate::errors::{self, Templates};
use crate::model::{Finish, FinishWords, UsageKeys};
use crate::target::Target;

pub(super) static OPENAI: Provider = provider("openai-chat", &errors::OPENAI);
pub(super) static AZURE: Provider = provider("openai-chat/azure", &errors::AZURE);
pub(super) static GROQ: Provider = Provider {
    // Messages have no `refusal` field beside `content`, and clients do not show one.
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
        end_mark: Some("[DONE]"),
        finish_words: FinishWords(&[
            ("stop", &[Finish::Done, Finish::Refused, Finish::BadTool]),
            ("length", &[Finish::Length, Finish::Context]),
            ("tool_calls", &[Finish::Tool]),
            ("function_call", &[Finish::Tool]),
            ("content_filter", &[Finish::Filtered]),
            // Mistral's reason for a full context window.
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

/// The provider of an endpoint, judging by path, host and model. If it is unknown, OpenAI's format is used.
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
        // Azure's newer path is the same as Groq's. Groq's models are named after their vendors.
        let is_openais = model.is_some_and(|model| model.starts_with("gpt-"));
        return if is_openais { &AZURE } else { &GROQ };
    }
    let routed = model.is_none_or(|model| model.contains('/'));
    if routed && path.ends_with("/api/v1/chat/completions") {
        return &OPENROUTER;
    }
    &OPENAI
}
