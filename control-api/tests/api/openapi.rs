use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use squall_control_api::TrustConfig;

use crate::bench::Api;

async fn described(api: &Api) -> Value {
    let answer = api.get("/openapi.json").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.header("content-type"), "application/json");
    answer.json()
}

/// Method, path and what is said of it.
fn operations(document: &Value) -> Vec<(String, String, Value)> {
    let paths = document["paths"].as_object().expect("paths");
    let of_path = |(path, methods): (&String, &Value)| {
        let methods = methods.as_object().cloned().unwrap_or_default();
        let path = path.clone();
        methods
            .into_iter()
            .map(move |(method, operation)| (method.to_uppercase(), path.clone(), operation))
    };
    paths.iter().flat_map(of_path).collect()
}

fn parameters(operation: &Value, place: &str) -> BTreeSet<String> {
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    parameters
        .filter(|parameter| parameter["in"] == place)
        .filter_map(|parameter| Some(parameter["name"].as_str()?.to_owned()))
        .collect()
}

fn references<'a>(value: &'a Value, found: &mut BTreeSet<&'a str>) {
    match value {
        Value::Object(members) => {
            found.extend(members.get("$ref").and_then(Value::as_str));
            members.values().for_each(|value| references(value, found));
        }
        Value::Array(values) => values.iter().for_each(|value| references(value, found)),
        _ => {}
    }
}

#[tokio::test]
async fn every_part_that_is_pointed_at_is_there_and_every_part_is_pointed_at() {
    let document = described(&Api::new()).await;
    assert_eq!(document["openapi"], "3.1.0");
    let mut found = BTreeSet::new();
    references(&document, &mut found);
    for reference in &found {
        let pointer = reference.strip_prefix('#').expect("within the document");
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
    for (name, _) in document["components"]["schemas"]
        .as_object()
        .expect("parts")
    {
        let reference = format!("#/components/schemas/{name}");
        assert!(found.contains(reference.as_str()), "{name} is of no use");
    }
}

#[tokio::test]
async fn ids_are_unique_and_tags_are_listed() {
    let document = described(&Api::new()).await;
    let operations = operations(&document);
    let ids: BTreeSet<_> = operations
        .iter()
        .map(|(.., one)| one["operationId"].as_str())
        .collect();
    assert_eq!(ids.len(), operations.len());
    assert!(!ids.contains(&None));
    let tags = document["tags"].as_array().expect("tags");
    for (method, path, operation) in &operations {
        let tag = json!({ "name": operation["tags"][0] });
        assert!(tags.contains(&tag), "{method} {path}");
    }
}

/// An unknown parameter is refused with a list of those there are.
#[tokio::test]
async fn the_parameters_that_are_described_are_those_that_are_read() {
    let api = Api::new();
    let document = described(&api).await;
    for (method, path, operation) in operations(&document) {
        let named = path.replace(['{', '}'], "");
        let answer = api.ask(&method, &format!("{named}?zzz=1"), &[], "{}").await;
        let described = parameters(&operation, "query");
        if operation["x-squall-role"] == "none" {
            assert!(described.is_empty(), "{method} {path} reads no query");
            continue;
        }
        let problem = answer.problem(400, "malformed");
        let detail = problem["detail"].as_str().expect("a detail");
        let read = detail
            .split_once("; there are ")
            .map_or("", |(_, read)| read);
        let read: BTreeSet<_> = read.split(", ").filter(|name| !name.is_empty()).collect();
        let described: BTreeSet<_> = described.iter().map(String::as_str).collect();
        assert_eq!(described, read, "{method} {path}");
    }
}

/// A made-up member is refused as such; none of those that are described is.
#[tokio::test]
async fn the_members_that_are_described_are_those_that_are_read() {
    let api = Api::new();
    let document = described(&api).await;
    let mut compared = 0;
    for (method, path, operation) in operations(&document) {
        let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
        let Some(reference) = schema["$ref"].as_str() else {
            continue;
        };
        let schema = document.pointer(&reference[1..]).expect("a schema");
        let members = schema["properties"].as_object().expect("members");
        let mut sent: Map<_, _> = members
            .keys()
            .map(|name| (name.clone(), json!([[]])))
            .collect();
        sent.insert("zzz".to_owned(), json!(1));
        let named = path.replace(['{', '}'], "");
        let json = [("content-type", "application/json")];
        let answer = api
            .ask(&method, &named, &json, Value::from(sent).to_string())
            .await;
        let problem = answer.problem(422, "invalid");
        let errors = problem["errors"].as_array().expect("errors");
        let unknown = errors.iter().filter(|error| {
            let detail = error["detail"].as_str().unwrap_or_default();
            detail.contains("unknown field `zzz`")
        });
        let unknown: Vec<_> = unknown.map(|error| &error["pointer"]).collect();
        assert_eq!(unknown, ["/zzz"], "{method} {path}: {problem}");
        compared += 1;
    }
    assert!(compared >= 4, "{compared}");
}

#[tokio::test]
#[rustfmt::skip]
async fn every_suite_that_is_taken_is_one_by_its_schema() {
    let api = Api::new();
    api.state.trust.configure(TrustConfig {
        commands: true,
        ..TrustConfig::default()
    });
    let document = described(&api).await;
    let mut schema = document["components"]["schemas"]["Suite"].clone();
    schema["components"] = document["components"].clone();
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    let invariants = json!([{ "type": "completes" }]);
    let endpoint = |url: &str| json!({ "endpoint": url });
    for (agent, prompts, expected) in [
        (endpoint("http://127.0.0.1:58000/ask?a=B"), json!(["hello"]), 201),
        (endpoint("http://[::1]:9/"), json!([["hello", "and now?"]]), 201),
        (endpoint("http://a.test/"), json!([{ "turns": ["hello"] }]), 201),
        (json!({ "type": "command", "command": ["python", "agent.py"] }), json!([7]), 201),
        (json!("http://a.test/"), json!(["hello"]), 422),
        (endpoint("http://a.test/"), json!([]), 422),
    ] {
        let suite = json!({ "agent": agent, "golden_prompts": prompts, "invariants": invariants });
        let path = format!("/v1/suites/s{}", suite.to_string().len());
        let answer = api.put(&path, suite.clone()).await;
        assert_eq!(answer.status, expected, "{suite}: {answer:?}");
        assert_eq!(validator.is_valid(&suite), expected == 201, "{suite}");
    }
}
