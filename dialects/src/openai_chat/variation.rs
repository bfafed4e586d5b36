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
//! the providers add is read from all of them.

use crate::dialect::Target;
use crate::errors::{self, Templates};

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

    /// The templates of its errors.
    pub(super) fn templates(self) -> &'static Templates {
        match self {
            Self::Azure => &errors::AZURE,
            Self::Groq => &errors::GROQ,
            Self::Mistral => &errors::MISTRAL,
            Self::OpenRouter => &errors::OPENROUTER,
        }
    }
}
