//! `embeddings:`: by what `similarity` and `behavior_unchanged` compare texts; without it by their words.

use squall_documents::Fields;

use super::model::from_one_variable;

/// An endpoint that gives embeddings, as `OpenAI`'s does, by which texts are compared.
#[derive(Clone, PartialEq, Eq)]
pub struct Embeddings {
    /// Name of the model.
    pub name: String,
    /// The API that it belongs to, like `http://localhost:11434/v1`.
    pub base_url: String,
    /// Key of the provider, from a variable; absent: none is needed.
    pub api_key: Option<String>,
}

impl std::fmt::Debug for Embeddings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Embeddings")
            .field("name", &self.name)
            .field("base_url", &self.base_url)
            .field("api_key", &self.api_key.as_ref().map(|_| "REDACTED"))
            .finish()
    }
}

pub(super) fn read(fields: &mut Fields<'_, '_>) -> Option<Embeddings> {
    let name = fields.words("name", "Name of the model.");
    let base_url = fields.words("base_url", "The API that serves it.");
    let api_key = fields.words("api_key", "Key of the provider: `${VAR}`.");
    fields.require("name", "the model's name, like `text-embedding-3-small`");
    fields.require(
        "base_url",
        "where it is served, like `https://api.openai.com/v1`",
    );
    from_one_variable(fields, "OPENAI_API_KEY");
    Some(Embeddings {
        name: name?.value,
        base_url: base_url?.value,
        api_key: api_key.map(|key| key.value),
    })
}
