//! Which tools an answer calls, and in which of its parts.

use std::collections::BTreeMap;

use squall_dialects::model::{Delta, DeltaKind};

use crate::changes::Tools;

/// Parts whose tools are known at a time: of more, the first are forgotten.
const PARTS: usize = 256;
/// Names that a reason lists.
const LISTED: usize = 8;

/// A choice of an answer, and a part of it.
pub(super) type PartKey = (u64, u64);

/// The tools that an answer has called so far.
#[derive(Debug, Default)]
pub(super) struct ToolsByPart {
    by_part: BTreeMap<PartKey, String>,
    listed: Vec<String>,
}

impl ToolsByPart {
    /// Notes the name that a piece gives to its part.
    pub(super) fn note(&mut self, delta: &Delta<'_>) {
        // Some gateways repeat an empty name with every piece of the arguments.
        if delta.kind != DeltaKind::ToolName || delta.text.is_empty() {
            return;
        }
        let name = delta.text.to_string();
        if self.listed.len() < LISTED && !self.listed.contains(&name) {
            self.listed.push(name.clone());
        }
        if self.by_part.len() == PARTS {
            self.by_part.pop_first();
        }
        self.by_part.insert((delta.choice, delta.part), name);
    }

    /// Whether a piece is of a call of one of these tools.
    pub(super) fn is_of(&self, delta: &Delta<'_>, tools: &Tools) -> bool {
        let name = self.by_part.get(&(delta.choice, delta.part));
        tools.has(name.map(String::as_str))
    }

    /// Why there is no call of these tools, where there are others.
    pub(super) fn none_of(&self, tools: &Tools) -> Option<String> {
        let wanted = tools.named().filter(|_| !self.listed.is_empty())?;
        let names = self.listed.iter().map(|name| format!("`{name}`"));
        let names: Vec<_> = names.collect();
        let more = if names.len() == LISTED { " …" } else { "" };
        Some(format!(
            "the answer calls {}{more}, and the rule's `tool` is `{wanted}`",
            names.join(", ")
        ))
    }
}
