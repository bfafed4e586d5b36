//! What an exchange is: its path makes it look like a model call, its body says whether it is one.

use serde_json::{Value, json};
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

const CALL: Ask = Ask::Post(
    "/api/generate",
    r#"{"model":"qwen3","prompt":"hi","stream":false}"#,
);

#[test]
fn what_only_looks_like_a_model_call_is_a_tool_with_and_without_rules() {
    let stage = Stage::new();
    let mut number = 0;
    for (chaos, status) in [
        (json!({}), 200),
        (
            json!({ "tool_faults": [{ "mode": "error", "error_code": 500 }] }),
            500,
        ),
    ] {
        stage.daemon.api.chaos(&chaos);
        for (target, body) in LOOK_ALIKES {
            let seen = see(&stage, Path::Reverse, Ask::Post(target, body));
            assert_eq!(seen.answer.status, status, "{target}");
            number += 1;
            let entry = exchange(&stage, number);
            assert_eq!(
                (&entry["kind"], &entry["dialect"], &entry["llm"]),
                (&json!("tool"), &Value::Null, &Value::Null),
                "{target}: {entry}"
            );
        }
    }
}

#[test]
fn rules_of_one_family_leave_exchanges_of_the_other_alone_unless_a_url_says_otherwise() {
    let stage = Stage::new();
    for (chaos, call, tool) in [
        (
            json!({ "tool_faults": [{ "mode": "error", "error_code": 418 }] }),
            200,
            418,
        ),
        (
            json!({ "tool_faults": [{ "mode": "error", "match_url": "*/api/*" }] }),
            503,
            200,
        ),
        (
            json!({ "llm_faults": [{ "mode": "rate_limit" }] }),
            429,
            200,
        ),
        (
            json!({ "llm_faults": [{ "mode": "rate_limit", "model": "other-*" }] }),
            200,
            200,
        ),
    ] {
        stage.daemon.api.chaos(&chaos);
        let status = |ask| see(&stage, Path::Reverse, ask).answer.status;
        assert_eq!(status(CALL), call, "{chaos}");
        assert_eq!(status(Ask::Get("/tool")), tool, "{chaos}");
    }
    let entry = exchange(&stage, 1);
    let kind = (&entry["kind"], &entry["dialect"]);
    assert_eq!(kind, (&json!("llm"), &json!("ollama")), "{entry}");
}
