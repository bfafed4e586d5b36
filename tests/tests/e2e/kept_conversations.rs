//! Results of tools whose calls stand in conversations that the provider keeps: a request names nothing
//! but the call's id, and what that call was stood in an answer before.

use serde_json::{Value, json};
use squall_tests::{Path, Stage};

use crate::matrix::exchange;

const DOWN: &str = "The forecast is down.";

/// Puts a rule about one tool inside the agent in force.
fn fails(stage: &Stage, tool: &str) {
    stage.daemon.api.chaos(&json!({ "tool_faults": [
        { "id": "inside", "tool": tool, "mode": "error", "body": DOWN, "at": "model_input" },
    ] }));
}

/// Asks a model that calls `weather` as `call_1` and `shell` as `call_2`.
fn asks(stage: &Stage, stream: bool) {
    let body = json!({ "model": "m", "input": "Shall I go?", "stream": stream, "tools": [] });
    let answer = stage
        .open(Path::Reverse)
        .post("/v1/responses", &body.to_string());
    assert_eq!(answer.status, 200, "{answer:?}");
}

/// Brings the result of a call; what the upstream got of it.
fn brings(stage: &Stage, kept: &str, call: &str) -> String {
    let body = json!({ "model": "m", kept: "the_conversation", "input": [
        { "type": "function_call_output", "call_id": call, "output": "sunny" },
    ] });
    let answer = stage
        .open(Path::Reverse)
        .post("/v1/responses", &body.to_string());
    assert_eq!(answer.status, 200, "{answer:?}");
    let requests = stage.plain.requests();
    let sent = &requests.last().expect("it was forwarded").body;
    let sent: Value = serde_json::from_slice(sent).expect("JSON");
    sent["input"][0]["output"]
        .as_str()
        .expect("text")
        .to_owned()
}

/// What became of the only rule in the exchange with this number.
fn outcome(stage: &Stage, number: usize) -> Value {
    let mut entry = exchange(stage, number);
    assert_eq!(entry["rules"].as_array().map(Vec::len), Some(1), "{entry}");
    entry["rules"][0].take()
}

#[test]
fn a_tool_is_found_by_the_call_that_an_earlier_answer_held() {
    let stage = Stage::new();
    fails(&stage, "weather");
    let mut number = 0;
    for (stream, kept) in [(false, "previous_response_id"), (true, "conversation")] {
        asks(&stage, stream);
        assert_eq!(brings(&stage, kept, "call_1"), DOWN, "{kept}");
        assert_eq!(brings(&stage, kept, "call_2"), "sunny", "{kept}");
        let rule = outcome(&stage, number + 2);
        assert_eq!(rule["outcome"], "applied", "{rule}");
        assert_eq!(rule["told_of"], json!(["weather"]));
        let of_another = exchange(&stage, number + 3);
        assert_eq!(of_another["rules"], json!([]), "{of_another}");
        number += 3;
        // What was called under other chaos is forgotten.
        fails(&stage, "weather");
    }
    let found = stage.daemon.api.get("/v1/exchanges?tool=weather&kind=llm");
    assert_eq!(found["items"].as_array().map(Vec::len), Some(4), "{found}");
}

#[test]
fn a_call_that_nobody_saw_is_told_as_what_it_is() {
    let stage = Stage::new();
    asks(&stage, false);
    fails(&stage, "weather");
    assert_eq!(brings(&stage, "previous_response_id", "call_1"), "sunny");
    let rule = outcome(&stage, 2);
    assert_eq!(rule["outcome"], "bypassed");
    let why = rule["reason"].as_str().expect("a reason");
    assert!(
        why.contains("neither in it nor in an earlier answer"),
        "{why}"
    );
    fails(&stage, "*");
    assert_eq!(brings(&stage, "previous_response_id", "call_1"), DOWN);
}
