//! Chaos in a suite: its own `chaos:`, and the scenarios of a contract.

use std::sync::Arc;

use squall_documents::{At, Fields, Tree, ValueReader};
use squall_profiles::library::Library;
use squall_profiles::profile::{self, Profile};
use squall_profiles::tools::ToolNames;
use squall_profiles::validate::validate;

/// What a suite's chaos is read with.
#[derive(Clone, Copy)]
pub(super) struct Context<'c> {
    pub(super) library: &'c Library,
    pub(super) tools: &'c ToolNames,
}

/// The fields of a profile that a suite's chaos has, and a scenario.
const FIELDS: [&str; 6] = [
    "description",
    "extends",
    "network_faults",
    "tool_faults",
    "llm_faults",
    "context_attacks",
];

/// A suite's own chaos: a map of families of rules.
pub(super) fn read(value: &mut ValueReader<'_, '_>, context: Context<'_>) -> Option<Arc<Profile>> {
    value.fields("a map of families of faults", |fields| {
        Some(read_profile(fields, context, "suite", false))
    })
}

/// Reads the chaos in the map that is read.
pub(super) fn read_profile(
    fields: &mut Fields<'_, '_>,
    context: Context<'_>,
    name: &str,
    may_extend: bool,
) -> Arc<Profile> {
    let mut profile = profile::read_part(fields, name, may_extend);
    let part = fields.part(&FIELDS);
    profile.is_written_in(fields.reader, &part);
    // A clean scenario does nothing on purpose.
    let is_clean = profile.rules.is_empty() && profile.extends.is_empty();
    // The daemon that runs the suite may have more profiles than this library.
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
    // Without its name: a scenario may be called as the profile that it extends.
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
