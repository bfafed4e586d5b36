//! Changes fields of JSON at every occurrence: a drifting field changes in every record.

use std::borrow::Cow;
use std::collections::BTreeSet;

use squall_dialects::json::{Document, Edits, JsonKind, Value, quote};

use crate::changes::{DriftKind, SchemaDrift};

/// A JSON text with one field changed, or why no field can change.
pub fn drifted(drift: &SchemaDrift, json: &[u8]) -> Result<Vec<u8>, String> {
    let document = Document::parse(json).map_err(|why| format!("the body is {why}"))?;
    let mut edits = Edits::new(&document);
    drift_below(drift, &mut edits, document.root())?;
    Ok(edits.apply())
}

/// Changes one field at every occurrence below `root`, or returns why no field can change.
pub(crate) fn drift_below(
    drift: &SchemaDrift,
    edits: &mut Edits<'_>,
    root: Value<'_>,
) -> Result<(), String> {
    let members = members(root);
    let name = match &drift.field {
        Some(name) => Cow::Borrowed(name.as_str()),
        None => chosen(&members, drift.choice).ok_or("the JSON has no fields")?,
    };
    let mut occurs = false;
    let mut changed = false;
    for member in members
        .iter()
        .filter(|member| member.key().as_ref() == Some(&name))
    {
        occurs = true;
        changed |= change(edits, *member, drift.kind, &name);
    }
    match (changed, occurs) {
        (true, _) => Ok(()),
        (false, true) => Err(format!("the field `{name}` is null already")),
        (false, false) => Err(format!("the JSON has no field `{name}`")),
    }
}

fn change(edits: &mut Edits<'_>, member: Value<'_>, kind: DriftKind, name: &str) -> bool {
    match kind {
        DriftKind::Rename => edits.rename(member.id(), &format!("{name}_v2")),
        DriftKind::Drop => edits.remove(member.id()),
        DriftKind::Null if member.is_null() => return false,
        DriftKind::Null => edits.replace(member.id(), "null"),
        DriftKind::Retype => edits.replace(member.id(), retyped(member)),
    }
    true
}

/// The value as another type: its text as a string; a string as the only item of a list.
fn retyped(value: Value<'_>) -> String {
    match value.kind() {
        JsonKind::String => format!("[{}]", value.raw()),
        JsonKind::Number
        | JsonKind::True
        | JsonKind::False
        | JsonKind::Null
        | JsonKind::Object
        | JsonKind::Array => quote(value.raw()),
    }
}

/// Every member below a value.
fn members(root: Value<'_>) -> Vec<Value<'_>> {
    root.descendants()
        .filter(|value| value.is_member())
        .collect()
}

/// Draws one of the distinct names, with equal probability.
fn chosen<'d>(members: &[Value<'d>], choice: u64) -> Option<Cow<'d, str>> {
    let mut seen = BTreeSet::new();
    let mut names: Vec<_> = members.iter().filter_map(|member| member.key()).collect();
    names.retain(|name| seen.insert(name.clone()));
    let count = u64::try_from(names.len()).ok().filter(|count| *count > 0)?;
    names.into_iter().nth(usize::try_from(choice % count).ok()?)
}

/// The field of a drift in a document with these parts: the named one, or a drawn one in the first
/// part with fields.
pub(crate) fn field_of<'d>(
    drift: &SchemaDrift,
    parts: impl IntoIterator<Item = Value<'d>>,
) -> Option<String> {
    if let Some(field) = &drift.field {
        return Some(field.clone());
    }
    let mut parts = parts.into_iter();
    parts.find_map(|part| Some(chosen(&members(part), drift.choice)?.into_owned()))
}
