//! Lists of calls in one request.

use serde_json::{Value, json};
use squall_tests::Path;

use super::{call, outcome, post, stage, with_rule};

fn batch() -> Value {
    json!([
        call(1, "get_weather"),
        { "jsonrpc": "2.0", "method": "notifications/initialized" },
        call(2, "book"),
        { "jsonrpc": "2.0", "id": 3, "method": "tools/list" },
    ])
}

#[test]
fn the_other_answers_of_a_batch_are_never_lost() {
    let stage = stage();
    let ask = |rule: Value| {
        stage.daemon.api.chaos(&json!({ "tool_faults": [rule] }));
        let answer = post(&stage, Path::Reverse, "/2025/stateless", &batch());
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    };
    stage.daemon.api.end_chaos();
    let clean = post(&stage, Path::Reverse, "/2025/stateless", &batch()).json();
    assert_eq!(clean.as_array().map(Vec::len), Some(3));
    let entry = stage.daemon.api.wait_for_exchanges(1).swap_remove(0);
    assert_eq!(
        (&entry["kind"], &entry["tool"]),
        (&json!("mcp"), &json!("get_weather"))
    );
    assert_eq!(entry["more_tools"], json!(["book"]), "{entry}");
    for tool in ["get_weather", "book"] {
        let found = stage.daemon.api.get(&format!("/v1/exchanges?tool={tool}"));
        assert_eq!(found["items"][0]["id"], entry["id"], "{tool}: {found}");
    }
    // Changed in one answer alone.
    for (rule, id) in [
        (json!({ "mode": "wrong_id", "tool": "book" }), 1),
        (
            json!({ "mode": "truncated", "bytes": 4, "tool": "book" }),
            1,
        ),
    ] {
        let answers = ask(rule.clone());
        for other in [0, 2] {
            assert_eq!(answers[other], clean[other], "{rule}");
        }
        assert_ne!(answers[id], clean[id], "{rule}");
        assert_eq!(outcome(&stage, rule["mode"].as_str().unwrap()), "applied");
    }
    // It is listed under the one that the rule was about.
    let (entry, rule) = with_rule(&stage, "truncated");
    assert_eq!(rule["outcome"], "applied", "{entry}");
    assert_eq!(
        (&entry["tool"], &entry["more_tools"]),
        (&json!("book"), &json!(["get_weather"]))
    );
    // What would leave nothing of the others.
    for rule in [
        json!({ "mode": "html_error", "tool": "book" }),
        json!({ "mode": "error", "tool": "book" }),
        json!({ "mode": "commit_then_fail", "tool": "book" }),
        json!({ "mode": "commit_then_fail", "reset": true, "tool": "book" }),
    ] {
        assert_eq!(ask(rule.clone()), clean, "{rule}");
        let (_, rule) = with_rule(&stage, rule["mode"].as_str().unwrap());
        assert_eq!(rule["outcome"], "bypassed", "{rule}");
        assert!(rule["reason"].to_string().contains("batch"), "{rule}");
    }
}
