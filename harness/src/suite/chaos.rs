//! Chaos in a suite: its own `chaos:`, and a contract's scenarios.

use std::sync::Arc;

use squall_documents::{At, Fields, Tree, ValueReader};
use squall_profiles::library::Library;
use squall_profiles::profile::{self, Profile};
use squall_profiles::tools::ToolNames;
use squall_profiles::validate::validate;

/// What the reader of a suite's chaos needs.
#[derive(Clone, Copy)]
pub(super) struct Context<'c> {
    pub(super) library: &'c Library,
    pub(super) tools: &'c ToolNames,
}

/// Profile fields that are allowed in a suite's chaos and in scenarios.
const FIELDS: [&str; 6] = [
    "description",
    "extends",
    "network_faults",
    "tool_faults",
    "llm_faults",
    "context_attacks",
];

/// A suite's own chaos: a map from families to rules.
pub(super) fn read(value: &mut ValueReader<'_, '_>, context: Context<'_>) -> Option<Arc<Profile>> {
    value.fields("a map of families of faults", |fields| {
        Some(read_profile(fields, context, "suite", false))
    })
}

/// Reads the chaos in a map.
pub(super) fn read_profile(
    fields: &mut Fields<'_, '_>,
    context: Context<'_>,
    name: &str,
    may_extend: bool,
) -> Arc<Profile> {
    let mut profile = profile::read_part(fields, name, may_extend);
    let part = fields.part(&FIELDS);
    profile.is_written_in(fields.reader, &part);
    // A clean scenario has no rules intentionally.
    let is_clean = profile.rules.is_empty() && profile.extends.is_empty();
    // The daemon that executes the suite may have additional profiles.
    let mut extended = profile.extends.iter();
    let are_known = extended.all(|extended| context.library.get(&extended.name).is_some());
    if !is_clean && are_known && !fields.reader.has_errors() {
        note_doubts(fields, &profile, context, &part);
    }
    Arc::new(profile)
}

fn note_doubts(
    fields: &mut Fields<'_, '_>,
    profile: &Profile,
    context: Context<'_>,
    part: &At<Tree>,
) {
    // The name is removed, because a scenario may have the name of the profile that it extends.
    let mut nameless = profile.clone();
    nameless.name = None;
    for doubt in validate(&nameless, context.library, context.tools) {
        let own = doubt.file == *profile.file;
        let pointer = if own { &*doubt.pointer } else { "/extends" };
        let message = if own {
            doubt.message
        } else {
            format!("of what is extended here, {doubt}")
        };
        let place = part.nearest(pointer).position;
        let note = |reader: &mut squall_documents::DocumentReader| reader.note(place, message);
        fields.reader.below_pointer(pointer, note);
    }
}
