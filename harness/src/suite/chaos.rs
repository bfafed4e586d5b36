//! Chaos that stands in a suite: its own `chaos:`, and the scenarios of a contract.
//!
//! The rules are read by `squall-profiles`, from the node as the profile it is, at their places in the file
//! that they stand in; what is wrong with them comes back as JSON pointers, which lead to the places in the
//! suite.

use std::sync::Arc;

use squall_profiles::document::{At, Tree};
use squall_profiles::library::Library;
use squall_profiles::profile::{self, Profile};
use squall_profiles::tools::ToolNames;
use squall_profiles::validate::validate;
use squall_profiles::variables::Variables;

use super::files::Laid;
use super::reader::Reader;

/// What a suite's chaos is read with.
#[derive(Clone, Copy)]
pub(super) struct Context<'c> {
    pub(super) variables: Variables<'c>,
    pub(super) library: &'c Library,
    pub(super) tools: &'c ToolNames,
    /// The suite before its variables were expanded: a profile keeps what stood for them secret.
    pub(super) written: &'c At<Tree>,
    /// The files it was laid together from.
    pub(super) laid: &'c Laid,
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
    let tree = At {
        value: Tree::Map(kept.cloned().collect()),
        position: node.position,
    };
    let (file, tree) = context.laid.in_its_file(tree);
    let limits = reader.limits.clone();
    let read = profile::parse_tree(file, &tree, context.variables, &limits).map_err(|errors| {
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
    let is_known = |name: &str| context.library.get(name).is_some();
    if !profile
        .extends
        .iter()
        .all(|extended| is_known(&extended.name))
    {
        // Whoever carries it out has other profiles.
        profile.name = Some(name.to_owned());
        return Some(Arc::new(profile));
    }
    // Without its name: a scenario may be called as the profile that it extends.
    for doubt in validate(&profile, context.library, context.tools) {
        let own = doubt.file == file;
        let pointer = if own { &*doubt.pointer } else { "/extends" };
        let message = if own {
            doubt.message
        } else {
            format!("of what is extended here, {doubt}")
        };
        let place = node.nearest(pointer).position;
        reader.below_pointer(pointer, |reader| reader.note(place, message));
    }
    profile.name = Some(name.to_owned());
    Some(Arc::new(profile))
}
