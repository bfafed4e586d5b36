use http::StatusCode;
use serde_json::json;
use squall_profiles::facts::Kind;

use crate::bench::Api;

#[tokio::test]
async fn an_exchange_is_shown_with_every_field() {
    let api = Api::new();
    let note = api.note(Some("cell-1"), "https://api.example/v1?key=secret");
    let id = note.id.to_string();
    api.record([note]);
    let shown = api.get(&format!("/v1/exchanges/{id}")).await.json();
    let mut expected = json!({
        "id": id, "scope": "cell-1", "kind": "tool", "dialect": null, "tool": null,
        "method": "GET", "url": "https://api.example/v1?key=REDACTED", "status": 200,
        "upstream_status": null, "outcome": "ok", "error": null, "duration_ms": 5.0,
        "injected_ms": 0.0, "overhead_us": 0, "request_bytes": 0, "response_bytes": 0,
        "fingerprint": null, "attempt": null, "seed": 42, "rules": [], "rules_more": 0,
        "activation": null, "run": null, "canaries": [], "llm": null, "nearest_misses": [],
    });
    expected["started_at"] = shown["started_at"].clone();
    assert_eq!(shown, expected);
    let listed = api.get("/v1/exchanges").await.json();
    expected
        .as_object_mut()
        .expect("an object")
        .remove("nearest_misses");
    assert_eq!(listed, json!({ "items": [expected], "next_cursor": null }));
}

#[tokio::test]
async fn exchanges_that_are_not_there_are_not_found() {
    let api = Api::new();
    let never = api.note(None, "http://h/").id.to_string();
    for id in [never.as_str(), "x", "0000"] {
        api.get(&format!("/v1/exchanges/{id}"))
            .await
            .problem(404, "not-found");
    }
}

#[tokio::test]
async fn exchanges_are_filtered() {
    let api = Api::new();
    let mut failed = api.note(Some("blue"), "https://api.example:8443/v1");
    failed.status = Some(StatusCode::SERVICE_UNAVAILABLE);
    failed.kind = Kind::Llm;
    failed.tool = Some("search".into());
    let mut hung = api.note(None, "http://tool.example/x");
    hung.status = None;
    let (failed_id, hung_id) = (failed.id.to_string(), hung.id.to_string());
    api.record([failed, hung]);
    for (query, expected) in [
        ("scope=blue", &[&*failed_id][..]),
        ("scope=default", &[&hung_id]),
        ("kind=llm", &[&failed_id]),
        ("host=API.example", &[&failed_id]),
        ("host=tool.example&kind=tool", &[&hung_id]),
        ("tool=search", &[&failed_id]),
        ("status=503", &[&failed_id]),
        ("status=5xx", &[&failed_id]),
        ("status=none", &[&hung_id]),
        ("fault=*", &[]),
        ("since=2001-01-01T00:00:00Z", &[&hung_id, &failed_id]),
        ("since=2999-01-01T00:00:00%2B01:00", &[]),
    ] {
        let page = api.get(&format!("/v1/exchanges?{query}")).await;
        assert_eq!(page.items("id"), expected, "{query}");
    }
}

#[tokio::test]
async fn a_rule_that_nearly_matched_is_named_as_long_as_it_is_in_force() {
    let api = Api::new();
    let rules = json!({ "tool_faults": [
        { "id": "posts", "match_url": "http://h/*", "methods": ["POST"], "mode": "error" },
        { "id": "far", "match_url": "http://other/*", "methods": ["PUT"], "mode": "error" },
    ] });
    api.put("/v1/chaos", json!({ "chaos": rules })).await;
    let note = api.note(None, "http://h/x");
    let path = format!("/v1/exchanges/{}", note.id);
    api.record([note]);
    let misses = api.get(&path).await.json()["nearest_misses"].clone();
    assert_eq!(misses.as_array().map(Vec::len), Some(1), "{misses}");
    assert_eq!(
        (&misses[0]["rule"], &misses[0]["mode"]),
        (&json!("posts"), &json!("error"))
    );
    assert!(
        misses[0]["why"]
            .as_str()
            .is_some_and(|why| why.contains("GET")),
        "{misses}"
    );
    api.delete("/v1/chaos").await;
    assert_eq!(api.get(&path).await.json()["nearest_misses"], json!(null));
}
