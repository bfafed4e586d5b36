//! Streams pass as they come: events, upgrades, slow readers, agents that leave.

use serde_json::json;
use squall_tests::program::{self, Way};
use squall_tests::upstream::standard::pattern;
use squall_tests::{Path, Stage};

#[test]
fn a_piece_of_a_request_reaches_the_upstream_before_the_agent_sends_the_next() {
    let stage = Stage::with(&json!({}), |mut connection| {
        if connection.head().is_some() {
            // Told back piece by piece, so that the client knows what has arrived.
            connection.send("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n");
            let mut arrived = String::new();
            while !arrived.ends_with("0\r\n\r\n") {
                let bytes = connection.receive();
                if bytes.is_empty() {
                    return;
                }
                arrived.push_str(&String::from_utf8_lossy(&bytes));
                for word in ["one", "two"] {
                    if String::from_utf8_lossy(&bytes).contains(word) {
                        connection.send(squall_tests::upstream::standard::chunk(word));
                    }
                }
            }
            connection.send("0\r\n\r\n");
        }
    });
    for path in Path::THROUGH {
        let mut wire = stage.open(path);
        wire.request("POST", "/", &[("Transfer-Encoding", "chunked")], b"");
        wire.send("3\r\none\r\n");
        wire.receive_until("one");
        wire.send("3\r\ntwo\r\n");
        wire.receive_until("two");
        wire.send("0\r\n\r\n");
        wire.receive_until("0\r\n\r\n");
    }
}

#[test]
fn an_agent_that_leaves_ends_its_exchange_upstream() {
    let stage = Stage::new();
    for (turn, path) in [
        (1, Path::Forward),
        (1, Path::Intercepted),
        (2, Path::Reverse),
    ] {
        let before = stage.upstream(path).requests().len();
        let mut wire = stage.open(path);
        wire.request("GET", "/hang", &[], b"");
        stage.upstream(path).wait_for_requests(before + 1);
        drop(wire);
        stage.upstream(path).wait_for_ends(turn);
    }
    let left = stage.daemon.api.wait_for_exchanges(3);
    for exchange in left {
        assert_eq!(exchange["outcome"], "client_gone", "{exchange}");
    }
}

#[test]
fn a_websocket_carries_messages_both_ways_under_the_upstream_s_own_handshake() {
    let stage = Stage::new();
    for path in Path::THROUGH {
        let told = websocket(&stage, path).ask("websocket_echo.py", &[]);
        assert_eq!(told["ok"], true, "{path:?}: {told}");
        assert_eq!(
            told["echoes"],
            json!(["message 0", "message 1", "message 2"]),
            "{path:?}"
        );
        assert_eq!(told["protocol"], "echo.test", "{path:?}");
    }
}

/// The way to the upstream's WebSocket that echoes.
fn websocket(stage: &Stage, path: Path) -> Way {
    let mut way = stage.way(path, "/websocket");
    way.url = way.url.replacen("http", "ws", 1);
    way
}

#[test]
#[rustfmt::skip]
fn a_websocket_can_be_reset_or_failed_where_its_101_would_have_come() {
    let stage = Stage::new();
    for (number, path, family, rule) in [
        (1, Path::Intercepted, "network_faults", json!({ "mode": "reset_peer" })),
        (2, Path::Reverse, "tool_faults", json!({ "mode": "commit_then_fail", "match_url": "*" })),
    ] {
        stage.daemon.api.chaos(&json!({ family: [rule] }));
        let told = websocket(&stage, path).ask("websocket_echo.py", &[]);
        assert_eq!(told["ok"], false, "{rule}: {told}");
        let entry = &stage.daemon.api.wait_for_exchanges(number)[number - 1];
        assert_eq!(entry["outcome"], "injected", "{rule}: {entry}");
        assert_eq!(entry["rules"][0]["outcome"], "applied", "{rule}: {entry}");
    }
}

#[test]
fn an_upgrade_the_upstream_refuses_is_refused_to_the_agent() {
    let stage = Stage::new();
    for path in Path::THROUGH {
        let mut wire = stage.open(path);
        let headers = [
            ("Connection", "Upgrade"),
            ("Upgrade", "websocket"),
            ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
            ("Sec-WebSocket-Version", "13"),
        ];
        wire.request("GET", "/status/403", &headers, b"");
        assert_eq!(wire.response().status, 403, "{path:?}");
    }
}

#[test]
fn a_slow_reader_holds_the_upstream_back_instead_of_filling_memory() {
    // Far more than all socket buffers on the way together.
    const WHOLE: usize = 96 << 20;
    let stage = Stage::with(&json!({}), |mut connection| {
        if connection.request().is_some() {
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {WHOLE}\r\n\r\n");
            let piece = pattern(1 << 20);
            connection.send(head);
            for _ in 0..WHOLE / piece.len() {
                if !connection.send(&piece) {
                    return;
                }
            }
        }
    });
    let resident = || program::resident(stage.daemon.id());
    let mut wire = stage.open(Path::Forward);
    let before = resident();
    wire.request("GET", "/", &[], b"");
    wire.receive_until("\r\n\r\n");
    // Nothing is read for a while; memory may grow by buffers, not by the body.
    let mut most = 0;
    for _ in 0..100 {
        most = most.max(resident());
        program::pause();
    }
    let mut body = wire.receive(WHOLE).len();
    most = most.max(resident());
    body += wire.rest().0.len();
    assert_eq!(body, WHOLE);
    let grown = most.saturating_sub(before) >> 20;
    assert!(grown < 40, "grew by {grown} MiB for one slow reader");
}
