//! Mutants that the suite's model writes, and the cache that keeps them.

use serde_json::json;
use squall_journal::redact::Redactor;

use super::LONGEST;
use super::words::INSTRUCTIONS;
use crate::dial::Dialler;
use crate::digest::sha256;
use crate::model::{Model, ModelCallError, ModelClient, ModelPrompt};
use crate::reach::Pending;

/// Keeps the texts that a model wrote, so that a repeated run gets the same mutants without calls.
pub trait MutantCache: Send + Sync {
    /// The texts of a key, in order; empty if there are none.
    fn load<'a>(&'a self, key: &'a str) -> Pending<'a, Vec<String>>;

    /// Replaces the texts of a key.
    fn save<'a>(&'a self, key: &'a str, texts: &'a [String]) -> Pending<'a, ()>;
}

/// Maximum tokens of a mutant.
const MOST_TOKENS: u32 = 4096;

/// Invalid texts in a row before no more are requested.
const RETRIES: usize = 3;

/// The suite's model.
pub(super) struct ModelWriter {
    client: ModelClient,
    model: Model,
}

impl ModelWriter {
    pub(super) fn new(model: &Model, dialler: &Dialler) -> Self {
        Self {
            client: ModelClient::new(model, dialler),
            model: model.clone(),
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.model.name
    }

    /// The key of a type's texts in the cache.
    pub(super) fn key(&self, kind: &str, prompt: &str, seed: u64) -> String {
        let Model {
            name, temperature, ..
        } = &self.model;
        let key = json!([self.model.base_url(), name, temperature, kind, prompt, seed]);
        sha256(key.to_string())
    }

    async fn write(
        &self,
        kind: &str,
        source: &str,
        known: &[String],
    ) -> Result<String, ModelCallError> {
        let instruction = INSTRUCTIONS.get(kind).map_or("", String::as_str);
        let mut system = format!(
            "You write test inputs for a chat agent. The user message is a request that the agent gets. Do not answer \
             it; write one variant of it.\n{instruction}\nReply with the variant only."
        );
        for text in known.iter().rev().take(10) {
            let beginning: String = text.chars().take(200).collect();
            system.push_str("\nIt must differ from: ");
            system.push_str(&beginning);
        }
        let request = ModelPrompt {
            system: &system,
            prompt: source,
            temperature: self.model.temperature,
            most_tokens: MOST_TOKENS,
            json: false,
        };
        self.client.ask(&request).await
    }
}

/// The texts of one type and one prompt.
#[derive(Default)]
pub(super) struct ModelTexts {
    texts: Vec<String>,
    is_loaded: bool,
    has_new: bool,
}

impl ModelTexts {
    /// The text with this number: kept, or written now. `None`: the model wrote no valid text.
    pub(super) async fn at(
        &mut self,
        number: usize,
        model: &ModelWriter,
        kind: &str,
        source: &str,
        key: &str,
        cache: &dyn MutantCache,
    ) -> Result<Option<String>, ModelCallError> {
        if !self.is_loaded {
            self.is_loaded = true;
            self.texts = cache.load(key).await;
        }
        if let Some(text) = self.texts.get(number) {
            return Ok(Some(text.clone()).filter(|text| !text.is_empty()));
        }
        for _ in 0..RETRIES {
            let written = model.write(kind, source, &self.texts).await?;
            let written = trimmed(&written);
            let is_new =
                !self.texts.iter().any(|known| known == written) && written != source.trim();
            if is_new && !written.is_empty() && written.len() <= LONGEST {
                self.has_new = true;
                self.texts.push(written.to_owned());
                return Ok(Some(written.to_owned()));
            }
        }
        // The number is used, so that those of later texts do not change.
        self.reject(number);
        Ok(None)
    }

    /// Forgets a text that gave no valid mutant.
    pub(super) fn reject(&mut self, number: usize) {
        if self.texts.len() <= number {
            self.texts.push(String::new());
        } else {
            self.texts[number].clear();
        }
    }

    /// Keeps the texts if there are new ones, unless one has a secret in it.
    pub(super) async fn keep(&self, key: &str, cache: &dyn MutantCache, redactor: &Redactor) {
        let has_secret = self
            .texts
            .iter()
            .any(|text| !redactor.find(text).is_empty());
        if self.has_new && !has_secret {
            cache.save(key, &self.texts).await;
        }
    }
}

/// The text without the quotes or the code fence around it.
fn trimmed(text: &str) -> &str {
    let text = text.trim();
    let pairs = [("```", "```"), ("\"", "\""), ("“", "”"), ("'", "'")];
    let inner = pairs.iter().find_map(|(first, last)| {
        let inner = text.strip_prefix(first)?.strip_suffix(last)?;
        (!inner.contains(first)).then_some(inner.trim())
    });
    inner.unwrap_or(text)
}
