//! Ambiguous framing is refused before anybody guesses what it means.

use serde_json::json;
use squall_tests::{End, Path, Stage};

use crate::matrix::exchange;

/// Requests that every reader may end elsewhere, by method and what follows `Host`. What is ambiguous is in
/// the tests of the guard, in `proxy/src/h1`.
const REQUESTS: &[(&str, &str, &str)] = &[
    (
        "length and chunked",
        "POST",
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ),
    (
        "two lengths",
        "POST",
        "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
    ),
    (
        "chunked not last",
        "POST",
        "Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n",
    ),
    ("a folded line", "GET", "X-Folded: one\r\n two\r\n\r\n"),
    (
        "space before the colon",
        "POST",
        "Content-Length : 5\r\n\r\nhello",
    ),
    (
        "a bare LF at a line's end",
        "GET",
        "X-Bare: one\nX-Other: two\r\n\r\n",
    ),
    (
        "a chunk size that is none",
        "POST",
        "Transfer-Encoding: chunked\r\n\r\nxyz\r\nhello\r\n0\r\n\r\n",
    ),
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

/// Request lines and hosts that cannot be right.
const LINES: &[(&str, &str)] = &[
    ("two hosts", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"),
    ("no version", "GET /\r\nHost: a\r\n\r\n"),
    ("no request at all", "\u{1}\u{2}\u{3}\u{4}\r\n\r\n"),
];

#[test]
fn a_request_line_that_cannot_be_right_is_refused_and_its_connection_closed() {
    let stage = Stage::new();
    for (name, text) in LINES {
        let mut wire = stage.daemon.connect();
        wire.send(text);
        let answer = wire.response();
        assert_eq!(answer.status, 400, "{name}: {answer:?}");
        assert_ne!(wire.rest().1, End::StillOpen, "{name}");
    }
    assert_eq!(stage.plain.opened() + stage.secure.opened(), 0);
}

/// Answers that leave open where they end; each is all that the upstream sends.
const ANSWERS: &[(&str, &str)] = &[
    (
        "length and chunked",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ),
    (
        "two lengths",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
    ),
    ("no HTTP at all", "220 mail.example ESMTP ready\r\n\r\n"),
];

#[test]
fn an_answer_with_ambiguous_framing_gives_502_and_none_of_its_bytes() {
    let stage = Stage::with(&serde_json::json!({}), |mut connection| {
        while let Some(request) = connection.request() {
            let number = request
                .target
                .trim_start_matches('/')
                .parse::<usize>()
                .unwrap_or(0);
            connection.send(ANSWERS[number].1);
        }
    });
    for path in Path::THROUGH {
        for (number, (name, _)) in ANSWERS.iter().enumerate() {
            let answer = stage.open(path).get(&format!("/{number}"));
            assert_eq!(answer.status, 502, "{path:?}, {name}: {answer:?}");
            assert_eq!(
                answer.header("content-type"),
                Some("application/problem+json"),
                "{path:?}, {name}"
            );
        }
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
