//! `json_schema`: the answer is a JSON document that matches a schema.

mod cost;

use jsonschema::{PatternOptions, Validator};
use squall_documents::Tree;

use self::cost::Cost;
use super::valid_json::document;
use super::words::quoted;
use super::{Check, InvariantKind, Subject, Verdict};

/// Most bytes that a pattern of a schema may cache between searches.
const CACHE: usize = 128 << 10;

/// `schema`: a JSON Schema of its declared draft, by default 2020-12. References are JSON pointers into it and must
/// not be recursive.
pub(super) const JSON_SCHEMA: InvariantKind = InvariantKind::answer("json_schema", |fields| {
    let about = "A JSON Schema, or the name of a file with one.";
    let validator = fields.field("schema", about, |value| {
        let node = value.any()?;
        let reader = &mut *value.reader;
        let schema = match &node.value {
            Tree::Scalar { text, .. } => match serde_json::from_str(text.as_str()) {
                Ok(schema) => schema,
                Err(error) => {
                    reader.error(node.position, format!("this is no JSON Schema: {error}"));
                    return None;
                }
            },
            tree => tree.to_json(),
        };
        let cost = cost::of(&schema, &reader.limits)
            .map_err(|why| {
                let message = format!("this JSON Schema is not supported: {why}");
                reader.error(node.position, message);
            })
            .ok()?;
        let validator = jsonschema::options()
            .with_pattern_options(PatternOptions::regex().dfa_size_limit(CACHE))
            .build(&schema)
            .map_err(|error| {
                let place = node.nearest(error.instance_path().as_str()).position;
                reader.error(place, format!("this is no JSON Schema: {error}"));
            })
            .ok()?;
        Some((validator, cost))
    });
    fields.require("schema", "a JSON Schema");
    let (validator, cost) = validator?;
    Some(Check::new(move |subject| fits(subject, &validator, cost)))
});

/// Most violations in a reason.
const MOST_VIOLATIONS: usize = 3;

fn fits(subject: &Subject<'_>, validator: &Validator, cost: Cost) -> Verdict {
    let document = match document(&subject.answer.text) {
        Ok(document) => document,
        Err(verdict) => return verdict,
    };
    if !cost.allows(&document, subject.answer.text.len()) {
        return Verdict::error("the answer is too long for the schema's parts and patterns");
    }
    if validator.is_valid(&document) {
        return Verdict::holds("the schema allows the answer");
    }
    if !cost.allows_violations(&document) {
        return Verdict::fails(
            "the schema does not allow the answer; both are too long to list the violations",
        );
    }
    let mut errors = validator.iter_errors(&document);
    let first = errors.by_ref().take(MOST_VIOLATIONS);
    let first = first.map(|error| match error.instance_path().as_str() {
        "" => quoted(&error.to_string()),
        path => format!("at {path} {}", quoted(&error.to_string())),
    });
    let first: Vec<_> = first.collect();
    let more = match errors.count() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let first = first.join("; ");
    Verdict::fails(format!(
        "the schema does not allow the answer: {first}{more}"
    ))
}

#[cfg(test)]
mod tests {
    use crate::invariants::testing::{Outcome::*, errors_of, judged, reason};

    const WRITTEN: &str = "{type: json_schema, schema: {type: object, required: [city], \
                           properties: {city: {type: string}, days: {type: integer, minimum: 1}}}}";

    #[test]
    fn a_schema_allows_or_not() {
        for (answer, expected) in [
            (r#"{"city": "Paris", "days": 3}"#, Holds),
            (r#"{"city": "Paris", "more": null}"#, Holds),
            (r#"{"days": 3}"#, Fails),
            (r#"{"city": "Paris", "days": 0}"#, Fails),
            (r#"{"city": "Paris", "days": "three"}"#, Fails),
            ("Paris", Fails),
            ("", Fails),
        ] {
            assert_eq!(judged(WRITTEN, answer), expected, "{answer}");
        }
        let text = r#"{type: json_schema, schema: '{"type": "array"}'}"#;
        assert_eq!(judged(text, "[1]"), Holds);
        assert_eq!(judged(text, "{}"), Fails);
    }

    #[test]
    fn violations_are_listed_only_where_they_are_few() {
        let alternatives = |count: usize| {
            let each = (0..count).map(|number| format!("{{const: v{number}}}"));
            let each = each.collect::<Vec<_>>().join(", ");
            format!("{{type: json_schema, schema: {{items: {{anyOf: [{each}]}}}}}}")
        };
        let answer = format!("[{}]", vec!["1"; 2_000].join(", "));
        let why = reason(&alternatives(2), "", &answer);
        assert!(why.contains("at /0") && why.contains("1997 more"), "{why}");
        let why = reason(&alternatives(500), "", &answer);
        assert!(why.ends_with("too long to list the violations"), "{why}");
    }

    #[test]
    fn a_schema_that_refers_to_itself_is_rejected() {
        for schema in [
            "{allOf: [{$ref: '#'}, {$ref: '#'}]}",
            "{properties: {inner: {$ref: '#'}}}",
            "{$ref: '#/$defs/a', $defs: {a: {anyOf: [{$ref: '#/$defs/b'}]}, b: {not: {$ref: '#/$defs/a'}}}}",
        ] {
            let errors = errors_of(&format!("{{type: json_schema, schema: {schema}}}"));
            assert!(
                errors[0].contains("refers to what it stands in"),
                "{errors:?}"
            );
        }
    }

    #[test]
    fn what_is_no_schema_is_said_with_its_place() {
        let errors = errors_of("{type: json_schema, schema: {type: objekt}}");
        assert!(errors[0].starts_with("suite.yaml:4:"), "{errors:?}");
        assert!(errors[0].contains("no JSON Schema"), "{errors:?}");
        let errors = errors_of("{type: json_schema, schema: {$ref: 'http://x.test/s.json'}}");
        assert!(errors[0].contains("refers to nothing in it"), "{errors:?}");
        let errors = errors_of("{type: json_schema, schema: {a: {$id: 'http://x.test/s.json'}}}");
        assert!(errors[0].contains("is not supported"), "{errors:?}");
        let errors = errors_of("{type: json_schema, schema: {pattern: '(?=.*b)a+c'}}");
        assert!(errors[0].contains("look-around, including"), "{errors:?}");
    }
}
