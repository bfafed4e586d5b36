//! Compares the JSON Schemas of suites and replay sessions with their readers.

use jsonschema::Validator;
use serde_json::Value;

use super::cases;
use crate::suite::{replay_schema, suite_schema};

fn validator() -> Validator {
    jsonschema::validator_for(&suite_schema()).expect("a schema")
}

fn json(text: &str) -> Option<Value> {
    Some(
        squall_documents::parse("s.yaml", text)
            .ok()?
            .value
            .to_json(),
    )
}

#[test]
fn every_suite_of_the_corpus_is_valid_by_the_schema() {
    let validator = validator();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/suites");
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let text = std::fs::read_to_string(&path).expect("readable");
        let document = json(&text).expect("YAML");
        let told: Vec<_> = validator
            .iter_errors(&document)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(told.is_empty(), "{}: {told:#?}", path.display());
        seen += 1;
    }
    assert!(seen >= 20);
}

/// Rules that a schema cannot express: formats of texts, duplicates, dependencies.
const BEYOND: usize = 47;

#[test]
fn most_mistakes_are_mistakes_by_the_schema_too() {
    let validator = validator();
    let cases = cases();
    let missed: Vec<_> = cases
        .iter()
        .filter(|case| json(case).is_some_and(|document| validator.is_valid(&document)))
        .collect();
    assert!(
        missed.len() <= BEYOND,
        "{} of {}: {missed:#?}",
        missed.len(),
        cases.len()
    );
}

#[test]
fn a_replay_session_is_held_to_its_own_schema() {
    let validator = jsonschema::validator_for(&replay_schema()).expect("a schema");
    for (text, valid) in [
        (
            "id: a\ninput: hello\ntool_responses: [{tool: t, response: {a: 1}, status: 0}]",
            true,
        ),
        ("id: a", true),
        ("input: hello", false),
        ("id: ' '\ninput: hello", false),
        ("id: a\ninput: ''", false),
        ("id: a\ntool_responses: [{tool: t, response: [1, 2]}]", true),
        ("id: a\ninput: x\non_miss: ignore", false),
        ("id: a\ninput: x\ninputs: y", false),
    ] {
        let document = json(text).expect("YAML");
        assert_eq!(validator.is_valid(&document), valid, "{text}");
    }
}
