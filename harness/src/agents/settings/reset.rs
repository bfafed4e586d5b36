//! Reads how an agent is reset.

use super::{Reset, absolute, command, named_attribute, without_effect};
use squall_documents::Fields;

pub(super) fn read(fields: &mut Fields<'_, '_>) -> Option<Reset> {
    let endpoint = fields.words("reset_endpoint", "POST to this URL resets it.");
    let about = "This Python function resets it: `module:attribute`.";
    let function = fields.words("reset_function", about);
    let program = command(fields, "reset_command", "This program resets it.");
    let mut written: Vec<_> = RESETS.into_iter().filter(|way| fields.has(way)).collect();
    if written == ["reset_endpoint", "reset_function"] {
        // Flakestorm allows both fields.
        without_effect(fields, "reset_function", "when `reset_endpoint` is set");
        written.truncate(1);
    }
    if let [first, second, ..] = written[..] {
        fields.error(second, format!("`{first}` is set too; keep one of them"));
        return None;
    }
    if let Some(endpoint) = endpoint {
        return absolute(fields, "reset_endpoint", &endpoint).map(Reset::Endpoint);
    }
    if let Some(function) = function {
        let name = "reset_function";
        return named_attribute(fields, name, &function.value).map(Reset::Function);
    }
    program.map(Reset::Command)
}

/// `reset: {isolated: true}`, which is independent of the kind of reset.
pub(super) fn isolated(fields: &mut Fields<'_, '_>) -> bool {
    let about = "What a reset concerns.";
    let isolated = fields.block("reset", about, "a map with `isolated`", |fields| {
        let about = "Whether it concerns only the invocation whose scope it names; default false.";
        fields.flag("isolated", about)
    });
    let is_reset = |way| fields.has(way);
    if isolated.is_some() && !RESETS.into_iter().any(is_reset) {
        without_effect(
            fields,
            "reset",
            "without `reset_endpoint` or `reset_command`",
        );
    }
    isolated.unwrap_or_default()
}

const RESETS: [&str; 3] = ["reset_endpoint", "reset_function", "reset_command"];
