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
        (json!({ "mode": "commit_then_fail", "tool": "book" }), 1),
    ] {
        let answers = ask(rule.clone());
        for other in [0, 2] {
            assert_eq!(answers[other], clean[other], "{rule}");
        }
        assert_ne!(answers[id], clean[id], "{rule}");
        assert_eq!(outcome(&stage, rule["mode"].as_str().unwrap()), "applied");
    }
    let answers = ask(json!({ "mode": "commit_then_fail", "tool": "book" }));
    assert_eq!(
        (&answers[1]["id"], &answers[1]["result"]["isError"]),
        (&json!(2), &json!(true))
    );
    // In the server's place for one of them alone: it never hears of that one.
    let answers = ask(json!({ "mode": "error", "message": "no", "tool": "book" }));
    assert_eq!((&answers[0], &answers[1]), (&clean[0], &clean[2]));
    let failed = json!({ "content": [{ "type": "text", "text": "no" }], "isError": true });
    assert_eq!(
        (&answers[2]["id"], &answers[2]["result"]),
        (&json!(2), &failed)
    );
    let heard = stage.plain.requests().pop().unwrap().body;
    let heard: Value = serde_json::from_slice(&heard).unwrap();
    assert_eq!(heard, json!([batch()[0], batch()[1], batch()[3]]));
    // It is listed under the one that the rule was about.
    let (entry, rule) = with_rule(&stage, "error");
    assert_eq!(rule["outcome"], "applied", "{entry}");
    assert_eq!(
        (&entry["tool"], &entry["more_tools"]),
        (&json!("book"), &json!(["get_weather"]))
    );
    // What would leave nothing of the others.
    assert_eq!(ask(json!({ "mode": "html_error", "tool": "book" })), clean);
    let (_, rule) = with_rule(&stage, "html_error");
    assert_eq!(rule["outcome"], "bypassed", "{rule}");
    assert!(rule["reason"].to_string().contains("batch"), "{rule}");
}
