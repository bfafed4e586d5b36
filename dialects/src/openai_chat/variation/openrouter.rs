//! `OpenRouter`, which hands on what the providers behind it say.

use super::{Told, retry_after};
use crate::dialect::{ErrorContext, Event};
use crate::json::{Value, quote};
use crate::model::ModelError;

/// `OpenRouter`'s code is the status, and what the provider behind it said is in the metadata.
pub(super) fn told(error: &ModelError, context: &ErrorContext<'_>) -> Told {
    let model = context.model.unwrap_or("openai/gpt-5-mini");
    let (status, message) = words(error, model);
    let metadata = match error {
        ModelError::RateLimit { .. } => Some(format!(
            "\"raw\":{}",
            quote(&format!(
                "{model} is temporarily rate-limited upstream. Please retry shortly."
            ))
        )),
        ModelError::ServerError { status } => Some(format!(
            "\"raw\":{}",
            quote(&format!("error code: {status}"))
        )),
        ModelError::ContentFilter => {
            Some("\"reasons\":[\"violence\"],\"flagged_input\":\"\"".to_owned())
        }
        ModelError::QuotaExhausted
        | ModelError::ContextLength
        | ModelError::Auth
        | ModelError::ModelNotFound
        | ModelError::Timeout
        | ModelError::Overloaded => None,
    };
    let metadata = metadata.map_or_else(String::new, |metadata| {
        let provider = quote(provider(model));
        format!(",\"metadata\":{{{metadata},\"provider_name\":{provider}}}")
    });
    Told {
        status,
        body: format!(
            "{{\"error\":{{\"message\":{},\"code\":{status}{metadata}}}}}",
            quote(&message)
        ),
        headers: Vec::from_iter(retry_after(error)),
    }
}

fn words(error: &ModelError, model: &str) -> (u16, String) {
    let returned = "Provider returned error";
    let (status, message) = match error {
        ModelError::RateLimit { .. } => (429, returned),
        ModelError::QuotaExhausted => (
            402,
            "Insufficient credits. Add more using https://openrouter.ai/settings/credits",
        ),
        ModelError::ContextLength => (
            400,
            "This endpoint's maximum context length is exceeded. Please reduce the length of the \
             messages, or use the \"middle-out\" transform to compress your prompt automatically.",
        ),
        ModelError::ContentFilter => (
            403,
            "Your chosen model requires moderation and your input was flagged",
        ),
        ModelError::Auth => (401, "Invalid credentials"),
        ModelError::ModelNotFound => return (404, format!("No endpoints found for {model}.")),
        ModelError::Timeout => (408, "Your request timed out"),
        ModelError::ServerError { status } => (*status, returned),
        ModelError::Overloaded => (
            503,
            "There is no available model provider that meets your routing requirements",
        ),
    };
    (status, message.to_owned())
}

/// Who serves a model, by its name: `openai/gpt-5-mini`.
fn provider(model: &str) -> &str {
    model
        .split_once('/')
        .map_or("OpenAI", |(provider, _)| provider)
}

/// In a stream `OpenRouter` ends the choice with `error`, in a chunk like any other.
pub(super) fn chunk(error: &ModelError, after: Option<Event<'_>>) -> String {
    let of_last = |key| {
        let value = after.and_then(|event| event.root().get(key));
        value.map(|value: Value<'_>| format!("\"{key}\":{},", value.raw()))
    };
    let model = after.and_then(|event| event.root().get("model")?.as_str());
    let (code, message) = words(error, model.as_deref().unwrap_or_default());
    let carried: String = ["id", "provider", "model", "object", "created"]
        .into_iter()
        .filter_map(of_last)
        .collect();
    format!(
        "{{{carried}\"error\":{{\"code\":{code},\"message\":{}}},\"choices\":[{{\"index\":0,\
         \"delta\":{{\"content\":\"\"}},\"finish_reason\":\"error\"}}]}}",
        quote(&message)
    )
}
