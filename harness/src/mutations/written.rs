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

/// How answers begin in which a model refuses to write.
const REFUSALS: [&str; 5] = [
    "I'm sorry, but I can",
    "I can't help",
    "I can't assist",
    "I cannot help",
    "I cannot assist",
];

/// How answers begin that introduce the mutant.
const INTRODUCTIONS: [&str; 2] = ["Here is", "Here's"];

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
            provider,
            name,
            temperature,
            ..
        } = &self.model;
        let (provider, url) = (provider.as_str(), self.model.base_url());
        let key = json!([provider, url, name, temperature, kind, prompt, seed]);
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
    /// What was wrong with the last rejected answer.
    pub(super) rejected: Option<&'static str>,
}

impl ModelTexts {
    /// The text with this number: kept, or written now. `None`: the model's answer is rejected.
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
        let written = model.write(kind, source, &self.texts).await?;
        let written = trimmed(&written);
        let is_known = self.texts.iter().any(|known| known == written);
        self.rejected = if written.is_empty() {
            Some("empty")
        } else if is_refusal(written) {
            Some("a refusal")
        } else if written.len() > LONGEST {
            Some("longer than 64 KiB")
        } else if is_known || written == source.trim() {
            Some("the prompt or an earlier text")
        } else {
            None
        };
        if self.rejected.is_some() {
            // The number is used, so that those of later texts do not change.
            self.reject(number);
            return Ok(None);
        }
        self.has_new = true;
        self.texts.push(written.to_owned());
        Ok(Some(written.to_owned()))
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

fn is_refusal(text: &str) -> bool {
    let text = text.replace('’', "'");
    REFUSALS.iter().any(|begins| text.starts_with(begins))
}

/// The text without the model's thoughts, an introduction, and the code fence or the quotes around it.
fn trimmed(text: &str) -> &str {
    let mut text = text.trim();
    if let Some(thoughts) = text.strip_prefix("<think>") {
        // Thoughts without an end were cut.
        text = thoughts.split_once("</think>").map_or("", |(_, rest)| rest);
    }
    if let Some((first, rest)) = text.split_once(':')
        && !first.contains('\n')
        && INTRODUCTIONS
            .iter()
            .any(|begins| first.trim().replace('’', "'").starts_with(begins))
    {
        text = rest;
    }
    let text = text.trim();
    let fenced = text
        .strip_prefix("```")
        .and_then(|text| text.strip_suffix("```"));
    if let Some((language, inner)) = fenced.and_then(|text| text.split_once('\n')) {
        let is_language = !language.trim().contains(char::is_whitespace);
        return if is_language { inner.trim() } else { text };
    }
    let pairs = [("```", "```"), ("\"", "\""), ("“", "”"), ("'", "'")];
    let inner = pairs.iter().find_map(|(first, last)| {
        let inner = text.strip_prefix(first)?.strip_suffix(last)?;
        (!inner.contains(first)).then_some(inner.trim())
    });
    inner.unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_around_a_mutant_is_trimmed_and_a_refusal_is_none() {
        for (answer, expected) in [
            (" \"Weather?\" ", "Weather?"),
            ("<think>hm: \"hm\"</think>\n\nWeather?", "Weather?"),
            ("<think>hm", ""),
            ("Here is the mutated prompt: \"Weather?\"", "Weather?"),
            ("Here’s one:\n```text\nWeather?\n```", "Weather?"),
            ("```Weather?```", "Weather?"),
            ("He asked: \"Weather?\"", "He asked: \"Weather?\""),
            ("Say \"a\" and \"b\"", "Say \"a\" and \"b\""),
        ] {
            assert_eq!(trimmed(answer), expected);
        }
        assert!(is_refusal("I’m sorry, but I can't help with that."));
        assert!(!is_refusal("I'm sorry to bother you: weather?"));
    }
}
