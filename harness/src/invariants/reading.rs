//! Reads invariants from suites.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use squall_documents::{At, Fields, Limited, ValueReader, did_you_mean};

use super::{
    Invariant, InvariantKind, InvariantPlace, InvariantSeverity, PromptFilter, When, kinds,
    without_effect,
};
use crate::answer::AgentAnswer;
use crate::pattern::Pattern;
use crate::prompt;

/// Reads the list under `invariants`, at least one; with `ids`, each must have an id.
pub(crate) fn read(fields: &mut Fields<'_, '_>, about: &str, ids: bool) -> Option<Vec<Invariant>> {
    let mut seen = BTreeSet::new();
    let mut ordinals = Ordinals::default();
    let empty = "the list is empty: nothing would be demanded; write `- type: completes`";
    fields.field("invariants", about, |value| {
        value.some("a list of invariants", empty, |value| {
            if let Err(over) = value.reader.limits.take(Limited::Rules, 1) {
                value.error(over.to_string());
                return None;
            }
            let name = if ids {
                "ContractInvariant"
            } else {
                "Invariant"
            };
            let invariant = value.named(name, |value| invariant(value, ids, &mut ordinals))?;
            if !seen.insert(invariant.id.clone()) {
                value.error(format!(
                    "there is already an invariant `{}`; give each a different id",
                    invariant.id
                ));
            }
            Some(invariant)
        })
    })
}

/// Counts invariants without an id, by type.
#[derive(Default)]
struct Ordinals(std::collections::BTreeMap<&'static str, usize>);

impl Ordinals {
    fn id_of(&mut self, kind: &'static str) -> String {
        let count = self.0.entry(kind).or_default();
        *count += 1;
        match *count {
            1 => kind.to_owned(),
            count => format!("{kind}-{count}"),
        }
    }
}

fn invariant(
    value: &mut ValueReader<'_, '_>,
    ids: bool,
    ordinals: &mut Ordinals,
) -> Option<Invariant> {
    let written = value.node().map(|node| value.reader.as_written(node));
    let parameters = match written {
        Some(Value::Object(members)) => {
            member_list(&members, &["id", "type", "severity", "description"])
        }
        _ => String::new(),
    };
    let what = "an invariant, like `{type: contains, value: Paris}`";
    let read = value.fields(what, |fields| one(fields, ids, ordinals))?;
    Some(Invariant { parameters, ..read })
}

fn one(fields: &mut Fields<'_, '_>, ids: bool, ordinals: &mut Ordinals) -> Option<Invariant> {
    let kind = kind(fields);
    let id = fields.name("id", "What reports call it; unique.");
    if ids {
        fields.require("id", "what reports call the invariant");
    }
    let description = fields.text("description", "What it is for.");
    let about = "What a failure counts; default `medium`.";
    let severity = fields.word("severity", about, "severity", InvariantSeverity::NAMES);
    let about = "Under which chaos it is judged; default `always`.";
    let when = fields.word("when", about, "condition", When::NAMES);
    let negate = fields.flag("negate", "Whether the opposite must hold.");
    let about = "Prompts of its own, in the place of the golden prompts.";
    let probes = prompt::read(fields, "probes", about);
    let baseline = baseline(fields);
    let about = "A regular expression: only prompts that it matches are judged.";
    let filter = fields.field("prompt_filter", about, |value| {
        Pattern::read(value, "(?is)")
    });
    for kind in kinds() {
        fields.describe_case("type", kind.name, &[], |fields| {
            (kind.read)(fields);
            without_effect::read(fields, kind.name, &parameters(kind));
        });
    }
    let Some(kind) = kind else {
        // The type is unknown, so its parameters cannot be checked.
        fields.leave_others();
        return None;
    };
    if kind.on_wire && baseline.is_some() {
        let message = "an invariant on the wire is compared with a clean run; write `baseline: auto`, \
                       or leave it out";
        fields.error("baseline", message);
    }
    let tool = fields.glance("tool").map(str::to_owned);
    let check = (kind.read)(fields);
    without_effect::read(fields, kind.name, &parameters(kind));
    Some(Invariant {
        id: id.map_or_else(|| ordinals.id_of(kind.name), |id| id.value),
        kind: kind.name,
        on_wire: kind.on_wire,
        description: description.map(|text| text.value),
        severity: severity.unwrap_or_default(),
        when: when.unwrap_or_default(),
        negate: negate.unwrap_or(false),
        probes: probes.unwrap_or_default(),
        baseline,
        prompt_filter: filter.map(PromptFilter),
        tool,
        place: InvariantPlace {
            position: fields.position,
            pointer: fields.reader.pointer().to_owned(),
        },
        parameters: String::new(),
        check: check?.into(),
    })
}

fn kind(fields: &mut Fields<'_, '_>) -> Option<&'static InvariantKind> {
    let is_meant = |name: &&&At<String>| !did_you_mean(&name.value, ["type"]).is_empty();
    let others = fields.others();
    match others.iter().find(is_meant).filter(|_| !fields.has("type")) {
        Some(name) => {
            let message = format!("unknown field `{}`; did you mean `type`?", name.value);
            fields.reader.error(name.position, message);
        }
        None => fields.require("type", "what is demanded, like `type: contains`"),
    }
    let known: Vec<_> = kinds().map(|kind| (kind.name, kind)).collect();
    fields.word("type", "What is demanded.", "invariant type", &known)
}

fn baseline(fields: &mut Fields<'_, '_>) -> Option<AgentAnswer> {
    let about =
        "What counts as the clean answer: `auto` (default), that of a clean run, or a text.";
    let text = fields.text("baseline", about)?.value;
    (text != "auto").then(|| AgentAnswer::of(text))
}

/// The fields of a type in addition to the common ones.
pub(crate) fn parameters(kind: &InvariantKind) -> Vec<&'static str> {
    Fields::names_read(|fields| {
        (kind.read)(fields);
    })
}

/// `name: value` for each member except `without`.
pub(crate) fn member_list(members: &Map<String, Value>, without: &[&str]) -> String {
    let members = members
        .iter()
        .filter(|(name, _)| !without.contains(&name.as_str()));
    let told = members.map(|(name, value)| match value {
        Value::String(text) => format!("{name}: {text}"),
        other => format!("{name}: {other}"),
    });
    told.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::invariants::testing::errors_of;

    /// These fields narrow all wire invariants, so messages list them once.
    const NARROW: [&str; 5] = ["tool", "to", "from", "host", "hosts"];

    #[test]
    fn a_slip_in_type_is_told_as_one() {
        let errors = errors_of("{id: a, typ: completes}").join("\n");
        assert!(
            errors.contains("unknown field `typ`; did you mean `type`?"),
            "{errors}"
        );
        let errors = errors_of("{id: a, value: x}").join("\n");
        assert!(errors.contains("`type` is missing"), "{errors}");
    }

    #[test]
    fn the_docs_tell_every_type_and_its_parameters() {
        let docs = include_str!("../../../docs/invariants.md");
        let mut missing = Vec::new();
        for kind in kinds() {
            let name = format!("`{}`", kind.name);
            let row = docs.lines().find(|line| {
                line.split('|')
                    .nth(1)
                    .is_some_and(|cell| cell.contains(&name))
            });
            let row = row.unwrap_or_else(|| panic!("docs/invariants.md has no row for {name}"));
            for parameter in parameters(kind) {
                let said = row.contains(&format!("`{parameter}`"));
                if !said && !NARROW.contains(&parameter) {
                    missing.push(format!("{name}: `{parameter}`"));
                }
            }
        }
        assert_eq!(missing, [""; 0]);
    }
}
