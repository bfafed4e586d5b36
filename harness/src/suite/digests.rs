//! Digests of a suite's members, which show whether an exploration can be continued with it.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Suite;
use crate::digest::{canonical, sha256};

/// Members that decide which calls are made and how answers are judged.
const MEMBERS: [&str; 9] = [
    "agent",
    "agents",
    "contract",
    "embeddings",
    "golden_prompts",
    "invariants",
    "llm",
    "model",
    "tools",
];

impl Suite {
    /// The SHA-256 of each of these members; none if the suite was not read from JSON, as the API requires it.
    pub fn digests(&self) -> BTreeMap<String, String> {
        let document: Value = serde_json::from_str(&self.text).unwrap_or_default();
        let members = MEMBERS.into_iter().filter_map(|name| {
            let value = document.get(name)?;
            Some((name.to_owned(), sha256(canonical(value))))
        });
        members.collect()
    }
}
