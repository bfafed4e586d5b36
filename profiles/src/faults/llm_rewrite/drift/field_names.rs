//! Fields of JSON under other names.

use std::collections::HashSet;

use squall_dialects::json::{Document, Edits, Value};

use super::object;
use crate::changes::Severity;

/// Names that agents' parsers look for, and what they become.
const KNOWN_NAMES: [(&str, &str); 5] = [
    ("action", "tool_name"),
    ("tool_name", "action"),
    ("name", "name_v2"),
    ("type", "type_v2"),
    ("output", "output_v2"),
];

/// Renames fields: one, those of the outermost object, or all at any depth.
pub(super) fn field_names(text: &str, severity: Severity, choice: u64) -> Result<String, String> {
    let place = object(text).ok_or("the answer's text holds no JSON object")?;
    let json = &text[place.clone()];
    let document = Document::parse(json.as_bytes()).map_err(|error| error.to_string())?;
    let outermost: Vec<Value<'_>> = document.root().members().collect();
    let chosen: Vec<Value<'_>> = match severity {
        Severity::Subtle => known_or_any(&outermost, choice).into_iter().collect(),
        Severity::Moderate => outermost,
        Severity::Significant => members(document.root()),
    };
    if chosen.is_empty() {
        return Err("the answer's JSON object has no fields".to_owned());
    }
    let all = members(document.root());
    let taken: HashSet<_> = all.iter().filter_map(|member| member.key()).collect();
    let mut edits = Edits::new(&document);
    for member in chosen {
        let name = member.key().unwrap_or_default();
        let known = KNOWN_NAMES.iter().find(|(known, _)| *known == name);
        let known = known.map(|(_, other)| (*other).to_owned());
        let next = (2..).map(|version| format!("{name}_v{version}"));
        // A name that is there already would hide that field, or stand for it.
        let other = known
            .into_iter()
            .chain(next)
            .find(|it| !taken.contains(&**it));
        edits.rename(member.id(), &other.unwrap_or_default());
    }
    let edited = String::from_utf8_lossy(&edits.apply()).into_owned();
    Ok([&text[..place.start], &edited, &text[place.end..]].concat())
}

/// A field that parsers look for, or else any, by the draw.
fn known_or_any<'d>(members: &[Value<'d>], choice: u64) -> Option<Value<'d>> {
    let known = members.iter().find(|member| {
        let name = member.key();
        KNOWN_NAMES
            .iter()
            .any(|(known, _)| name.as_deref() == Some(known))
    });
    let count = u64::try_from(members.len()).ok()?.max(1);
    let any = || members.get(usize::try_from(choice % count).ok()?);
    known.or_else(any).copied()
}

/// Every member of a value at any depth, in the order of the text.
fn members(value: Value<'_>) -> Vec<Value<'_>> {
    let all = value.descendants();
    all.filter(|value| value.is_member()).collect()
}
