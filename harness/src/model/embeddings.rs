//! `embeddings:`: the endpoint with which `similarity` and `behavior_unchanged` compare texts. Without it they
//! compare words.

use squall_documents::Fields;

use super::settings::from_one_variable;

/// An embeddings endpoint with `OpenAI`'s API.
#[derive(Clone, PartialEq, Eq)]
pub struct Embeddings {
    /// Name of the model.
    pub name: String,
    /// Base URL of the API, such as `http://localhost:11434/v1`.
    pub base_url: String,
    /// API key, from a variable; absent: not required.
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

pub(crate) fn read(fields: &mut Fields<'_, '_>) -> Option<Embeddings> {
    let name = fields.words("name", "Name of the model.");
    let base_url = fields.words("base_url", "The API that serves it.");
    let api_key = fields.text("api_key", "Key of the provider: `${VAR}`.");
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
