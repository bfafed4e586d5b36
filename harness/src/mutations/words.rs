//! The words that transformations use: `mutations/words.yaml`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use squall_documents::parse;

/// The tables of `words.yaml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MutationWords {
    /// What attacks demand.
    pub(super) goals: Vec<String>,
    /// A sentence without meaning for any request.
    pub(super) filler: String,
    pub(super) synonyms: BTreeMap<String, Vec<String>>,
    pub(super) antonyms: BTreeMap<String, Vec<String>>,
    pub(super) abbreviations: BTreeMap<String, Vec<String>>,
    pub(super) emoji: Vec<String>,
    /// A letter and those beside it on a keyboard.
    pub(super) neighbours: Vec<String>,
    pub(super) leet: BTreeMap<char, String>,
    pub(super) homoglyphs: BTreeMap<char, String>,
}

pub(super) static WORDS: LazyLock<MutationWords> =
    LazyLock::new(|| table("words.yaml", include_str!("../../mutations/words.yaml")));

/// The instruction for the suite's model, by type.
pub(super) static INSTRUCTIONS: LazyLock<BTreeMap<String, String>> = LazyLock::new(|| {
    let text = include_str!("../../mutations/instructions.yaml");
    table("instructions.yaml", text)
});

/// Reads a file of the program. A test reads all of them.
fn table<T: DeserializeOwned>(file: &str, text: &str) -> T {
    let tree = parse(file, text).expect("a valid file");
    serde_json::from_value(tree.value.to_json()).expect("a valid table")
}
