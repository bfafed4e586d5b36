//! Providers that speak this dialect with errors of their own.
//!
//! | variation | told by | error's body |
//! |---|---|---|
//! | Azure OpenAI | `…/openai/deployments/…`, or an `api-version` | `{"error": {"code": "429", "message"}}` |
//! | Groq | `…/openai/v1/chat/completions` | OpenAI's, without `param` |
//! | Mistral | `/v1/chat/completions` at a host of Mistral's: the path alone is OpenAI's | `{"object": "error", "message", "type", "code"}` |
//! | `OpenRouter` | `…/api/v1/chat/completions`, models with a `/` | `{"error": {"code": 429, "message", "metadata"}}` |
//!
//! Where a provider hands on the model's own error, it is OpenAI's. Answers need no variation: what
//! the providers add is read from all of them. Sources: the providers' error pages, their official
//! clients, and errors that users report.

mod azure;
mod groq;
mod mistral;
mod openrouter;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use crate::dialect::{ErrorContext, Event, Target, WireReply};
use crate::model::ModelError;
use crate::stream::Made;
use crate::waits::whole_seconds;

/// The domain whose hosts serve Mistral's API.
const MISTRAL: &str = "mistral.ai";

/// A provider that speaks this dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Variation {
    /// Azure OpenAI.
    Azure,
    /// Groq.
    Groq,
    /// Mistral.
    Mistral,
    /// `OpenRouter`.
    OpenRouter,
}

/// An error as one provider tells it.
struct Told {
    status: u16,
    body: String,
    headers: Vec<(&'static str, String)>,
}

impl Variation {
    /// The provider whose endpoint this is, as far as the path tells; `None` is OpenAI, or whoever
    /// does exactly as it does.
    pub(super) fn of(target: Target<'_>, model: Option<&str>) -> Option<Self> {
        let path = target.path();
        let is_mistrals = |host: &str| host == MISTRAL || host.ends_with(&format!(".{MISTRAL}"));
        if path == "/v1/chat/completions" && is_mistrals(target.host()) {
            return Some(Self::Mistral);
        }
        let deployed = path.contains("/openai/deployments/");
        if deployed || target.parameter("api-version").is_some() {
            return Some(Self::Azure);
        }
        if path.ends_with("/openai/v1/chat/completions") {
            // Azure's newer path is Groq's. Groq's models are named after whoever made them.
            let is_openais = model.is_some_and(|model| model.starts_with("gpt-"));
            return Some(if is_openais { Self::Azure } else { Self::Groq });
        }
        let routed = model.is_none_or(|model| model.contains('/'));
        (routed && path.ends_with("/api/v1/chat/completions")).then_some(Self::OpenRouter)
    }

    /// Whether messages have a `refusal` beside their `content`: Groq's and Mistral's have none, and
    /// their clients show none.
    pub(super) fn has_refusals(self) -> bool {
        match self {
            Self::Azure | Self::OpenRouter => true,
            Self::Groq | Self::Mistral => false,
        }
    }

    /// The reply with which this provider reports `error`.
    pub(super) fn error(self, error: &ModelError, context: &ErrorContext<'_>) -> WireReply {
        let told = match self {
            Self::Azure => azure::told(error, context),
            Self::Groq => groq::told(error, context),
            Self::Mistral => mistral::told(error, context),
            Self::OpenRouter => openrouter::told(error, context),
        };
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        for (name, value) in told.headers {
            if let Ok(value) = HeaderValue::try_from(value) {
                headers.insert(HeaderName::from_static(name), value);
            }
        }
        WireReply {
            status: StatusCode::from_u16(told.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            headers,
            body: Bytes::from(told.body),
        }
    }

    /// The event with which this provider reports `error` in a stream; `None`: as OpenAI does.
    pub(super) fn error_event(
        self,
        error: &ModelError,
        context: &ErrorContext<'_>,
        after: Option<Event<'_>>,
    ) -> Option<Made> {
        match self {
            Self::Azure => match error {
                // The model's own errors are OpenAI's.
                ModelError::ContextLength | ModelError::Timeout => None,
                ModelError::RateLimit { .. }
                | ModelError::QuotaExhausted
                | ModelError::ContentFilter
                | ModelError::Auth
                | ModelError::ModelNotFound
                | ModelError::ServerError { .. }
                | ModelError::Overloaded => Some(Made::data(azure::told(error, context).body)),
            },
            Self::Groq => Some(Made::event(
                "error",
                groq::told(error, context).body.trim_end(),
            )),
            Self::Mistral => Some(Made::data(mistral::told(error, context).body)),
            Self::OpenRouter => Some(Made::data(openrouter::chunk(error, after))),
        }
    }
}

/// The wait of a rate limit, as a header of whole seconds.
fn retry_after(error: &ModelError) -> Option<(&'static str, String)> {
    match error {
        ModelError::RateLimit {
            retry_after: Some(wait),
            ..
        } => Some(("retry-after", whole_seconds(*wait).to_string())),
        _ => None,
    }
}
