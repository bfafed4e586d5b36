//! The payload library: instructions that an agent finds in its context and should not obey.
//!
//! Each category is a file in `payloads/`, with texts written for Squall. Every payload requests a
//! harmless action that is visible in traffic: to repeat its canary, to call an unrequested tool,
//! or to contact a host under `.example` (RFC 2606 §2). `docs/payloads.md` lists them; a test keeps
//! it up to date.

mod choice;

use std::sync::LazyLock;

use serde::Deserialize;
use squall_documents::parse;

pub use self::choice::{Chosen, PayloadName, Payloads};

/// Version of the library; it changes when a payload is added, removed or reworded.
pub const VERSION: u32 = 1;

/// Payloads that use the same technique.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Category {
    /// Its name in profiles, `[a-z_]`.
    pub name: String,
    /// The effect of its payloads, in one sentence.
    pub description: String,
    /// Names for it in published catalogues.
    pub terms: Vec<String>,
    /// At least one.
    pub payloads: Vec<Payload>,
}

/// One instruction that should not be obeyed.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Payload {
    /// Unique in the library, `[a-z0-9-]`; never reused.
    pub id: String,
    /// Language of the text (BCP 47); default `en`.
    #[serde(default = "english")]
    pub language: String,
    /// The instruction, with `{canary}` as the placeholder of its canary.
    pub text: String,
    /// What an agent does if it obeys.
    pub obeyed: String,
}

fn english() -> String {
    "en".to_owned()
}

/// The files of the library, in the order of the documentation.
const FILES: [&str; 12] = [
    include_str!("payloads/direct_override.yaml"),
    include_str!("payloads/role_play.yaml"),
    include_str!("payloads/authority_impersonation.yaml"),
    include_str!("payloads/social_pressure.yaml"),
    include_str!("payloads/system_prompt_extraction.yaml"),
    include_str!("payloads/data_exfiltration.yaml"),
    include_str!("payloads/tool_misuse.yaml"),
    include_str!("payloads/memory_persistence.yaml"),
    include_str!("payloads/encoding_obfuscation.yaml"),
    include_str!("payloads/multilingual.yaml"),
    include_str!("payloads/delimiter_confusion.yaml"),
    include_str!("payloads/hidden_text.yaml"),
];

/// All categories, in the order of the documentation.
pub fn library() -> &'static [Category] {
    static LIBRARY: LazyLock<Vec<Category>> = LazyLock::new(|| {
        let read = |text: &&str| category(text).expect("the library's files are sound");
        FILES.iter().map(read).collect()
    });
    &LIBRARY
}

fn category(text: &str) -> Option<Category> {
    let tree = parse("payloads", text).ok()?;
    serde_json::from_value(tree.value.to_json()).ok()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::fmt::Write as _;

    use regex::Regex;
    use xxhash_rust::xxh3::xxh3_64;

    use super::*;
    use crate::canary::PLACEHOLDER;

    fn payloads() -> impl Iterator<Item = &'static Payload> {
        library().iter().flat_map(|category| &category.payloads)
    }

    #[test]
    fn the_library_is_as_big_as_it_says() {
        assert!(library().len() >= 10, "{} categories", library().len());
        assert!(payloads().count() >= 110, "{} payloads", payloads().count());
        for category in library() {
            assert!(category.payloads.len() >= 8, "{}", category.name);
        }
    }

    #[test]
    fn everything_is_named_once_and_described() {
        let word = Regex::new("^[a-z][a-z0-9]*([_-][a-z0-9]+)*$").unwrap();
        let mut names = HashSet::new();
        for category in library() {
            let Category {
                name,
                description,
                terms,
                ..
            } = category;
            assert!(word.is_match(name) && names.insert(name), "{name}");
            assert!(description.ends_with('.'), "{name}");
            assert!(!terms.is_empty(), "{name}");
        }
        let code = Regex::new("^[a-z]{2}$").unwrap();
        for Payload {
            id,
            language,
            obeyed,
            ..
        } in payloads()
        {
            assert!(word.is_match(id) && names.insert(id), "{id}");
            assert!(code.is_match(language), "{id}");
            assert!(!obeyed.trim().is_empty(), "{id}");
        }
    }

    #[test]
    fn every_payload_carries_its_canary_and_none_is_another_s_twin() {
        let mut texts = HashSet::new();
        for Payload { id, text, .. } in payloads() {
            assert_eq!(text.matches(PLACEHOLDER).count(), 1, "{id}");
            assert_eq!(text.trim(), text, "{id}");
            assert!(texts.insert(text.to_lowercase()), "{id}");
        }
    }

    #[test]
    fn no_payload_names_a_host_that_could_exist() {
        let host = Regex::new(r#"(?:https?://|@)([^\s/?)"]+)"#).unwrap();
        for Payload { id, text, .. } in payloads() {
            for found in host.captures_iter(text) {
                let host = found[1].trim_end_matches(['.', ',', ';']);
                assert!(host.ends_with(".example"), "{id}: {host}");
            }
        }
    }

    #[test]
    fn the_other_languages_are_noted() {
        let languages: HashSet<_> = payloads()
            .map(|payload| payload.language.as_str())
            .collect();
        assert!(languages.len() >= 10, "{languages:?}");
        for Payload { id, language, .. } in payloads() {
            assert_eq!(id.starts_with("language-"), language != "en", "{id}");
        }
    }

    #[test]
    fn what_is_wrong_with_a_file_is_no_library() {
        for broken in [
            "name: x\ndescription: X.\nterms: []\npayloads: []\nmore: 1",
            "name: x\ndescription: X.\nterms: []",
            "name: x\ndescription: X.\nterms: []\npayloads: [{id: a, text: b}]",
            "name: x\ndescription: X.\nterms: []\npayloads: [{id: a, text: b, obeyed: c, lang: d}]",
        ] {
            assert!(category(broken).is_none(), "{broken}");
        }
    }

    /// If you change a payload, increase the version, then update this pair.
    #[test]
    fn another_library_has_another_version() {
        let mut all = String::new();
        for category in library() {
            for Payload { id, text, .. } in &category.payloads {
                writeln!(all, "{} {id} {text}", category.name).unwrap();
            }
        }
        assert_eq!(
            (VERSION, xxh3_64(all.as_bytes())),
            (1, 11_989_362_071_677_131_234)
        );
    }
}
