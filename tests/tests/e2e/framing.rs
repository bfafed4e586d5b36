//! Ambiguous framing is refused before anybody guesses what it means.

use serde_json::json;
use squall_tests::{End, Path, Stage};

use crate::matrix::exchange;

/// Requests with ambiguous framing, by method and what follows `Host`. The tests of `proxy/src/http1/framing` have
/// all that is ambiguous.
const REQUESTS: &[(&str, &str, &str)] = &[
    (
        "length and chunked",
        "POST",
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ),
    ("a folded line", "GET", "X-Folded: one\r\n two\r\n\r\n"),
];

#[test]
fn a_request_with_ambiguous_framing_is_refused_and_its_connection_closed() {
    let stage = Stage::new();
    for path in Path::THROUGH {
        for (name, method, rest) in REQUESTS {
            let mut wire = stage.open(path);
            let (prefix, host) = (&wire.prefix, &wire.host);
            let text = format!("{method} {prefix}/framed HTTP/1.1\r\nHost: {host}\r\n{rest}");
            wire.send(text);
            let answer = wire.response();
            assert_eq!(answer.status, 400, "{path:?}, {name}: {answer:?}");
            let (left, end) = wire.rest();
            assert!(
                left.is_empty(),
                "{path:?}, {name}: {:?}",
                String::from_utf8_lossy(&left)
            );
            assert_ne!(end, End::StillOpen, "{path:?}, {name}");
        }
    }
    for upstream in [&stage.plain, &stage.secure] {
        let whole: Vec<_> = upstream
            .requests()
            .into_iter()
            .filter(|seen| !seen.body.is_empty())
            .collect();
        assert!(whole.is_empty(), "got through: {whole:#?}");
    }
}

#[test]
fn a_chunk_that_is_none_is_denied_in_the_journal_whether_or_not_a_rule_reads_the_body() {
    let stage = Stage::new();
    let reads = json!({ "mode": "error", "match_body": "nowhere" });
    for (read, chaos) in [(1, json!({})), (2, json!({ "tool_faults": [reads] }))] {
        stage.daemon.api.chaos(&chaos);
        let mut wire = stage.open(Path::Forward);
        let (prefix, host) = (&wire.prefix, &wire.host);
        let head = format!("POST {prefix}/framed HTTP/1.1\r\nHost: {host}\r\n");
        let rest = "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n";
        wire.send(head + rest);
        assert_eq!(wire.response().status, 400, "{chaos}");
        let entry = exchange(&stage, read);
        assert_eq!(entry["outcome"], "denied", "{entry}");
        assert_eq!(entry["status"], 400, "{entry}");
    }
}

#[test]
fn a_switch_of_protocols_that_nobody_asked_for_gives_502() {
    let stage = Stage::with(&serde_json::json!({}), |mut connection| {
        while connection.request().is_some() {
            connection.send(
                "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n",
            );
        }
    });
    for (turn, path) in (1..).zip(Path::THROUGH) {
        let answer = stage.open(path).get("/");
        assert_eq!(answer.status, 502, "{path:?}: {answer:?}");
        let kind = answer.json()["type"].to_string();
        assert!(kind.contains("upstream-framing"), "{path:?}: {kind}");
        let exchanges = stage.daemon.api.wait_for_exchanges(turn);
        for exchange in exchanges {
            assert_eq!(exchange["outcome"], "upstream_error", "{exchange}");
        }
    }
}
