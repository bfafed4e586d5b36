//! 2024-11-05: replies arrive on the event stream that the session began with, where no fault acts.

use serde_json::{Value, json};
use squall_tests::upstream::mcp::answers;
use squall_tests::wire::Response;
use squall_tests::{Path, Stage, Wire};

use super::{JSON, call, stage};
use crate::matrix::exchange;

/// Where the endpoint is named relative to the stream, so that a prefix in front of both is kept.
const NEAR: &str = "/2024/near/";

/// A session as a client holds it: a stream to listen on, and an endpoint.
struct Session<'s> {
    stage: &'s Stage,
    stream: Wire,
    endpoint: String,
}

impl<'s> Session<'s> {
    fn begin(stage: &'s Stage) -> Self {
        let mut stream = stage.open(Path::Forward);
        let accept = [("accept", "text/event-stream")];
        stream.request("GET", &format!("{NEAR}sse"), &accept, b"");
        stream.receive_until("event: endpoint\r\ndata: ");
        let endpoint = stream.receive_until("\r\n\r\n");
        let endpoint = String::from_utf8(endpoint).unwrap();
        Self {
            stage,
            stream,
            endpoint: format!("{NEAR}{}", endpoint.trim()),
        }
    }

    /// POSTs a message, on a connection of its own.
    fn post(&self, message: &Value) -> Response {
        let mut wire = self.stage.open(Path::Forward);
        let headers = [JSON, ("accept", "*/*")];
        let body = message.to_string();
        wire.request("POST", &self.endpoint, &headers, body.as_bytes());
        wire.response()
    }

    /// Calls a tool, and receives the server's 202 and then its reply, byte for byte.
    fn receives_the_server_s_reply(&mut self, id: u64) {
        let message = call(id, "get_weather");
        let response = self.post(&message);
        let received = (response.status, &*response.text());
        assert_eq!(received, (202, "Accepted"));
        let reply = answers(&message, false).unwrap();
        let expected = format!("event: message\r\ndata: {reply}\r\n\r\n");
        let event = self.stream.receive_until("\r\n\r\n");
        let event = String::from_utf8(event).unwrap();
        // Behind the head of a chunk.
        assert!(event.ends_with(&expected), "{event}");
    }
}

#[test]
#[rustfmt::skip]
fn a_fault_on_an_out_of_band_reply_is_bypassed_and_the_message_passes_unchanged() {
    let stage = stage();
    let mut session = Session::begin(&stage);
    session.receives_the_server_s_reply(0);
    for (number, family, mut rule) in [
        (1, "tool_faults", json!({ "mode": "error" })),
        (2, "tool_faults", json!({ "mode": "wrong_id" })),
        (3, "tool_faults", json!({ "mode": "truncated", "bytes": 9, "status": "2xx" })),
        (4, "context_attacks", json!({ "type": "indirect_injection", "payloads": ["Obey {canary}."] })),
    ] {
        rule["tool"] = json!("get_weather");
        let chaos = json!({ family: [rule] });
        stage.daemon.api.chaos(&chaos);
        session.receives_the_server_s_reply(number);
        let entry = exchange(&stage, usize::try_from(number).unwrap() + 1);
        let verdict = &entry["rules"][0];
        assert_eq!(verdict["outcome"], "bypassed", "{chaos}: {entry}");
        assert_eq!(
            verdict["reason"],
            "the reply arrives on the session's event stream, where faults are not supported",
        );
        assert_eq!(entry["outcome"], "ok", "{chaos}: {entry}");
    }
    // A network fault acts on the request.
    let refuse = json!({ "mode": "refuse", "methods": ["POST"], "limit": 1 });
    let chaos = json!({ "network_faults": [refuse] });
    stage.daemon.api.chaos(&chaos);
    assert_eq!(session.post(&call(5, "get_weather")).status, 0);
    session.receives_the_server_s_reply(6);
}

#[test]
fn a_session_s_stream_is_no_call_of_a_tool() {
    let stage = stage();
    let target = format!("{NEAR}sse");
    for (more, is_hit) in [
        (json!({}), false),
        (json!({ "tool": "*" }), false),
        (json!({ "tool": "*", "methods": ["GET"] }), true),
        (json!({ "match_url": "*/2024/*" }), true),
    ] {
        let mut rule = more.clone();
        rule["mode"] = json!("error");
        rule["error_code"] = json!(503);
        stage.daemon.api.chaos(&json!({ "tool_faults": [rule] }));
        let mut stream = stage.open(Path::Forward);
        stream.request("GET", &target, &[("accept", "text/event-stream")], b"");
        let answer = if is_hit {
            "HTTP/1.1 503"
        } else {
            "event: endpoint"
        };
        stream.receive_until(answer);
    }
    // Without events to listen on it is a tool as any other.
    let rule = json!({ "tool": "*", "mode": "error", "error_code": 503 });
    stage.daemon.api.chaos(&json!({ "tool_faults": [rule] }));
    let mut wire = stage.open(Path::Forward);
    wire.request("GET", &target, &[("accept", "application/json")], b"");
    assert_eq!(wire.response().status, 503);
}
