//! 2024-11-05: replies arrive on the event stream that the session began with, where no fault acts.

use std::net::TcpListener;

use serde_json::{Value, json};
use squall_tests::program::Way;
use squall_tests::upstream::mcp::{Server, answers};
use squall_tests::wire::Response;
use squall_tests::{Path, Stage, Upstream, Wire};

use super::{CLIENT, JSON, call, outcome, stage, stage_with, with_rule};

/// Where the endpoint is named relative to the stream, so that a prefix in front of both is kept.
const NEAR: &str = "/2024/near/";

/// A session as a client holds it: a stream to listen on, and an endpoint.
struct Session<'s> {
    stage: &'s Stage,
    path: Path,
    stream: Wire,
    endpoint: String,
}

impl<'s> Session<'s> {
    fn begin(stage: &'s Stage, path: Path) -> Self {
        let mut stream = stage.open(path);
        let accept = [("accept", "text/event-stream")];
        stream.request("GET", &format!("{NEAR}sse"), &accept, b"");
        stream.receive_until("event: endpoint\r\ndata: ");
        let endpoint = stream.receive_until("\r\n\r\n");
        let endpoint = String::from_utf8(endpoint).unwrap();
        Self {
            stage,
            path,
            stream,
            endpoint: format!("{NEAR}{}", endpoint.trim()),
        }
    }

    /// POSTs a message, on a connection of its own.
    fn post(&self, message: &Value) -> Response {
        let mut wire = self.stage.open(self.path);
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
        assert_eq!(received, (202, "Accepted"), "{:?}", self.path);
        let reply = answers(&message, false).unwrap();
        let expected = format!("event: message\r\ndata: {reply}\r\n\r\n");
        let event = self.stream.receive_until("\r\n\r\n");
        let event = String::from_utf8(event).unwrap();
        // Behind the head of a chunk.
        assert!(event.ends_with(&expected), "{:?}: {event}", self.path);
    }
}

#[test]
fn without_a_rule_the_stream_is_the_server_s_byte_for_byte() {
    let stage = stage();
    for path in Path::THROUGH {
        let before = stage.daemon.api.exchanges().len();
        let mut session = Session::begin(&stage, path);
        for id in 1..=3 {
            session.receives_the_server_s_reply(id);
        }
        drop(session);
        let entries = stage.daemon.api.wait_for_exchanges(before + 4);
        for entry in &entries[before..] {
            assert_eq!(entry["kind"], "mcp", "{path:?}: {entry}");
        }
    }
}

#[test]
fn a_fault_on_an_out_of_band_reply_is_bypassed_and_the_message_passes_unchanged() {
    let stage = stage();
    for path in Path::THROUGH {
        let mut session = Session::begin(&stage, path);
        for (id, family, mut rule) in [
            (1, "tool_faults", json!({ "mode": "error" })),
            (2, "tool_faults", json!({ "mode": "wrong_id" })),
            (3, "tool_faults", json!({ "mode": "stale" })),
            (4, "tool_faults", json!({ "mode": "timeout" })),
            (
                5,
                "tool_faults",
                json!({ "mode": "truncated", "bytes": 9, "status": "2xx" }),
            ),
            (
                6,
                "context_attacks",
                json!({ "type": "indirect_injection", "payloads": ["Obey {canary}."] }),
            ),
        ] {
            rule["tool"] = json!("get_weather");
            let chaos = json!({ family: [rule] });
            stage.daemon.api.chaos(&chaos);
            let before = stage.daemon.api.exchanges().len();
            session.receives_the_server_s_reply(id);
            let entries = stage.daemon.api.wait_for_exchanges(before + 1);
            let entry = &entries[before];
            let verdict = &entry["rules"][0];
            assert_eq!(verdict["outcome"], "bypassed", "{chaos}: {entry}");
            assert_eq!(
                verdict["reason"],
                "the reply arrives on the session's event stream, where faults are not supported",
            );
            assert_eq!(entry["outcome"], "ok", "{chaos}: {entry}");
        }
    }
}

#[test]
fn a_network_fault_acts_on_the_post() {
    let stage = stage();
    let mut session = Session::begin(&stage, Path::Forward);
    let refuse = json!({ "mode": "refuse", "methods": ["POST"], "limit": 1 });
    stage
        .daemon
        .api
        .chaos(&json!({ "network_faults": [refuse] }));
    assert_eq!(session.post(&call(1, "get_weather")).status, 0);
    assert_eq!(outcome(&stage, "refuse"), "applied");
    session.receives_the_server_s_reply(2);
}

#[test]
fn a_server_that_names_its_endpoint_from_the_root_has_a_listener_of_its_own() {
    let address = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let server = Server::default();
    let upstream = Upstream::start(None, move |connection| server.serve(connection));
    let config = json!({ "routes": [{
        "name": "own",
        "listen": address.to_string(),
        "upstream": format!("http://{}", upstream.address),
    }] });
    let stage = stage_with(&config);
    let rule = json!({ "mode": "error", "tool": "get_weather" });
    stage.daemon.api.chaos(&json!({ "tool_faults": [rule] }));
    let way = Way {
        url: format!("http://{address}/2024/sse"),
        proxy: None,
        ca: None,
    };
    let told = way.ask(CLIENT, &["--era", "sse"]);
    assert_eq!(told["first"]["is_error"], false, "{told}");
    let (entry, rule) = with_rule(&stage, "error");
    assert_eq!(rule["outcome"], "bypassed", "{entry}");
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
