//! Invariants as they are written in suites.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use squall_profiles::document::{At, Tree};
use squall_profiles::error;
use squall_profiles::limits::Limited;

use super::{
    BaselineFrom, Invariant, InvariantPlace, Kind, LooksAt, PromptFilter, Severity, When, kinds,
    type_names, without_effect,
};
use crate::suite::reader::{Fields, Reader};
use crate::suite::{read_prompts, told_members};

pub(crate) const SEVERITIES: [(&str, Severity); 4] = [
    ("critical", Severity::Critical),
    ("high", Severity::High),
    ("medium", Severity::Medium),
    ("low", Severity::Low),
];

/// Reads the list under `invariants`, at least one; with `ids` each has to have one.
pub(crate) fn read(fields: &mut Fields<'_, '_, '_>, ids: bool) -> Option<Vec<Invariant>> {
    let mut seen = BTreeSet::new();
    let mut ordinals = Ordinals::default();
    let list = fields.each("invariants", "a list of invariants", |reader, node| {
        reader.take(Limited::Rules, node)?;
        let invariant = invariant(reader, node, ids, &mut ordinals)?;
        if !seen.insert(invariant.id.clone()) {
            let message = format!(
                "an invariant `{}` stands here already; cells are told apart by its id",
                invariant.id
            );
            reader.error(node.position, message);
        }
        Some(invariant)
    })?;
    let is_empty = fields
        .node("invariants")
        .is_some_and(|node| match &node.value {
            Tree::List(items) => items.is_empty(),
            _ => false,
        });
    if is_empty {
        let message = "the list is empty: nothing would be demanded; write `- type: completes`";
        fields.error("invariants", message);
        return None;
    }
    Some(list.value)
}

/// How many of each type there were without an id.
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
    reader: &mut Reader<'_>,
    node: &At<Tree>,
    ids: bool,
    ordinals: &mut Ordinals,
) -> Option<Invariant> {
    let place = InvariantPlace {
        file: reader.file.to_owned(),
        position: node.position,
        pointer: reader.pointer().to_owned(),
    };
    let parameters = match reader.as_written(node) {
        Value::Object(members) => {
            told_members(&members, &["id", "type", "severity", "description"])
        }
        _ => String::new(),
    };
    let what = "an invariant, like `{type: contains, value: Paris}`";
    let read = reader.fields(node, what, |fields| one(fields, place, ids, ordinals))??;
    Some(Invariant { parameters, ..read })
}

fn one(
    fields: &mut Fields<'_, '_, '_>,
    place: InvariantPlace,
    ids: bool,
    ordinals: &mut Ordinals,
) -> Option<Invariant> {
    let kind = kind(fields);
    let id = fields.name("id");
    if ids && !fields.has("id") {
        fields.missing("id", "what reports call the invariant");
    }
    let description = fields.text("description").map(|text| text.value);
    let severity = fields.word("severity", "severity", &SEVERITIES);
    let when = fields.word(
        "when",
        "condition",
        &When::ALL.map(|when| (when.as_str(), when)),
    );
    let negate = fields.flag("negate").unwrap_or(false);
    let probes = fields
        .node("probes")
        .and_then(|_| read_prompts(fields, "probes"));
    let baseline = baseline(fields);
    let filter = fields.read("prompt_filter", |reader, node| {
        reader.pattern(node, "(?is)")
    });
    let Some(kind) = kind else {
        // Whose parameters the others are, nobody knows.
        fields.leave_others();
        return None;
    };
    if kind.looks_at == LooksAt::Wire && matches!(baseline, BaselineFrom::Text(_)) {
        let message = "an invariant on the wire is compared with a clean run; write `baseline: auto`, \
                       or leave it out";
        fields.error("baseline", message);
    }
    let tool = fields.glance("tool").map(str::to_owned);
    let check = (kind.read)(fields);
    let without_effect = without_effect::read(fields, kind);
    refuse_foreign(fields, kind);
    Some(Invariant {
        id: id.map_or_else(|| ordinals.id_of(kind.name), |id| id.value),
        kind: kind.name,
        description,
        severity: severity.unwrap_or_default(),
        when: when.unwrap_or_default(),
        negate,
        probes: probes.unwrap_or_default(),
        baseline,
        prompt_filter: filter.map(PromptFilter),
        tool,
        place,
        parameters: String::new(),
        without_effect,
        check: check?.into(),
    })
}

fn kind(fields: &mut Fields<'_, '_, '_>) -> Option<&'static Kind> {
    if !fields.has("type") {
        let is_meant = |name: &&At<String>| !error::did_you_mean(&name.value, ["type"]).is_empty();
        match fields.others().into_iter().find(is_meant) {
            Some(name) => {
                let message = format!("unknown field `{}`; did you mean `type`?", name.value);
                fields.reader.error(name.position, message);
            }
            None => fields.missing("type", "what is demanded, like `type: contains`"),
        }
    }
    let name = fields.text("type")?;
    let kind = kinds().find(|kind| kind.name == name.value);
    if kind.is_none() {
        let rest = error::allowed(&name.value, type_names());
        let found = fields.reader.shown(name.position);
        fields.error("type", format!("unknown invariant type `{found}`{rest}"));
    }
    kind
}

fn baseline(fields: &mut Fields<'_, '_, '_>) -> BaselineFrom {
    match fields.text("baseline") {
        Some(text) if text.value != "auto" => BaselineFrom::Text(text.value),
        _ => BaselineFrom::Auto,
    }
}

/// A field that another type takes says whose it is.
fn refuse_foreign(fields: &mut Fields<'_, '_, '_>, kind: &Kind) {
    let mut foreign = false;
    for name in fields.others() {
        let owners: Vec<_> = kinds()
            .filter(|kind| parameters(kind).contains(&name.value.as_str()))
            .map(|kind| kind.name)
            .collect();
        if owners.is_empty() {
            continue;
        }
        foreign = true;
        let own = parameters(kind);
        let takes = if own.is_empty() {
            "takes none of its own".to_owned()
        } else {
            format!("takes {}", error::words(own))
        };
        let (plural, listed) = match owners.len() {
            1 => ("", error::words(owners)),
            2..=5 => ("s", error::words(owners)),
            more => (
                "s",
                format!(
                    "{} and {} more",
                    error::words(owners.into_iter().take(4)),
                    more - 4
                ),
            ),
        };
        let message = format!(
            "`{}` belongs to type{plural} {listed}; `{}` {takes}",
            name.value, kind.name
        );
        let position = name.position;
        fields
            .reader
            .below(&name.value, |reader| reader.error(position, message));
    }
    if foreign {
        fields.leave_others();
    }
}

/// The fields that a type takes beside those that all do: those it asks for.
pub(crate) fn parameters(kind: &Kind) -> Vec<&'static str> {
    let mut reader = Reader::new("", "", BTreeMap::new());
    let nothing = At {
        value: Tree::Map(Vec::new()),
        position: error::Position::default(),
    };
    let asked = reader.fields(&nothing, "", |fields| {
        (kind.read)(fields);
        fields.known().to_vec()
    });
    asked.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::invariants::testing::errors_of;

    /// What narrows every invariant on the wire is said once.
    const NARROW: [&str; 3] = ["tool", "host", "hosts"];

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
