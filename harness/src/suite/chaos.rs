//! Chaos that stands in a suite: its own `chaos:`, and the scenarios of a contract.
//!
//! The rules are read by `squall-profiles`, from the node as the profile it is; what is wrong with
//! them comes back as JSON pointers, which lead to the places in the suite.

use std::sync::Arc;

use serde_json::{Map, Value};
use squall_profiles::document::{At, Tree};
use squall_profiles::library::Library;
use squall_profiles::profile::{self, Profile};
use squall_profiles::tools::ToolNames;
use squall_profiles::validate::validate;
use squall_profiles::variables::Variables;

use super::reader::Reader;

/// What a suite's chaos is read with.
#[derive(Clone, Copy)]
pub(super) struct Context<'c> {
    pub(super) variables: Variables<'c>,
    pub(super) library: &'c Library,
    pub(super) tools: &'c ToolNames,
    /// The suite before its variables were expanded: a profile keeps what stood for them secret.
    pub(super) written: &'c At<Tree>,
}

/// The fields of a profile that hold rules.
pub(super) const FAMILIES: [&str; 4] = [
    "network_faults",
    "tool_faults",
    "llm_faults",
    "context_attacks",
];

/// A suite's own chaos: a map of families of rules.
pub(super) fn read(
    reader: &mut Reader<'_>,
    node: &At<Tree>,
    context: Context<'_>,
) -> Option<Arc<Profile>> {
    reader.fields(node, "a map of families of faults", |fields| {
        for family in FAMILIES {
            fields.node(family);
        }
    })?;
    read_scenario(reader, context, "suite", &FAMILIES)
}

/// Reads the chaos that the map at the reader's place holds. Members that are not `ours` are left
/// out.
pub(super) fn read_scenario(
    reader: &mut Reader<'_>,
    context: Context<'_>,
    name: &str,
    ours: &[&str],
) -> Option<Arc<Profile>> {
    let node = context.written.nearest(reader.pointer());
    let Tree::Map(members) = &node.value else {
        return None;
    };
    let kept = members
        .iter()
        .filter(|(name, member)| ours.contains(&name.value.as_str()) && member.value != Tree::Null);
    let document: Map<String, Value> = kept
        .map(|(name, member)| (name.value.clone(), member.value.to_json()))
        .collect();
    let text = Value::Object(document).to_string();
    let read = profile::parse_file(reader.file, &text, context.variables).map_err(|errors| {
        for error in errors {
            let position = node.nearest(&error.pointer).position;
            reader.below_pointer(&error.pointer, |reader| {
                reader.error(position, error.message);
            });
        }
    });
    let mut profile = read.ok()?;
    if profile.rules.is_empty() && profile.extends.is_empty() {
        // A clean scenario does nothing on purpose.
        profile.name = Some(name.to_owned());
        return Some(Arc::new(profile));
    }
    // Without its name: a scenario may be called as the profile that it extends.
    for doubt in validate(&profile, context.library, context.tools) {
        let place = node.nearest(&doubt.pointer).position;
        reader.below_pointer(&doubt.pointer, |reader| {
            reader.note(place, doubt.message);
        });
    }
    profile.name = Some(name.to_owned());
    Some(Arc::new(profile))
}
