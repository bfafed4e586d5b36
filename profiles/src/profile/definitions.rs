//! Definitions that the rules of one profile share: ids, globs and tool names.

use std::collections::HashMap;

use squall_documents::{Fields, Position};

use super::ids::Ids;
use crate::fault::FaultMode;
use crate::glob::{Glob, GlobError, UrlGlobs};
use crate::rule::Rule;
use crate::trigger::ArmedBy;

/// State that the rules of one profile share while they are read.
#[derive(Default)]
pub(super) struct Definitions<'p> {
    pub(super) owner: &'p str,
    /// Length of the JSON pointer to the profile.
    pub(super) base: usize,
    pub(super) ids: Ids,
    /// Parsed globs over words, by their text.
    pub(super) globs: HashMap<String, Glob>,
    /// URLs by the tool names that rules give them.
    pub(super) named: HashMap<String, Vec<String>>,
    pub(super) is_over_limit: bool,
}

impl Definitions<'_> {
    /// JSON pointer from the profile to the current value.
    pub(super) fn pointer(&self, fields: &Fields<'_, '_>) -> String {
        fields.reader.pointer()[self.base..].to_owned()
    }
}

impl Definitions<'_> {
    /// A rule with both `tool` and `match_url` defines the tool's URL for its whole file, unless
    /// the URL is the model's.
    pub(super) fn name_urls(&mut self, fields: &Fields<'_, '_>, mode: &FaultMode) {
        let tool = fields.glance("tool");
        let tool = tool.filter(|tool| !tool.contains(['*', '{']));
        if let (Some(tool), Some(urls)) = (tool, fields.node("match_url"))
            && !mode.changes_results(fields)
            && !mode.of_calls
        {
            let named = self.named.entry(tool.to_owned()).or_default();
            named.extend(urls.texts().map(str::to_owned));
        }
    }
}

pub(super) fn name_tools(
    rules: &mut [(Box<Rule>, Position)],
    definitions: &Definitions<'_>,
    fields: &mut Fields<'_, '_>,
) {
    if definitions.named.is_empty() {
        return;
    }
    let mut known: HashMap<Glob, UrlGlobs> = HashMap::new();
    for (rule, position) in rules {
        let armed_by = match rule.trigger.armed_by.as_deref_mut() {
            Some(ArmedBy::Exchange(matching)) => matching.tool.as_deref_mut(),
            Some(ArmedBy::Rule { .. }) | None => None,
        };
        let matching = rule.matching.tool.as_deref_mut();
        for tool in matching.into_iter().chain(armed_by) {
            if let Some(urls) = known.get(&tool.name) {
                tool.urls = urls.clone();
                continue;
            }
            let urls = urls_of(&tool.name, &definitions.named);
            tool.urls = match UrlGlobs::within(urls, &fields.reader.limits) {
                Ok(urls) => urls,
                Err((_, error @ GlobError::OverLimit(_))) => {
                    let pointer = format!("{}/tool", rule.origin.pointer);
                    fields.reader.below_pointer(&pointer, |reader| {
                        reader.error(*position, error.to_string());
                    });
                    return;
                }
                // Globs that do not compile were reported with their rule.
                Err(_) => UrlGlobs::default(),
            };
            known.insert(tool.name.clone(), tool.urls.clone());
        }
    }
}

/// The URL globs of all tools that a name or glob matches.
fn urls_of<'r>(tool: &Glob, named: &'r HashMap<String, Vec<String>>) -> Vec<&'r str> {
    let urls: Vec<_> = if let Some(literals) = tool.literals() {
        literals.filter_map(|name| named.get(name)).collect()
    } else {
        let matching = named.iter().filter(|(name, _)| tool.matches(name));
        matching.map(|(_, urls)| urls).collect()
    };
    urls.into_iter().flatten().map(String::as_str).collect()
}
