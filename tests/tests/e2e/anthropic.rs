//! Anthropic's official Python client, unmodified, with the proxy as its `base_url`.

use serde_json::{Value, json};
use squall_tests::upstream::chat::WORDS;
use squall_tests::upstream::messages::OVERLOADED;
use squall_tests::{Path, Stage};

use crate::official::{Case, official, sees_no_difference};

const SCRIPT: &str = "anthropic_messages.py";
const BASE: &str = "";
const STREAM: &[&str] = &["--stream"];
const WHOLE: &[&str] = &[];

fn ask(stage: &Stage, path: Path, arguments: &[&str]) -> Value {
    stage.way(path, BASE).ask(SCRIPT, arguments)
}

fn check(case: &Case) {
    official(&Stage::new(), SCRIPT, BASE, std::slice::from_ref(case));
}

#[test]
fn the_client_hands_out_the_same_events_with_and_without_the_proxy() {
    let ways: [&[&str]; 5] = [
        WHOLE,
        STREAM,
        &["--tools"],
        &["--tools", "--stream"],
        &["--stream", "--model", OVERLOADED],
    ];
    let entries = sees_no_difference(SCRIPT, BASE, "anthropic", &ways);
    let finishes = ["done", "done", "tool", "tool"].map(Value::from);
    let told = entries.iter().map(|entry| &entry["llm"]["finish"]);
    assert!(
        told.eq(finishes.iter().chain([&Value::Null])),
        "{entries:#?}"
    );
    assert_eq!(entries[3]["llm"]["tool_calls"], json!(["weather"]));
}

#[test]
fn counting_tokens_is_no_model_call() {
    let stage = Stage::new();
    let body = r#"{"model":"m","max_tokens":1,"messages":[]}"#;
    let rule = json!({ "llm_faults": [{ "mode": "server_error" }] });
    stage.daemon.api.chaos(&rule);
    let post = |target| stage.open(Path::Reverse).post(target, body).status;
    assert_eq!(post("/v1/messages/count_tokens"), 200);
    assert_eq!(post("/v1/messages"), 500);
}

#[test]
fn a_rate_limit_is_retried_and_then_raised_as_one() {
    for arguments in [WHOLE, STREAM] {
        check(&Case {
            rule: json!({ "mode": "rate_limit", "retry_after": 0 }),
            arguments: if arguments.is_empty() {
                &["--retries", "2"]
            } else {
                &["--retries", "2", "--stream"]
            },
            told: json!({ "error": "RateLimitError", "status": 429, "type": "rate_limit_error", "events": [] }),
            attempts: 3,
        });
    }
}

#[test]
fn a_server_error_is_retried_and_then_raised_as_one() {
    check(&Case {
        rule: json!({ "mode": "server_error" }),
        arguments: &["--retries", "1", "--stream"],
        told: json!({ "error": "InternalServerError", "status": 500, "type": "api_error", "events": [] }),
        attempts: 2,
    });
}

#[test]
fn an_overload_is_retried_and_then_raised_as_one() {
    check(&Case {
        rule: json!({ "mode": "overloaded" }),
        arguments: &["--retries", "1"],
        told: json!({ "error": "OverloadedError", "status": 529, "type": "overloaded_error", "events": [] }),
        attempts: 2,
    });
}

#[test]
fn a_client_that_waits_gets_through_an_overload_that_ends() {
    let stage = Stage::new();
    let once = json!({ "mode": "overloaded", "limit": 1 });
    for (rules, retries) in [(json!([once]), "1"), (json!([]), "0")] {
        stage.daemon.api.chaos(&json!({ "llm_faults": rules }));
        let told = ask(&stage, Path::Reverse, &["--retries", "2"]);
        assert_eq!(told["text"], WORDS.concat(), "{told}");
        let requests = stage.plain.requests();
        let last = requests.last().expect("one came through");
        assert_eq!(last.header("x-stainless-retry-count"), Some(retries));
    }
}

#[test]
fn a_cut_stream_is_raised_and_not_retried() {
    check(&Case {
        rule: json!({ "mode": "stream_cut", "after_tokens": 2 }),
        arguments: &["--retries", "2", "--stream"],
        told: json!({ "ok": false, "error": "RemoteProtocolError" }),
        attempts: 1,
    });
}

#[test]
fn a_truncated_answer_is_a_whole_one_that_says_why_it_ended() {
    for arguments in [WHOLE, STREAM] {
        check(&Case {
            rule: json!({ "mode": "truncated_response", "max_tokens": 2 }),
            arguments,
            told: json!({ "ok": true, "finish": "max_tokens", "usage": 2, "text": WORDS[..2].concat() }),
            attempts: 1,
        });
    }
}

#[test]
fn a_truncated_answer_keeps_what_is_signed_or_leaves_it_out() {
    check(&Case {
        rule: json!({ "mode": "truncated_response", "max_tokens": 8 }),
        arguments: &["--tools", "--stream"],
        told: json!({
            "ok": true,
            "finish": "max_tokens",
            "thinking": [["I should look outside.", "EqkBCkYIBxgCKkDq8Zw1fVbT=="]],
        }),
        attempts: 1,
    });
}

#[test]
fn an_error_in_a_stream_is_raised_as_one_of_status_200_and_not_retried() {
    check(&Case {
        rule: json!({ "mode": "stream_error", "after_tokens": 2 }),
        arguments: &["--retries", "2", "--stream"],
        told: json!({ "ok": false, "error": "APIStatusError", "status": 200, "type": "overloaded_error" }),
        attempts: 1,
    });
}

#[test]
fn a_refusal_is_text_and_a_reason_to_stop() {
    for arguments in [WHOLE, STREAM] {
        check(&Case {
            rule: json!({ "mode": "refusal" }),
            arguments,
            told: json!({ "ok": true, "finish": "refusal" }),
            attempts: 1,
        });
    }
}

#[test]
fn an_empty_answer_has_no_content() {
    for arguments in [WHOLE, STREAM] {
        check(&Case {
            rule: json!({ "mode": "empty" }),
            arguments,
            told: json!({ "ok": true, "finish": "end_turn", "text": "", "blocks": 0 }),
            attempts: 1,
        });
    }
}

#[test]
fn a_tool_that_is_none_is_called_by_a_call_that_is_one() {
    for arguments in [&["--tools"][..], &["--tools", "--stream"]] {
        let stage = Stage::new();
        let called = || ask(&stage, Path::Reverse, arguments)["calls"].clone();
        assert_eq!(called(), json!([["weather", { "city": "Kiel" }]]));
        stage
            .daemon
            .api
            .chaos(&json!({ "llm_faults": [{ "mode": "unknown_tool_call" }] }));
        let calls = called();
        assert_ne!(calls[0][0], "weather", "{calls}");
        assert_eq!(calls[0][1], json!({ "city": "Kiel" }), "{calls}");
    }
}

#[test]
fn a_document_where_a_stream_was_asked_for_is_the_whole_message() {
    let stage = Stage::new();
    let body = r#"{"model":"m","max_tokens":9,"stream":true,"tools":[],"messages":[]}"#;
    let rule = json!({ "llm_faults": [{ "mode": "json_for_stream" }] });
    stage.daemon.api.chaos(&rule);
    let answer = stage.open(Path::Reverse).post("/v1/messages", body).json();
    let unstreamed = body.replace("\"stream\":true,", "");
    let whole = stage
        .open(Path::Direct)
        .post("/v1/messages", &unstreamed)
        .json();
    assert_eq!(answer, whole);
}
