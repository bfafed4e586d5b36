//! OpenAI's official Python client asking for responses, unmodified, with the proxy as its
//! `base_url`.

use serde_json::{Value, json};
use squall_tests::upstream::chat::WORDS;
use squall_tests::upstream::responses::FAILING;
use squall_tests::{Path, Stage};

use crate::official::{Case, Client};

const CLIENT: Client = Client::new("openai_responses.py", "/v1");
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
        &["--stream", "--model", FAILING],
    ];
    let paths = [Path::Reverse];
    let unnoticed = CLIENT.notices_nothing(&Stage::new(), "openai-responses", &ways, &paths);
    let entries = unnoticed.entries;
    let finishes = ["done", "done", "tool", "tool", "failed"].map(Value::from);
    let told = entries.iter().map(|entry| &entry["llm"]["finish"]);
    assert!(told.eq(&finishes), "{entries:#?}");
    assert_eq!(entries[3]["llm"]["tool_calls"], json!(["weather", "shell"]));
}

#[test]
fn an_error_is_retried_and_then_raised_as_what_it_is() {
    let case = |arguments, rule, told, attempts| Case {
        arguments,
        rule,
        told,
        attempts,
    };
    check(&[
        case(
            &["--retries", "2", "--stream"],
            json!({ "mode": "rate_limit", "retry_after": 0 }),
            json!({ "error": "RateLimitError", "status": 429, "code": "rate_limit_exceeded", "events": [] }),
            3,
        ),
        case(
            &["--retries", "1"],
            json!({ "mode": "server_error" }),
            json!({ "error": "InternalServerError", "status": 500, "type": "server_error" }),
            2,
        ),
        case(
            &["--retries", "1", "--stream"],
            json!({ "mode": "overloaded" }),
            json!({ "error": "InternalServerError", "status": 503, "type": "server_error" }),
            2,
        ),
    ]);
}

#[test]
fn a_stream_that_breaks_or_fails_is_raised_and_not_retried() {
    let case = |rule, error| Case {
        arguments: &["--retries", "2", "--stream"],
        rule,
        told: json!({ "ok": false, "error": error }),
        attempts: 1,
    };
    check(&[
        case(
            json!({ "mode": "stream_cut", "after_tokens": 2 }),
            "APIConnectionError",
        ),
        case(
            json!({ "mode": "stream_error", "after_tokens": 2 }),
            "APIError",
        ),
    ]);
}

#[test]
fn a_truncated_answer_is_incomplete_wherever_it_is_told() {
    let told = json!({
        "ok": true, "finish": "incomplete", "reason": "max_output_tokens", "usage": 2,
        "text": WORDS[..2].concat(),
    });
    let mut streamed = told.clone();
    streamed["heard"] = streamed["text"].clone();
    streamed["last"] = json!("response.incomplete");
    let cases = [(WHOLE, told), (STREAM, streamed)].map(|(arguments, told)| Case {
        arguments,
        rule: json!({ "mode": "truncated_response", "max_tokens": 2 }),
        told,
        attempts: 1,
    });
    check(&cases);
}

#[test]
fn every_event_of_a_truncated_stream_repeats_what_the_agent_got() {
    let stage = Stage::new();
    let rule = json!({ "mode": "truncated_response", "max_tokens": 2 });
    stage.daemon.api.chaos(&json!({ "llm_faults": [rule] }));
    let told = CLIENT.ask(&stage, Path::Reverse, STREAM);
    let events = told["events"].as_array().unwrap();
    let of = |kind: &str| {
        let mut events = events.iter().filter(|event| event["type"] == kind);
        let event = events.next().unwrap_or_else(|| panic!("no {kind}: {told}"));
        assert!(events.next().is_none(), "two of {kind}: {told}");
        event
    };
    let kept = json!(WORDS[..2].concat());
    assert_eq!(of("response.output_text.done")["text"], kept);
    assert_eq!(of("response.content_part.done")["part"]["text"], kept);
    let item = &of("response.output_item.done")["item"];
    assert_eq!(item["content"][0]["text"], kept);
    let last = &of("response.incomplete")["response"];
    assert_eq!(last["output"][0]["content"][0]["text"], kept);
}

#[test]
fn a_refusal_is_a_part_of_its_own() {
    for arguments in [WHOLE, STREAM] {
        let stage = Stage::new();
        stage
            .daemon
            .api
            .chaos(&json!({ "llm_faults": [{ "mode": "refusal" }] }));
        let refused = CLIENT.ask(&stage, Path::Reverse, arguments);
        assert_eq!(refused["text"], "", "{refused}");
        assert_eq!(refused["finish"], "completed", "{refused}");
        assert_eq!(
            refused["refusals"].as_array().map(Vec::len),
            Some(1),
            "{refused}"
        );
        stage.daemon.api.calm();
        let clean = CLIENT.ask(&stage, Path::Reverse, arguments);
        assert_eq!(clean["refusals"], json!([]), "{clean}");
    }
}

#[test]
fn a_tool_that_is_none_is_called_wherever_the_call_is_told() {
    for arguments in [&["--tools"][..], &["--tools", "--stream"]] {
        let stage = Stage::new();
        let ask = || CLIENT.ask(&stage, Path::Reverse, arguments);
        let clean = ask();
        assert_eq!(clean["calls"][0][0], "weather", "{clean}");
        stage
            .daemon
            .api
            .chaos(&json!({ "llm_faults": [{ "mode": "unknown_tool_call" }] }));
        let told = ask();
        let name = &told["calls"][0][0];
        assert_ne!(name, "weather", "{told}");
        assert_eq!(told["calls"][1], clean["calls"][1], "{told}");
        let events = told["events"].as_array().unwrap();
        let calls = events
            .iter()
            .filter(|event| event["item"]["type"] == "function_call");
        assert!(
            calls.clone().all(|event| event["item"]["name"] == *name),
            "{told}"
        );
    }
}

#[test]
fn a_document_where_a_stream_was_asked_for_is_the_whole_response() {
    let stage = Stage::new();
    let rule = json!({ "llm_faults": [{ "mode": "json_for_stream" }] });
    stage.daemon.api.chaos(&rule);
    let body = r#"{"model":"m","stream":true,"input":"hi"}"#;
    let answer = stage.open(Path::Reverse).post("/v1/responses", body).json();
    let unstreamed = body.replace("\"stream\":true,", "");
    let whole = stage
        .open(Path::Direct)
        .post("/v1/responses", &unstreamed)
        .json();
    assert_eq!(answer, whole);
}
