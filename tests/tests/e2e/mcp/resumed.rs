//! Replies that the agent fetches by resuming the stream that began with its call: no fault acts there.

use serde_json::{Value, json};
use squall_tests::upstream::mcp::answers;
use squall_tests::{Path, Stage};

use super::{BOTH, CLIENT, JSON, call, stage, with_rule};

const RESUMED: &str = "/2025/resumed";

/// A session's id.
fn begin(stage: &Stage, path: Path) -> String {
    let mut wire = stage.open(path);
    let params = json!({ "protocolVersion": "2025-11-25" });
    let asked = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
    wire.request("POST", RESUMED, &[JSON, BOTH], asked.to_string().as_bytes());
    let answer = wire.response();
    answer.header("mcp-session-id").unwrap().to_owned()
}

/// POSTs a call; the id of the event that its stream ends behind.
fn ask(stage: &Stage, path: Path, session: &str, asked: &Value) -> String {
    let mut wire = stage.open(path);
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
fn resumes_to_the_server_s_reply(stage: &Stage, path: Path, session: &str, asked: &Value) {
    let last = ask(stage, path, session, asked);
    let mut wire = stage.open(path);
    let headers = [
        ("accept", "text/event-stream"),
        ("mcp-session-id", session),
        ("last-event-id", &last),
    ];
    wire.request("GET", RESUMED, &headers, b"");
    let reply = answers(asked, false).unwrap();
    let expected = format!("id: {last}-again\nevent: message\ndata: {reply}\n\n");
    assert_eq!(wire.response().text(), expected, "{path:?}");
}

#[test]
fn a_fault_on_a_reply_that_is_fetched_is_bypassed_and_the_message_passes_unchanged() {
    let stage = stage();
    for path in Path::THROUGH {
        stage.daemon.api.calm();
        let session = begin(&stage, path);
        for (id, mode, more) in [
            (1, "wrong_id", json!({})),
            (2, "truncated", json!({ "bytes": 9 })),
            (3, "schema_drift", json!({ "status": "2xx" })),
            (4, "list_drift", json!({ "match_url": "*/2025/*" })),
        ] {
            let mut rule = more.clone();
            rule["mode"] = json!(mode);
            stage.daemon.api.chaos(&json!({ "tool_faults": [rule] }));
            let asked = call(id, "get_weather");
            resumes_to_the_server_s_reply(&stage, path, &session, &asked);
            let (entry, rule) = with_rule(&stage, mode);
            assert_eq!(rule["outcome"], "bypassed", "{path:?}: {entry}");
        }
    }
    let (entry, rule) = with_rule(&stage, "truncated");
    let reason = "the response holds no reply to the call, and faults are not supported on another \
                  stream";
    assert_eq!(rule["reason"], reason, "{entry}");
}

#[test]
fn a_fault_on_the_event_stream_of_a_session_is_bypassed() {
    let stage = stage();
    let session = begin(&stage, Path::Forward);
    let rule = json!({ "mode": "truncated", "bytes": 9, "methods": ["GET"], "match_url": "*" });
    stage.daemon.api.chaos(&json!({ "tool_faults": [rule] }));
    let asked = call(1, "get_weather");
    resumes_to_the_server_s_reply(&stage, Path::Forward, &session, &asked);
    let (entry, rule) = with_rule(&stage, "truncated");
    assert_eq!(rule["outcome"], "bypassed", "{entry}");
    assert_eq!(
        rule["reason"],
        "the reply arrives on the session's event stream, where faults are not supported",
    );
}

#[test]
fn a_response_without_the_reply_is_no_earlier_answer() {
    let stage = stage();
    let rule = json!({ "mode": "stale", "tool": "get_weather" });
    stage.daemon.api.chaos(&json!({ "tool_faults": [rule] }));
    let session = begin(&stage, Path::Forward);
    for id in 1..=2 {
        let asked = call(id, "get_weather");
        resumes_to_the_server_s_reply(&stage, Path::Forward, &session, &asked);
        let (entry, rule) = with_rule(&stage, "stale");
        assert_eq!(rule["outcome"], "bypassed", "{entry}");
    }
}

#[test]
fn the_official_client_resumes_to_the_server_s_reply() {
    let stage = stage();
    let way = stage.way(Path::Forward, RESUMED);
    let clean = way.ask(CLIENT, &["--era", "legacy"]);
    assert_eq!(clean["first"]["ok"], true, "{clean}");
    let rule = json!({ "mode": "truncated", "bytes": 9, "tool": "get_weather" });
    stage.daemon.api.chaos(&json!({ "tool_faults": [rule] }));
    assert_eq!(way.ask(CLIENT, &["--era", "legacy"]), clean);
}
