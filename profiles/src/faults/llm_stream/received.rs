//! What the agent received of a response's parts, for events that repeat it.

use std::collections::{BTreeMap, BTreeSet};

use squall_dialects::json::{Document, Edits, JsonKind, quote};
use squall_dialects::model::{Delta, DeltaKind};

/// Texts by choice, part and kind.
#[derive(Debug, Default)]
pub(super) struct ReceivedParts {
    texts: BTreeMap<(u64, u64, DeltaKind), String>,
    begun: BTreeSet<(u64, u64)>,
}

impl ReceivedParts {
    /// Adds a piece of a part that the agent received.
    pub(super) fn add(&mut self, delta: &Delta<'_>, text: &str) {
        self.begin(delta.choice, delta.part);
        let said = self.texts.entry(key(delta)).or_default();
        said.push_str(text);
    }

    /// Sets the complete part that the agent received.
    pub(super) fn set(&mut self, delta: &Delta<'_>, text: String) {
        self.begin(delta.choice, delta.part);
        self.texts.insert(key(delta), text);
    }

    /// Records the start of a part that the agent received.
    pub(super) fn begin(&mut self, choice: u64, part: u64) {
        self.begun.insert((choice, part));
    }

    pub(super) fn has_begun(&self, choice: u64, part: u64) -> bool {
        self.begun.contains(&(choice, part))
    }

    /// Whether the agent received everything that a value repeats.
    pub(super) fn is_whole(&self, delta: &Delta<'_>) -> bool {
        let text = self.texts.get(&key(delta));
        text.is_some_and(|text| delta.text == text.as_str())
    }

    /// Changes a value that repeats a part to what the agent received of it. False if that is
    /// unknown.
    pub(super) fn repeat(
        &self,
        edits: &mut Edits<'_>,
        document: &Document<'_>,
        delta: &Delta<'_>,
    ) -> bool {
        let Some(text) = self.texts.get(&key(delta)) else {
            return false;
        };
        if delta.text != text.as_str() {
            let is_text = document.value(delta.place).kind() == JsonKind::String;
            let json = if is_text { quote(text) } else { text.clone() };
            edits.replace(delta.place, json);
        }
        true
    }
}

fn key(delta: &Delta<'_>) -> (u64, u64, DeltaKind) {
    (delta.choice, delta.part, delta.kind)
}
