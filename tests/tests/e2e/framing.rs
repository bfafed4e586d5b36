//! Ambiguous framing is refused before anybody guesses what it means.

use serde_json::json;
use squall_tests::{End, Path, Stage};

use crate::matrix::exchange;

/// Method, and what follows request line and `Host`.
const REQUESTS: &[(&str, &str, &str)] = &[
    (
        "length and chunked",
        "POST",
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ),
    (
        "chunked and length",
        "POST",
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    ),
    (
        "two lengths",
        "POST",
        "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
    ),
    (
        "two lengths in one line",
        "POST",
        "Content-Length: 5, 6\r\n\r\nhello!",
    ),
    (
        "a length with a sign",
        "POST",
        "Content-Length: +5\r\n\r\nhello",
    ),
    ("a negative length", "POST", "Content-Length: -1\r\n\r\n"),
    (
        "a length in hexadecimal",
        "POST",
        "Content-Length: 0x5\r\n\r\nhello",
    ),
    (
        "a length that overflows",
        "POST",
        "Content-Length: 99999999999999999999\r\n\r\nhello",
    ),
    ("an empty length", "POST", "Content-Length: \r\n\r\n"),
    (
        "chunked not last",
        "POST",
        "Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n",
    ),
    (
        "chunked twice",
        "POST",
        "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
    ),
    (
        "an unknown coding",
        "POST",
        "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    ),
    ("a folded line", "GET", "X-Folded: one\r\n two\r\n\r\n"),
    (
        "space before the colon",
        "POST",
        "Content-Length : 5\r\n\r\nhello",
    ),
    ("a line without colon", "GET", "Nonsense\r\n\r\n"),
    ("a bare CR in a value", "GET", "X-Bare: one\rtwo\r\n\r\n"),
    (
        "a bare LF at a line's end",
        "GET",
        "X-Bare: one\nX-Other: two\r\n\r\n",
    ),
    ("a NUL in a value", "GET", "X-Nul: one\0two\r\n\r\n"),
    ("a space in a name", "GET", "X Name: one\r\n\r\n"),
    ("an empty name", "GET", ": one\r\n\r\n"),
    (
        "a chunk size that is none",
        "POST",
        "Transfer-Encoding: chunked\r\n\r\nxyz\r\nhello\r\n0\r\n\r\n",
    ),
    (
        "a chunk size with a sign",
        "POST",
        "Transfer-Encoding: chunked\r\n\r\n+5\r\nhello\r\n0\r\n\r\n",
    ),
    (
        "a chunk size that overflows",
        "POST",
        "Transfer-Encoding: chunked\r\n\r\n10000000000000005\r\nhello\r\n0\r\n\r\n",
    ),
    (
        "a chunk without its line end",
        "POST",
        "Transfer-Encoding: chunked\r\n\r\n5\r\nhelloXX0\r\n\r\n",
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
    ("no host", "GET / HTTP/1.1\r\n\r\n"),
    ("two hosts", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"),
    ("no version", "GET /\r\nHost: a\r\n\r\n"),
    ("an unknown version", "GET / HTTP/3.7\r\nHost: a\r\n\r\n"),
    (
        "a space in the target",
        "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n",
    ),
    ("a method that is none", "G@T / HTTP/1.1\r\nHost: a\r\n\r\n"),
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
    (
        "a length with a sign",
        "HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\nhello",
    ),
    (
        "an unknown coding",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    ),
    (
        "a folded line",
        "HTTP/1.1 200 OK\r\nX-Folded: one\r\n two\r\nContent-Length: 2\r\n\r\nok",
    ),
    (
        "space before the colon",
        "HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\nok",
    ),
    (
        "a bare CR in a value",
        "HTTP/1.1 200 OK\r\nX-Bare: one\rtwo\r\nContent-Length: 2\r\n\r\nok",
    ),
    (
        "a bare LF at a line's end",
        "HTTP/1.1 200 OK\r\nX-Bare: one\nContent-Length: 2\r\n\r\nok",
    ),
    (
        "a status that is none",
        "HTTP/1.1 xyz OK\r\nContent-Length: 2\r\n\r\nok",
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

#[test]
fn a_bad_chunk_in_an_answer_breaks_the_answer_off() {
    let stage = Stage::new();
    for path in Path::THROUGH {
        let mut wire = stage.open(path);
        wire.request("GET", "/break/chunk", &[], b"");
        wire.receive_until("\r\n\r\n");
        let (body, end) = wire.rest();
        let body = String::from_utf8_lossy(&body);
        assert!(
            !body.ends_with("0\r\n\r\n"),
            "{path:?}: a clean end: {body}"
        );
        assert_eq!(end, End::Closed, "{path:?}");
    }
}
