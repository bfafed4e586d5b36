//! `embeddings:`: by what `similarity` and `behavior_unchanged` compare texts; without it by their words.

use super::model::from_one_variable;
use super::reader::Fields;

/// By what texts are compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Embeddings {
    /// What an endpoint gives.
    Endpoint(EmbeddingsEndpoint),
    /// A static model in this folder, as `Model2Vec` writes it; a relative one below the suite's.
    Folder(String),
}

/// An endpoint that gives embeddings, as `OpenAI`'s does.
#[derive(Clone, PartialEq, Eq)]
pub struct EmbeddingsEndpoint {
    /// Name of the model.
    pub name: String,
    /// The API that it belongs to, like `http://localhost:11434/v1`.
    pub base_url: String,
    /// Key of the provider, from a variable; absent: none is needed.
    pub api_key: Option<String>,
}

impl std::fmt::Debug for EmbeddingsEndpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EmbeddingsEndpoint")
            .field("name", &self.name)
            .field("base_url", &self.base_url)
            .field("api_key", &self.api_key.as_ref().map(|_| "REDACTED"))
            .finish()
    }
}

pub(super) fn read(fields: &mut Fields<'_, '_, '_>) -> Option<Embeddings> {
    let name = fields.words("name");
    let base_url = fields.words("base_url");
    let api_key = fields.words("api_key");
    let folder = fields.words("folder");
    if fields.has("folder") {
        for other in ["name", "base_url", "api_key"] {
            if fields.has(other) {
                let message = format!(
                    "`{other}` is an endpoint's, and a model in a folder has none; leave it out"
                );
                fields.error(other, message);
            }
        }
        return Some(Embeddings::Folder(folder?.value));
    }
    if !fields.has("name") {
        fields.missing("name", "the model's name, like `text-embedding-3-small`");
    }
    if !fields.has("base_url") {
        fields.missing(
            "base_url",
            "where it is served, like `https://api.openai.com/v1`, or `folder` for a static model on disk",
        );
    }
    from_one_variable(fields, "OPENAI_API_KEY");
    Some(Embeddings::Endpoint(EmbeddingsEndpoint {
        name: name?.value,
        base_url: base_url?.value,
        api_key: api_key.map(|key| key.value),
    }))
}
