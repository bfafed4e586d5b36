//! The control API from outside: what it lists, what it refuses, what it streams.

use serde_json::json;
use squall_tests::{Path, Stage};

use crate::matrix::{Ask, see};

#[test]
fn an_exchange_tells_all_that_was_promised() {
    let stage = Stage::new();
    let api = stage.daemon.api;
    api.chaos(&json!({ "network_faults": [
        { "id": "late", "mode": "latency", "delay_ms": 20 },
        { "id": "never", "mode": "reset_peer", "probability": 0 },
    ] }));
    assert_eq!(
        see(
            &stage,
            Path::Forward,
            Ask::Post("/tool?key=secret", "{\"a\":1}")
        )
        .answer
        .status,
        200
    );
    let one = api.wait_for_exchanges(1).pop().unwrap();
    assert_eq!(one["method"], "POST");
    assert_eq!(
        (&one["status"], &one["upstream_status"]),
        (&json!(200), &json!(200)),
        "{one}"
    );
    assert_eq!(
        (&one["outcome"], &one["kind"], &one["seed"]),
        (&json!("ok"), &json!("tool"), &json!(1)),
        "{one}"
    );
    assert!(one["injected_ms"].as_f64().unwrap() >= 20.0, "{one}");
    assert!(
        one["duration_ms"].as_f64().unwrap() >= one["injected_ms"].as_f64().unwrap(),
        "{one}"
    );
    assert_eq!(one["request_bytes"], 7, "{one}");
    let outcome = |id: &str| {
        let rules = one["rules"].as_array().unwrap();
        rules
            .iter()
            .find(|rule| rule["rule"] == id)
            .map(|rule| rule["outcome"].clone())
    };
    assert_eq!(outcome("late"), Some(json!("applied")), "{one}");
    assert_eq!(outcome("never"), Some(json!("not_drawn")), "{one}");
    assert_eq!(
        one["rules"][0]["rule"], "late",
        "applied rules come first: {one}"
    );
    assert!(
        !one.to_string().contains("secret"),
        "a key in the URL was written down: {one}"
    );
    let id = one["id"].as_str().unwrap();
    assert_eq!(api.get(&format!("/v1/exchanges/{id}"))["id"], id);
    assert_eq!(api.call("GET", "/v1/exchanges/nothing", None).status, 404);
}

#[test]
fn faults_are_named_to_the_agent_only_if_the_configuration_says_so() {
    for (annotate, expected) in [(true, Some("error")), (false, None)] {
        let config = json!({ "proxy": { "annotate": annotate } });
        let stage = Stage::with(&config, squall_tests::upstream::standard::serve);
        let clean = see(&stage, Path::Forward, Ask::Get("/json")).answer;
        assert_eq!(clean.header("squall-fault"), None);
        stage
            .daemon
            .api
            .chaos(&json!({ "tool_faults": [{ "tool": "*", "mode": "error" }] }));
        let faulted = see(&stage, Path::Forward, Ask::Get("/json")).answer;
        assert_eq!(
            (faulted.status, faulted.header("squall-fault")),
            (503, expected)
        );
    }
}

#[test]
fn an_answer_that_a_rule_broke_off_is_injected_and_not_the_upstream_s_fault() {
    let stage = Stage::new();
    stage
        .daemon
        .api
        .chaos(&json!({ "network_faults": [{ "mode": "limit_data", "bytes": 3 }] }));
    let mut wire = stage.open(Path::Forward);
    let url = stage.url(Path::Forward, "/json");
    wire.send(format!("GET {url} HTTP/1.1\r\nHost: x\r\n\r\n"));
    wire.rest();
    let seen = stage.daemon.api.wait_for_exchanges(1);
    assert_eq!(seen[0]["outcome"], "injected", "{seen:#?}");
}
