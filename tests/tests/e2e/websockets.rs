//! Network faults on WebSockets, as clients report them, and what the journal says of the messages.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use squall_tests::upstream::{Connection, standard};
use squall_tests::{End as Ending, Path, Stage, Wire};

use super::model_sockets::frames::{End, Message, frame};

/// In clear only: it uses a TLS connection from two threads, and at times it fails or hangs.
const PYTHON: &str = "socket_messages.py";
const NODE: &str = "socket_messages.mjs";

/// A WebSocket that no dialect knows.
const ANY: &str = "/socket";
/// One of model calls; its messages are of no call.
const MODEL: &str = "/v1/responses";

/// Accepts an upgrade; `give N` gets the texts 1 to N. Pings and Close frames are answered.
fn serve(mut connection: Connection) {
    let Some(request) = connection.request() else {
        return;
    };
    let key = request.header("sec-websocket-key").unwrap_or_default();
    let accept = standard::websocket_accept(key);
    connection.send(format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Accept: {accept}\r\n\r\n"
    ));
    let mut end = End::new(None, false);
    loop {
        let bytes = connection.receive();
        if bytes.is_empty() {
            return;
        }
        end.push(&bytes);
        while let Some(message) = end.next() {
            let answer = match message {
                Message::Text(text) => {
                    let count = text.strip_prefix("give ").unwrap_or_default();
                    let numbers = 1..=count.parse::<u32>().unwrap_or_default();
                    numbers.flat_map(|n| end.text(&n.to_string())).collect()
                }
                Message::Close(code) => {
                    connection.send(end.close(code));
                    return;
                }
                Message::Other(_, payload) => frame(0x8a, None, &payload),
            };
            connection.send(answer);
        }
    }
}

fn ask(stage: &Stage, client: &str, path: Path, target: &str) -> Value {
    let mut way = stage.way(path, target);
    way.url = way.url.replacen("http", "ws", 1);
    let arguments = ["--text", "give 5", "--messages", "5", "--silence", "1"];
    way.ask(client, &arguments)
}

/// Number of messages, whether a ping is answered, the Close code, and whether it was a reset.
type Report = (usize, bool, u16, bool);

const CLEAN: Report = (5, true, 1000, false);

fn check(client: &str, report: &Value, expected: Report, about: &str) {
    let (count, pong, closed, reset) = expected;
    let messages: Vec<String> = (1..=count).map(|n| n.to_string()).collect();
    assert_eq!(report["messages"], json!(messages), "{about}: {report}");
    assert_eq!(report["pong"], pong, "{about}: {report}");
    assert_eq!(report["closed"], closed, "{about}: {report}");
    if client == PYTHON {
        assert_eq!(report["reset"], reset, "{about}: {report}");
    }
}

/// The modes whose effect shows in what a client reports.
#[test]
#[rustfmt::skip]
fn clients_report_each_fault_as_the_real_one() {
    let stage = Stage::with(&json!({}), serve);
    let api = stage.daemon.api;
    let mut count = 0;
    for (rule, expected) in [
        (json!({ "mode": "websocket_close", "code": 1012, "websocket": { "message": 4 } }), (3, false, 1012, false)),
        (json!({ "mode": "websocket_close", "code": 4002, "websocket": {} }), (0, false, 4002, false)),
        (json!({ "mode": "websocket_close", "code": 1006, "websocket": { "message": 2 } }), (1, false, 1006, false)),
        (json!({ "mode": "limit_data", "bytes": 0, "websocket": { "message": 4 } }), (3, false, 1006, false)),
        // Two bytes of the fourth frame.
        (json!({ "mode": "limit_data", "bytes": 5, "websocket": { "message": 3 } }), (3, false, 1006, false)),
        (json!({ "mode": "reset_peer", "after_bytes": 0, "websocket": { "message": 4 } }), (3, false, 1006, true)),
        (json!({ "mode": "half_open", "websocket": { "message": 3 } }), (2, false, 1006, false)),
    ] {
        assert_ne!(expected, CLEAN);
        for (client, path, target) in [
            (PYTHON, Path::Forward, ANY),
            (PYTHON, Path::Reverse, MODEL),
            (NODE, Path::Intercepted, ANY),
            (NODE, Path::Intercepted, MODEL),
        ] {
            // There, the RST overtakes messages.
            if expected.3 && target == MODEL {
                continue;
            }
            api.chaos(&json!({ "network_faults": [rule] }));
            let about = format!("{rule}, {client}, {path:?}, {target}");
            let report = ask(&stage, client, path, target);
            check(client, &report, expected, &about);
            count += 1;
            let entry = &api.wait_for_exchanges(count)[count - 1];
            assert_eq!(entry["outcome"], "injected", "{about}: {entry}");
            assert_eq!(entry["rules"][0]["outcome"], "applied", "{about}: {entry}");
            assert_eq!(entry["messages"]["upstream"]["messages"], expected.0, "{about}: {entry}");
        }
    }
}

/// Modes that only slow: everything arrives in order, and takes its time.
#[test]
#[rustfmt::skip]
fn slow_messages_arrive_whole_and_in_order() {
    let stage = Stage::with(&json!({}), serve);
    let api = stage.daemon.api;
    let mut count = 0;
    for (rule, seconds) in [
        (json!({ "mode": "latency", "delay_ms": 700, "websocket": {} }), 0.7),
        (json!({ "mode": "latency", "delay_ms": 700, "websocket": { "message": 5 } }), 0.7),
        // Messages of three bytes.
        (json!({ "mode": "slicer", "average_size": 1, "delay_us": 100_000, "websocket": { "message": 3 } }), 0.8),
    ] {
        for (client, path, target) in [
            (PYTHON, Path::Forward, ANY),
            (PYTHON, Path::Reverse, MODEL),
            (NODE, Path::Intercepted, ANY),
        ] {
            api.chaos(&json!({ "network_faults": [rule] }));
            let about = format!("{rule}, {client}, {path:?}, {target}");
            let report = ask(&stage, client, path, target);
            check(client, &report, CLEAN, &about);
            let took = report["took"].as_f64().unwrap();
            assert!(took >= seconds, "{about}: {report}");
            count += 1;
            let entry = &api.wait_for_exchanges(count)[count - 1];
            assert_eq!(entry["outcome"], "ok", "{about}: {entry}");
            assert_eq!(entry["rules"][0]["outcome"], "applied", "{about}: {entry}");
        }
    }
}

#[test]
#[rustfmt::skip]
fn without_a_rule_that_acts_nothing_changes_and_the_journal_has_the_messages() {
    let stage = Stage::with(&json!({}), serve);
    let api = stage.daemon.api;
    let late = json!({ "mode": "half_open", "websocket": { "message": 6 } });
    let mut count = 0;
    for (rules, target) in [
        (json!([]), ANY),
        (json!([]), MODEL),
        (json!([late]), ANY),
        (json!([late]), MODEL),
    ] {
        api.chaos(&json!({ "network_faults": rules }));
        for (client, path) in [(PYTHON, Path::Reverse), (NODE, Path::Intercepted)] {
            let about = format!("{rules}, {client}, {target}");
            let report = ask(&stage, client, path, target);
            check(client, &report, CLEAN, &about);
            count += 1;
            let entry = &api.wait_for_exchanges(count)[count - 1];
            assert_eq!(entry["outcome"], "ok", "{about}: {entry}");
            let expected = json!({
                "agent": { "messages": 1, "bytes": 6 },
                "upstream": { "messages": 5, "bytes": 5 },
                "close": { "by": "agent", "code": 1000, "reason": "bye" },
            });
            assert_eq!(entry["messages"], expected, "{about}: {entry}");
            if rules == json!([late]) {
                let reason = "the WebSocket ended before message 6";
                assert_eq!(entry["rules"][0]["reason"], reason, "{about}: {entry}");
            }
        }
    }
}

/// A client's side of an upgrade.
fn open(stage: &Stage, path: Path, protocol: &str) -> Wire {
    let mut wire = stage.open(path);
    let headers = [
        ("Connection", "Upgrade"),
        ("Upgrade", protocol),
        ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ("Sec-WebSocket-Version", "13"),
    ];
    wire.request("GET", ANY, &headers, b"");
    assert_eq!(wire.response().status, 101);
    wire
}

const MASK: Option<[u8; 4]> = Some([1, 2, 3, 4]);

#[test]
fn a_rule_without_websocket_shapes_the_bytes_after_the_101() {
    let stage = Stage::with(&json!({}), serve);
    let cut = json!({ "mode": "limit_data", "bytes": 7 });
    let reset = json!({ "mode": "reset_peer", "after_bytes": 7 });
    for (number, path, rule, ending) in [
        (1, Path::Forward, &cut, Ending::Closed),
        (2, Path::Intercepted, &cut, Ending::Closed),
        (3, Path::Reverse, &cut, Ending::Closed),
        (4, Path::Forward, &reset, Ending::Reset),
        (5, Path::Intercepted, &reset, Ending::Reset),
    ] {
        stage.daemon.api.chaos(&json!({ "network_faults": [rule] }));
        let mut wire = open(&stage, path, "websocket");
        wire.send(frame(0x81, MASK, b"give 5"));
        let expected = b"\x81\x011\x81\x012\x81".to_vec();
        assert_eq!(wire.rest(), (expected, ending), "{rule}, {path:?}");
        drop(wire);
        let entry = &stage.daemon.api.wait_for_exchanges(number)[number - 1];
        assert_eq!(entry["outcome"], "injected", "{entry}");
        assert_eq!(entry["response_bytes"], 7, "{entry}");
    }
}

#[test]
fn an_upstream_that_resets_a_websocket_resets_the_agent() {
    let stage = Stage::with(&json!({}), |mut connection| {
        connection.request();
        connection.send(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
        );
        connection.receive();
        connection.reset();
    });
    for (number, path) in (1..).zip([Path::Forward, Path::Reverse]) {
        let mut wire = open(&stage, path, "websocket");
        wire.send(frame(0x81, MASK, b"hi"));
        assert_eq!(wire.rest(), (Vec::new(), Ending::Reset), "{path:?}");
        let entry = &stage.daemon.api.wait_for_exchanges(number)[number - 1];
        assert_eq!(entry["outcome"], "upstream_error", "{entry}");
    }
}

#[test]
fn half_open_reads_what_the_agent_sends_until_it_closes() {
    let got = Arc::new(Mutex::new(Vec::new()));
    let collected = Arc::clone(&got);
    let stage = Stage::with(&json!({}), move |mut connection| {
        let request = connection.request().expect("an upgrade");
        let key = request.header("sec-websocket-key").unwrap_or_default();
        let accept = standard::websocket_accept(key);
        connection.send(format!(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Accept: {accept}\r\n\r\n"
        ));
        // More than any buffer on the way holds.
        for _ in 0..1000 {
            connection.send(frame(0x82, None, &vec![7; 60_000]));
        }
        loop {
            let bytes = connection.receive();
            if bytes.is_empty() {
                return;
            }
            collected.lock().unwrap().extend(bytes);
        }
    });
    let fault = json!({ "mode": "half_open", "websocket": {} });
    stage
        .daemon
        .api
        .chaos(&json!({ "network_faults": [fault] }));
    let mut wire = open(&stage, Path::Forward, "websocket");
    let sent = frame(0x89, MASK, b"are you there");
    wire.send(&sent);
    stage
        .daemon
        .api
        .wait("the ping", || (*got.lock().unwrap() == sent).then_some(()));
    wire.finish();
    assert_eq!(wire.rest(), (Vec::new(), Ending::Closed));
    let entry = &stage.daemon.api.wait_for_exchanges(1)[0];
    assert_eq!(entry["outcome"], "injected", "{entry}");
}

#[test]
fn what_is_no_websocket_passes_and_rules_say_why() {
    let accepts = |protocol: &'static str| {
        move |mut connection: Connection| {
            connection.request();
            connection.send(format!(
                "HTTP/1.1 101 Switching Protocols\r\nUpgrade: {protocol}\r\nConnection: Upgrade\r\n\r\n"
            ));
            connection.send("SSH-2.0-OpenSSH\r\n");
            connection.receive();
        }
    };
    let close = json!({ "mode": "websocket_close", "websocket": {} });
    let cut = json!({ "mode": "limit_data", "bytes": 3 });
    for (protocol, rule, reason) in [
        ("websocket", close, "the bytes are not WebSocket frames"),
        ("tcp", cut, "the connection changed its protocol"),
    ] {
        let stage = Stage::with(&json!({}), accepts(protocol));
        stage.daemon.api.chaos(&json!({ "network_faults": [rule] }));
        let mut wire = open(&stage, Path::Forward, protocol);
        assert_eq!(wire.receive(17), b"SSH-2.0-OpenSSH\r\n", "{rule}");
        wire.finish();
        wire.rest();
        let entry = &stage.daemon.api.wait_for_exchanges(1)[0];
        assert_eq!(entry["rules"][0]["reason"], reason, "{entry}");
        assert_eq!(entry["messages"], Value::Null, "{entry}");
    }
}
