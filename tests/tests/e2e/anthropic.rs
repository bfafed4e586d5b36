//! Anthropic's official Python client, unmodified, with the proxy as its `base_url`.

use serde_json::{Value, json};
use squall_tests::upstream::chat::WORDS;
use squall_tests::upstream::messages::OVERLOADED;
use squall_tests::{Path, Stage};

use crate::official::{Case, Client};

const CLIENT: Client = Client::new("anthropic_messages.py", "");
const STREAM: &[&str] = &["--stream"];
const WHOLE: &[&str] = &[];

fn check(cases: &[Case]) {
    CLIENT.tells(&Stage::new(), Path::Reverse, cases);
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
    let unnoticed = CLIENT.notices_nothing(&Stage::new(), "anthropic", &ways, &[Path::Reverse]);
    let entries = unnoticed.entries;
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
fn an_error_is_retried_and_then_raised_as_what_it_is() {
    let limited = json!({
        "error": "RateLimitError", "status": 429, "type": "rate_limit_error", "events": [],
    });
    let case = |arguments, rule, told, attempts| Case {
        arguments,
        rule,
        told,
        attempts,
    };
    check(&[
        case(
            &["--retries", "2"],
            json!({ "mode": "rate_limit", "retry_after": 0 }),
            limited.clone(),
            3,
        ),
        case(
            &["--retries", "2", "--stream"],
            json!({ "mode": "rate_limit", "retry_after": 0 }),
            limited,
            3,
        ),
        case(
            &["--retries", "1", "--stream"],
            json!({ "mode": "server_error" }),
            json!({ "error": "InternalServerError", "status": 500, "type": "api_error", "events": [] }),
            2,
        ),
        case(
            &["--retries", "1"],
            json!({ "mode": "overloaded" }),
            json!({ "error": "OverloadedError", "status": 529, "type": "overloaded_error", "events": [] }),
            2,
        ),
    ]);
}

#[test]
fn a_client_that_waits_gets_through_an_overload_that_ends() {
    let stage = Stage::new();
    let once = json!({ "mode": "overloaded", "limit": 1 });
    for (rules, retries) in [(json!([once]), "1"), (json!([]), "0")] {
        stage.daemon.api.chaos(&json!({ "llm_faults": rules }));
        let told = CLIENT.ask(&stage, Path::Reverse, &["--retries", "2"]);
        assert_eq!(told["text"], WORDS.concat(), "{told}");
        let requests = stage.plain.requests();
        let last = requests.last().expect("one came through");
        assert_eq!(last.header("x-stainless-retry-count"), Some(retries));
    }
}

#[test]
fn a_stream_that_breaks_or_fails_is_raised_and_not_retried() {
    let case = |rule, told| Case {
        arguments: &["--retries", "2", "--stream"],
        rule,
        told,
        attempts: 1,
    };
    check(&[
        case(
            json!({ "mode": "stream_cut", "after_tokens": 2 }),
            json!({ "ok": false, "error": "RemoteProtocolError" }),
        ),
        case(
            json!({ "mode": "stream_error", "after_tokens": 2 }),
            json!({ "ok": false, "error": "APIStatusError", "status": 200, "type": "overloaded_error" }),
        ),
    ]);
}

#[test]
fn another_answer_is_a_whole_one_that_says_why_it_ended() {
    let answers = [
        (
            json!({ "mode": "truncated_response", "max_tokens": 2 }),
            json!({ "ok": true, "finish": "max_tokens", "usage": 2, "text": WORDS[..2].concat() }),
        ),
        // A refusal is text and a reason to stop.
        (
            json!({ "mode": "refusal" }),
            json!({ "ok": true, "finish": "refusal" }),
        ),
        (
            json!({ "mode": "empty" }),
            json!({ "ok": true, "finish": "end_turn", "text": "", "blocks": 0 }),
        ),
    ];
    let cases = [WHOLE, STREAM].map(|arguments| {
        answers.clone().map(|(rule, told)| Case {
            arguments,
            rule,
            told,
            attempts: 1,
        })
    });
    check(cases.as_flattened());
}

#[test]
fn a_truncated_answer_keeps_what_is_signed_or_leaves_it_out() {
    check(&[Case {
        rule: json!({ "mode": "truncated_response", "max_tokens": 8 }),
        arguments: &["--tools", "--stream"],
        told: json!({
            "ok": true,
            "finish": "max_tokens",
            "thinking": [["I should look outside.", "EqkBCkYIBxgCKkDq8Zw1fVbT=="]],
        }),
        attempts: 1,
    }]);
}

#[test]
fn a_tool_that_is_none_is_called_by_a_call_that_is_one() {
    for arguments in [&["--tools"][..], &["--tools", "--stream"]] {
        let stage = Stage::new();
        let called = || CLIENT.ask(&stage, Path::Reverse, arguments)["calls"].clone();
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
