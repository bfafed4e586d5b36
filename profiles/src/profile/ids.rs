//! Ids of rules, and the references between rules.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Value, json};
use squall_documents::{At, DocumentReader, Fields, did_you_mean};
use xxhash_rust::xxh3::xxh3_64;

use super::{LONGEST_NAME, is_word};
use crate::rule::Rule;

/// Assigns unique ids within one profile.
#[derive(Debug, Default)]
pub(super) struct Ids {
    /// Explicit ids with their lines, including those of invalid rules.
    given: HashMap<String, u32>,
    derived: HashMap<String, u32>,
    /// Ids that rules refer to, with the JSON pointer from the profile to the reference.
    referred: Vec<(At<String>, String)>,
}

impl Ids {
    /// Reads `id`; a duplicate is an error.
    pub(super) fn read(&mut self, fields: &mut Fields<'_, '_>) -> Option<String> {
        let about = "Unique in the profile, `[a-z0-9_-]`, at most 64 characters; default: mode and a hash of match \
                     and fault.";
        fields.field("id", about, |value| {
            let mut id = value.text()?.value;
            if !is_word(&id) {
                value.error(format!(
                    "`id: {id}`: expected 1 to {LONGEST_NAME} characters of a-z, 0-9, `_` and `-`"
                ));
            }
            value.reader.hide(&mut id);
            let (_, place) = value.reader.source().place(value.position());
            if let Some(line) = self.given.insert(id.clone(), place.line) {
                value.error(format!("`id: {id}` is taken by the rule on line {line}"));
            }
            Some(id)
        })
    }

    /// Derives an id from match and fault, so adding, moving or re-timing rules changes no other
    /// id. Identical rules are numbered from the second on.
    pub(super) fn derive(&mut self, mode: &str, matching: &Value, fault: &Value) -> String {
        // JSON with a fixed member order is stable across releases, and so is XXH3.
        let hash = xxh3_64(json!([mode, matching, fault]).to_string().as_bytes());
        let id = format!("{mode}-{:08x}", hash >> 32);
        let twin = self.derived.entry(id.clone()).or_insert(0);
        *twin += 1;
        if *twin == 1 {
            return id;
        }
        let id = format!("{id}-{twin}");
        self.derived.insert(id.clone(), 1);
        id
    }

    /// Records that a rule refers to another one.
    pub(super) fn refer(&mut self, id: &At<String>, pointer: String) {
        self.referred.push((id.clone(), pointer));
    }

    /// Reports references to ids that do not exist.
    pub(super) fn check_references(&self, reader: &mut DocumentReader) {
        for (id, pointer) in &self.referred {
            let (found, place) = (&id.value, id.position);
            if !self.given.contains_key(found) && !self.derived.contains_key(found) {
                let ids = self.given.keys().chain(self.derived.keys());
                let message = unknown(found, ids.map(String::as_str));
                reader.below_pointer(pointer, |reader| reader.error(place, message));
            }
        }
    }
}

/// The error for an `armed_by` that names no rule.
pub(crate) fn unknown_rule(id: &str, rules: &[Arc<Rule>]) -> String {
    unknown(id, rules.iter().map(|rule| rule.id.as_str()))
}

fn unknown<'i>(id: &str, ids: impl Iterator<Item = &'i str>) -> String {
    let hint = did_you_mean(id, ids);
    format!("`armed_by` names the rule `{id}`, and no rule has that id{hint}")
}
