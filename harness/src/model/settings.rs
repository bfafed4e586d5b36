//! `model:`: the model that judges for `llm_judge` and writes mutations. It is not the agent's model.

use squall_documents::variables::is_one_variable;
use squall_documents::{At, Fields, Tree};

use squall_documents::named;

/// The model that Squall uses itself.
#[derive(Clone, PartialEq)]
pub struct Model {
    /// Its provider.
    pub provider: ModelProvider,
    /// Name of the model. Default for ollama: `qwen3:8b`.
    pub name: String,
    /// API key, from a variable; ollama requires none.
    pub api_key: Option<String>,
    /// Base URL of the API; `None`: the provider's default.
    pub base_url: Option<String>,
    /// 0 to 2. Default 0.8.
    pub temperature: f64,
}

impl Model {
    /// The base URL of the API.
    pub fn base_url(&self) -> &str {
        let own = match self.provider {
            ModelProvider::Ollama => OLLAMA,
            ModelProvider::OpenAi => "https://api.openai.com/v1",
            ModelProvider::Anthropic => "https://api.anthropic.com",
            ModelProvider::Google => "https://generativelanguage.googleapis.com",
        };
        self.base_url.as_deref().unwrap_or(own)
    }
}

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Model")
            .field("provider", &self.provider)
            .field("name", &self.name)
            .field("api_key", &self.api_key.as_ref().map(|_| "REDACTED"))
            .field("base_url", &self.base_url)
            .field("temperature", &self.temperature)
            .finish()
    }
}

named! {
    /// The provider of a model.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum ModelProvider {
        /// Ollama, the default.
        Ollama = "ollama",
        /// `OpenAI`, and servers that support its API.
        OpenAi = "openai",
        /// Anthropic.
        Anthropic = "anthropic",
        /// Google.
        Google = "google",
    }
}

/// Ollama's default address.
const OLLAMA: &str = "http://localhost:11434";

pub(crate) fn read(fields: &mut Fields<'_, '_>) -> Option<Model> {
    let about = "Who serves it; default `ollama`.";
    let provider = fields.word("provider", about, "provider", ModelProvider::NAMES);
    let name = either_word(fields, "name", "Its name there.", "model");
    let api_key = fields.text("api_key", "Key of the provider: `${VAR}`.");
    let base_url = either_word(fields, "base_url", "Where the provider is.", "host");
    let temperature = fields.real("temperature", "Default 0.8.", 0.0..=2.0, "");
    let provider = match provider {
        None if fields.has("provider") => return None,
        None => ModelProvider::Ollama,
        Some(provider) => provider,
    };
    if provider != ModelProvider::Ollama || api_key.is_some() {
        keyed(fields, provider);
    }
    if provider != ModelProvider::Ollama && name.is_none() && !fields.has("name") {
        fields.missing("name", "the model's name, like `gpt-4o-mini`");
        return None;
    }
    let default_url = (provider == ModelProvider::Ollama).then(|| OLLAMA.to_owned());
    Some(Model {
        provider,
        name: name.map_or_else(|| "qwen3:8b".to_owned(), |name| name.value),
        api_key: api_key.map(|key| key.value),
        base_url: base_url.map(|url| url.value).or(default_url),
        temperature: temperature.unwrap_or(0.8),
    })
}

/// Reads a field that has another name in some of flakestorm's documents.
fn either_word(
    fields: &mut Fields<'_, '_>,
    name: &'static str,
    about: &str,
    other: &'static str,
) -> Option<At<String>> {
    let named = fields.words(name, about);
    let otherwise = fields.words(other, &format!("The same as `{name}`."));
    if fields.has(name) && fields.has(other) {
        let message =
            format!("`{other}` is another word for `{name}`, which stands here too; keep one");
        fields.error(other, message);
    }
    named.or(otherwise)
}

/// Requires the key to be exactly one variable.
fn keyed(fields: &mut Fields<'_, '_>, provider: ModelProvider) {
    let variable = match provider {
        ModelProvider::Ollama | ModelProvider::OpenAi => "OPENAI_API_KEY",
        ModelProvider::Anthropic => "ANTHROPIC_API_KEY",
        ModelProvider::Google => "GOOGLE_API_KEY",
    };
    if !fields.has("api_key") {
        fields.missing("api_key", &format!("`api_key: ${{{variable}}}`"));
    }
    from_one_variable(fields, variable);
}

/// Requires a key to be a variable; `like` is an example for the message.
pub(super) fn from_one_variable(fields: &mut Fields<'_, '_>, like: &str) {
    let Some(node) = fields.node("api_key") else {
        return;
    };
    let written = fields.reader.unexpanded(node.position);
    let is_empty = matches!(&node.value, Tree::Scalar { text, .. } if text.trim().is_empty());
    if written.is_some_and(is_one_variable) && is_empty {
        fields.error("api_key", "the variable of the key is empty; set it");
    } else if !written.is_some_and(is_one_variable) {
        // The message does not repeat the value, because it is secret.
        let message =
            format!("a suite must not contain a key; write `api_key: ${{{like}}}` and set it");
        fields.error("api_key", message);
    }
}
