//! What rules are called, and who refers to whom by that name.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Value, json};
use xxhash_rust::xxh3::xxh3_64;

use super::located::At;
use super::reader::Reader;
use crate::error::did_you_mean;
use crate::rule::Rule;
use crate::trigger::ArmedBy;

/// Gives out ids within one profile.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    given: HashMap<String, u32>,
    twins: HashMap<String, u32>,
}

impl Ids {
    /// Notes an id that was written; a second one of that name is an error.
    pub(crate) fn given(&mut self, at: &At<String>, reader: &mut Reader) -> String {
        if !super::is_word(&at.value) {
            let message = format!(
                "`id: {}`: allowed are 1 to 64 of a-z, 0-9, `_` and `-`",
                at.value
            );
            reader.error("id", at.position, message);
        }
        let mut id = at.value.clone();
        reader.redactor.text(&mut id, usize::MAX);
        reader.ids.insert(id.clone());
        let line = reader.place(at.position).line;
        if let Some(line) = self.given.insert(id.clone(), line) {
            let message = format!("`id: {id}` is taken by the rule on line {line}");
            reader.error("id", at.position, message);
        }
        id
    }

    /// Makes an id from what a rule matches and does: adding, moving or re-timing rules renames no
    /// other. Exact twins are numbered from the second on.
    pub(crate) fn made(&mut self, mode: &str, matching: &Value, fault: &Value) -> String {
        // JSON text in a fixed order of members is stable across releases; so is XXH3.
        let hash = xxh3_64(json!([mode, matching, fault]).to_string().as_bytes());
        let id = format!("{mode}-{:08x}", hash >> 32);
        let twin = self.twins.entry(id.clone()).or_insert(0);
        *twin += 1;
        if *twin == 1 {
            id
        } else {
            format!("{id}-{twin}")
        }
    }
}

/// Says which `armed_by` name a rule that is not there.
pub(crate) fn check_references(rules: &[Arc<Rule>], reader: &mut Reader) {
    for rule in rules {
        if let Some(ArmedBy::Rule { id, position }) = rule.trigger.armed_by.as_deref()
            && !rules.iter().any(|other| other.id == *id)
            && !reader.ids.contains(id)
        {
            let message = unknown_rule(id, rules);
            let before = reader.pointer.follow(&rule.origin.pointer);
            reader.below("armed_by", |reader| {
                reader.placed_error("rule", *position, message);
            });
            reader.pointer.leave(before);
        }
    }
}

/// The sentence for an `armed_by` that names no rule.
pub(crate) fn unknown_rule(id: &str, rules: &[Arc<Rule>]) -> String {
    let ids = || rules.iter().map(|rule| rule.id.as_str());
    let hint = did_you_mean(id, ids());
    format!("`armed_by` names the rule `{id}`, and no rule has that id{hint}")
}
