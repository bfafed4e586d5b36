use std::collections::BTreeSet;

use jsonschema::Validator;
use squall_profiles::document;
use squall_profiles::variables::Variables;

use super::*;
use crate::suite::parse;
use crate::suite::tests::cases;

fn validator() -> Validator {
    jsonschema::validator_for(&suite_schema()).expect("a schema")
}

fn json(text: &str) -> Option<Value> {
    Some(document::read("s.yaml", text).ok()?.value.to_json())
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

/// What only the reader can say: what a text must look like, what is there twice, what needs what.
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

/// The names that the reader allows where `place` has a field that nobody knows.
fn read_in(place: &str) -> BTreeSet<String> {
    let text = format!("{place}\n").replace("HERE", "zzzzzzzz: 1");
    let errors = parse("s.yaml", &text, Variables::Refused).expect_err("unknown field");
    let told = errors
        .iter()
        .find(|error| error.message.starts_with("unknown field `zzzzzzzz`"));
    let told = told.unwrap_or_else(|| panic!("{text}: {errors:#?}"));
    let (_, allowed) = told.message.split_once("allowed are ").expect("a list");
    let names = allowed.split(", ");
    names
        .map(|name| name.trim_matches('`').to_owned())
        .collect()
}

#[test]
fn every_field_that_is_read_is_in_the_schema_and_no_other() {
    let schema = suite_schema();
    let block = |pointer: &str| -> BTreeSet<String> {
        let properties = schema.pointer(&format!("{pointer}/properties"));
        let properties = properties.and_then(Value::as_object);
        let properties = properties.unwrap_or_else(|| panic!("{pointer}"));
        properties.keys().cloned().collect()
    };
    let first = |name: &str| format!("/properties/{name}/anyOf/0");
    for (place, pointer) in [
        ("HERE", String::new()),
        ("agent: {HERE}", "/$defs/agent".to_owned()),
        (
            "agent: {start: {HERE}}",
            "/$defs/agent/properties/start/anyOf/0".to_owned(),
        ),
        ("model: {HERE}", "/$defs/model".to_owned()),
        ("mutations: {HERE}", first("mutations")),
        ("chaos: {HERE}", first("chaos")),
        ("contract: {HERE}", "/$defs/contract".to_owned()),
        ("chaos_matrix: [{HERE}]", "/$defs/scenario".to_owned()),
        ("replays: {HERE}", first("replays")),
        (
            "replays: {sources: [{HERE}]}",
            format!("{}/properties/sources/anyOf/0/items", first("replays")),
        ),
        ("scoring: {HERE}", first("scoring")),
        ("output: {HERE}", first("output")),
        ("advanced: {HERE}", first("advanced")),
        ("certificate: {HERE}", first("certificate")),
        ("embeddings: {HERE}", first("embeddings")),
    ] {
        assert_eq!(block(&pointer), read_in(place), "{place}");
    }
    let sessions = read_in("replays: {sessions: [{HERE}]}");
    assert_eq!(block("/$defs/replay_session"), sessions);
}
