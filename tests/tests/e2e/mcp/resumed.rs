//! Replies that the agent fetches by resuming the stream that began with its call: no fault acts there.

use serde_json::{Value, json};
use squall_tests::upstream::mcp::answers;
use squall_tests::{Path, Stage};

use super::{BOTH, JSON, call, stage, with_rule};

const RESUMED: &str = "/2025/resumed";

/// A session's id.
fn begin(stage: &Stage) -> String {
    let mut wire = stage.open(Path::Forward);
    let params = json!({ "protocolVersion": "2025-11-25" });
    let asked = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
    wire.request("POST", RESUMED, &[JSON, BOTH], asked.to_string().as_bytes());
    let answer = wire.response();
    answer.header("mcp-session-id").unwrap().to_owned()
}

/// POSTs a call; the id of the event that its stream ends behind.
fn ask(stage: &Stage, session: &str, asked: &Value) -> String {
    let mut wire = stage.open(Path::Forward);
    let headers = [JSON, BOTH, ("mcp-session-id", session)];
    wire.request("POST", RESUMED, &headers, asked.to_string().as_bytes());
    let answer = wire.response();
    assert_eq!(answer.status, 200, "{answer:?}");
    let text = answer.text();
    let id = text
        .strip_prefix("id: ")
        .and_then(|rest| rest.strip_suffix("\nretry: 1\ndata: \n\n"));
    id.unwrap_or_else(|| panic!("{text}")).to_owned()
}

/// GETs what comes behind an event: the server's reply, byte for byte.
fn resumes_to_the_server_s_reply(stage: &Stage, session: &str, asked: &Value) {
    let last = ask(stage, session, asked);
    let mut wire = stage.open(Path::Forward);
    let headers = [
        ("accept", "text/event-stream"),
        ("mcp-session-id", session),
        ("last-event-id", &last),
    ];
    wire.request("GET", RESUMED, &headers, b"");
    let reply = answers(asked, false).unwrap();
    let expected = format!("id: {last}-again\nevent: message\ndata: {reply}\n\n");
    assert_eq!(wire.response().text(), expected);
}

#[test]
fn a_fault_on_a_reply_that_is_fetched_is_bypassed_and_the_message_passes_unchanged() {
    let stage = stage();
    let session = begin(&stage);
    for (id, mode, more) in [
        (1, "wrong_id", json!({})),
        (2, "stale", json!({})),
        (3, "list_drift", json!({ "match_url": "*/2025/*" })),
        (4, "truncated", json!({ "bytes": 9 })),
    ] {
        let mut rule = more.clone();
        rule["mode"] = json!(mode);
        stage.daemon.api.chaos(&json!({ "tool_faults": [rule] }));
        let asked = call(id, "get_weather");
        resumes_to_the_server_s_reply(&stage, &session, &asked);
        let (entry, rule) = with_rule(&stage, mode);
        assert_eq!(rule["outcome"], "bypassed", "{entry}");
    }
    let (entry, rule) = with_rule(&stage, "truncated");
    let reason = "the response holds no reply to the call, and faults are not supported on another \
                  stream";
    assert_eq!(rule["reason"], reason, "{entry}");
}
