//! What an exchange is: its path makes it look like a model call, its body says whether it is one.

use serde_json::{Value, json};
use squall_tests::upstream::standard;
use squall_tests::{Path, Stage};

use crate::matrix::{Ask, exchange, see};

/// Paths of model calls, each with a body that is none.
const LOOK_ALIKES: [(&str, &str); 5] = [
    ("/api/generate", r#"{"report":"q3"}"#),
    ("/api/chat", r#"{"message":"hi"}"#),
    ("/v1/responses", r#"{"survey":1}"#),
    ("/v1/messages", r#"{"to":"bob"}"#),
    ("/v1/chat/completions", r#"{"foo":1}"#),
];

fn stage() -> Stage {
    Stage::with(&json!({}), standard::serve)
}

fn is_a_tool(entry: &Value, why: &str) {
    assert_eq!(
        (&entry["kind"], &entry["dialect"], &entry["llm"]),
        (&json!("tool"), &Value::Null, &Value::Null),
        "{why}: {entry}"
    );
}

#[test]
fn what_only_looks_like_a_model_call_is_journalled_as_a_tool_though_nobody_reads_it_ahead() {
    let stage = stage();
    for (number, (target, body)) in (1..).zip(LOOK_ALIKES) {
        see(&stage, Path::Reverse, Ask::Post(target, body));
        is_a_tool(&exchange(&stage, number), target);
    }
}

#[test]
fn a_rule_for_tools_hits_what_only_looks_like_a_model_call() {
    let stage = stage();
    let chaos = json!({ "tool_faults": [{ "mode": "error", "error_code": 500 }] });
    stage.daemon.api.chaos(&chaos);
    for (number, (target, body)) in (1..).zip(LOOK_ALIKES) {
        let seen = see(&stage, Path::Reverse, Ask::Post(target, body));
        assert_eq!(seen.answer.status, 500, "{target}");
        is_a_tool(&exchange(&stage, number), target);
    }
}

#[test]
fn a_rule_for_tools_leaves_a_model_call_alone() {
    let stage = stage();
    let chaos = json!({ "tool_faults": [{ "mode": "error", "error_code": 500 }] });
    stage.daemon.api.chaos(&chaos);
    let call = r#"{"model":"qwen3","prompt":"hi","stream":false}"#;
    let seen = see(&stage, Path::Reverse, Ask::Post("/api/generate", call));
    assert_ne!(seen.answer.status, 500);
    let entry = exchange(&stage, 1);
    assert_eq!(
        (&entry["kind"], &entry["dialect"]),
        (&json!("llm"), &json!("ollama")),
        "{entry}"
    );
}
