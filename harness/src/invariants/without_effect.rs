//! Fields that flakestorm allows in invariants of every type, and writes when it saves a suite.
//!
//! They are read, so that mistakes are errors, but have no effect. One warning lists those that differ from
//! flakestorm's defaults.

use std::collections::BTreeMap;

use squall_documents::{DocumentError, Fields};

use super::Invariant;

/// The type of a field, and flakestorm's default if it has one.
#[derive(Clone, Copy)]
enum SavedField {
    Text,
    Texts,
    Milliseconds,
    Share(f64),
    Flag(bool),
}

const OF_FLAKESTORM: [(&str, SavedField); 9] = [
    ("value", SavedField::Text),
    ("values", SavedField::Texts),
    ("max_ms", SavedField::Milliseconds),
    ("pattern", SavedField::Text),
    ("patterns", SavedField::Texts),
    ("expected", SavedField::Text),
    ("threshold", SavedField::Share(0.8)),
    ("dangerous_prompts", SavedField::Flag(true)),
    ("similarity_threshold", SavedField::Share(0.75)),
];

/// Reads fields that the type does not support; `own` are the type's fields. Returns those that differ from the
/// defaults.
pub(super) fn read(fields: &mut Fields<'_, '_>, own: &[&str]) -> Vec<&'static str> {
    let others = OF_FLAKESTORM.iter().filter(|(name, _)| !own.contains(name));
    let differing = others.filter(|(name, field)| differs(fields, name, *field));
    differing.map(|(name, _)| *name).collect()
}

#[expect(clippy::float_cmp, reason = "a default is written as it is")]
fn differs(fields: &mut Fields<'_, '_>, name: &'static str, field: SavedField) -> bool {
    let about = "";
    match field {
        SavedField::Text => fields.text(name, about).is_some(),
        SavedField::Texts => fields.texts(name, about, "a list of texts").is_some(),
        SavedField::Milliseconds => {
            let read = fields.whole(name, about, 0..=u64::MAX, " milliseconds");
            read.is_some()
        }
        SavedField::Share(default) => fields
            .real(name, about, 0.0..=1.0, "")
            .is_some_and(|found| found != default),
        SavedField::Flag(default) => fields
            .flag(name, about)
            .is_some_and(|found| found != default),
    }
}

/// The warning about ignored fields of `invariants`, at the first of them.
pub(crate) fn warning<'i>(
    invariants: impl Iterator<Item = &'i Invariant> + Clone,
) -> Option<DocumentError> {
    let mut places: BTreeMap<_, Vec<&str>> = BTreeMap::new();
    for invariant in invariants.clone() {
        for field in &invariant.without_effect {
            let of = places.entry((*field, invariant.kind)).or_default();
            of.push(&invariant.id);
        }
    }
    let first = invariants
        .filter(|invariant| !invariant.without_effect.is_empty())
        .min_by_key(|invariant| invariant.place.position)?;
    let each = places.iter().map(|((field, kind), ids)| {
        let ids = ids.join(", ");
        format!("`{field}` has no effect on `{kind}` ({ids})")
    });
    let each: Vec<_> = each.collect();
    Some(first.place.error(each.join("; ")))
}

#[cfg(test)]
mod tests {
    use squall_documents::Variables;

    use crate::invariants::testing::errors_of;
    use crate::suite;

    /// The warnings of `validate` for a suite with these invariants, beside and in a contract.
    fn notes(beside: &str, contract: &str) -> Vec<String> {
        let text = format!(
            "agent: {{endpoint: 'http://a.test/'}}\ngolden_prompts: [hello]\ninvariants:\n{beside}\
             contract:\n  name: c\n  chaos_matrix: [{{name: x, tool_faults: [{{tool: '*', mode: error}}]}}]\n  \
             invariants:\n{contract}"
        );
        let suite = suite::parse("s.yaml", &text, Variables::Refused).expect("valid");
        suite.notes.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_flakestorm_saves_beside_every_type_is_taken_without_a_word() {
        let saved = "negate: false, threshold: 0.8, dangerous_prompts: true, similarity_threshold: 0.75, \
                     value: null";
        let told = notes(
            &format!(
                "  - {{type: latency, max_ms: 5, {saved}}}\n  - {{type: max_length, max: 3, {saved}}}\n"
            ),
            &format!("    - {{id: a, type: valid_json, {saved}}}\n"),
        );
        assert_eq!(told, [""; 0]);
    }

    #[test]
    fn what_has_no_effect_is_told_in_one_sentence() {
        let told = notes(
            "  - {type: not_contains, value: x, threshold: 0.9}\n  - {type: completes, value: x}\n  \
             - {type: not_contains, value: y, threshold: 0.7}\n",
            "    - {id: a, type: completes, value: z, dangerous_prompts: false}\n",
        );
        assert_eq!(
            told,
            [
                "s.yaml:4:5: `dangerous_prompts` has no effect on `completes` (a); `threshold` has no effect on \
                 `not_contains` (not_contains, not_contains-2); `value` has no effect on `completes` (completes, a)"
            ]
        );
    }

    #[test]
    fn what_is_no_value_of_such_a_field_is_an_error() {
        for (written, said) in [
            ("threshold: 80", "a number from 0 to 1"),
            ("dangerous_prompts: maybe", "`true` or `false`"),
            ("max_ms: soon", "a whole number"),
            ("max: 5", "`max` belongs to types"),
        ] {
            let told = errors_of(&format!("{{id: a, type: completes, {written}}}")).join("\n");
            assert!(told.contains(said), "{written}: {told}");
        }
    }
}
