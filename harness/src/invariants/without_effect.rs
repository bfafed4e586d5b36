//! Fields that flakestorm allows in invariants of every type, and writes when it saves a suite.
//!
//! They have no effect. A warning reports a value that differs from flakestorm's default.

use serde_json::{Value, json};
use squall_documents::Fields;

const OF_FLAKESTORM: [&str; 9] = [
    "value",
    "values",
    "max_ms",
    "pattern",
    "patterns",
    "expected",
    "threshold",
    "dangerous_prompts",
    "similarity_threshold",
];

/// Flakestorm's default of a field.
fn default(name: &str) -> Value {
    match name {
        "threshold" => json!(0.8),
        "dangerous_prompts" => json!(true),
        "similarity_threshold" => json!(0.75),
        _ => Value::Null,
    }
}

/// Reads those of the fields that are present and not the type's `own`.
pub(super) fn read(fields: &mut Fields<'_, '_>, kind: &str, own: &[&str]) {
    for name in OF_FLAKESTORM {
        let is_there = fields.has(name) || fields.is_null(name);
        if own.contains(&name) || !(is_there || fields.reader.is_describing()) {
            continue;
        }
        let found = fields.any(name, "").map(|node| node.value.to_json());
        if found.is_some_and(|found| found != default(name)) {
            fields.note(name, format!("`{name}` has no effect on `{kind}`"));
        }
    }
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
    fn what_has_no_effect_is_told() {
        let told = notes(
            "  - {type: not_contains, value: x, threshold: 0.9}\n  - {type: completes, value: x}\n  \
             - {type: not_contains, value: y, threshold: 0.7}\n",
            "    - {id: a, type: completes, value: z, dangerous_prompts: false}\n",
        );
        assert_eq!(
            told,
            [
                "s.yaml:4:36: `threshold` has no effect on `not_contains`",
                "s.yaml:5:23: `value` has no effect on `completes`",
                "s.yaml:6:36: `threshold` has no effect on `not_contains`",
                "s.yaml:11:32: `value` has no effect on `completes`",
                "s.yaml:11:42: `dangerous_prompts` has no effect on `completes`",
            ]
        );
    }

    #[test]
    fn a_field_of_another_type_is_an_error_that_lists_the_types_own() {
        let told = errors_of("{id: a, type: contains, value: x, max: 5}").join("\n");
        assert!(told.contains("unknown field `max`"), "{told}");
        assert!(
            told.contains("case_sensitive") && !told.contains("max_ms"),
            "{told}"
        );
    }
}
