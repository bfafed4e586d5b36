//! Without a rule nothing changes: bytes, headers, framing, timing of the first byte.

use serde_json::json;
use squall_tests::upstream::standard::{self, JSON, TOOL, pattern};
use squall_tests::{Path, Stage};

/// Headers as an agent might send them: odd case, an order of their own, one name again and again.
const HEADERS: [(&str, &str); 8] = [
    ("X-ZED", "1"),
    ("accept", "*/*"),
    ("x-aLpHa", "2"),
    ("X-Twice", "first"),
    ("X-Twice", "second"),
    ("authorization", "Bearer secret"),
    ("cOOkie", "a=b; c=d"),
    ("x-tWICE", "third"),
];

/// Headers that end at the proxy.
const HOP_BY_HOP: [(&str, &str); 3] = [
    ("Proxy-Connection", "keep-alive"),
    ("Connection", "x-private"),
    ("X-Private", "1"),
];

#[test]
fn requests_reach_the_upstream_with_every_end_to_end_header_as_sent_and_no_other() {
    let stage = Stage::new();
    for path in Path::THROUGH {
        let answer = {
            let mut wire = stage.open(path);
            let headers = [&HEADERS[..], &HOP_BY_HOP].concat();
            wire.request("GET", "/a%2Fb/../c?q=1&q=%20", &headers, b"");
            wire.response()
        };
        assert_eq!(answer.status, 200, "{path:?}: {answer:?}");
        let seen = stage.upstream(path).requests().pop().unwrap();
        assert_eq!(seen.target, "/a%2Fb/../c?q=1&q=%20", "{path:?}");
        let mut expected = vec![("Host", seen.header("host").unwrap())];
        expected.extend(HEADERS);
        let found: Vec<(&str, &str)> = seen
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        assert_eq!(found, expected, "{path:?}");
        let host = match path {
            Path::Intercepted => stage.secure_authority(),
            _ => stage.plain.address.to_string(),
        };
        assert_eq!(seen.header("host"), Some(host.as_str()), "{path:?}");
    }
}

#[test]
fn answers_reach_the_agent_with_every_header_as_sent_and_no_other() {
    let stage = Stage::new();
    for path in Path::THROUGH {
        let straight = stage.open(Path::Direct).get("/headers");
        let through = stage.open(path).get("/headers");
        assert_eq!(through.headers, straight.headers, "{path:?}");
        assert_eq!(through.body, straight.body, "{path:?}");
        assert!(through.head.starts_with(b"HTTP/1.1 200 OK\r\n"), "{path:?}");
    }
}

#[test]
fn bodies_of_answers_are_the_same_bytes_compressed_chunked_or_fixed() {
    let stage = Stage::new();
    for path in Path::THROUGH {
        for (target, body) in [
            ("/json", JSON.as_bytes().to_vec()),
            ("/tool", TOOL.as_bytes().to_vec()),
            ("/gzip", standard::gzipped()),
            ("/bytes/0", Vec::new()),
            ("/bytes/1", pattern(1)),
            ("/bytes/3000000", pattern(3_000_000)),
            ("/chunked/250000", pattern(250_000)),
        ] {
            let answer = stage.open(path).get(target);
            assert_eq!(answer.status, 200, "{path:?} {target}");
            assert!(
                answer.broke.is_none(),
                "{path:?} {target}: {:?}",
                answer.broke
            );
            assert!(
                answer.body == body,
                "{path:?} {target}: {} bytes",
                answer.body.len()
            );
        }
    }
}

#[test]
fn bodies_of_requests_are_the_same_bytes_chunked_or_fixed() {
    let stage = Stage::new();
    let body = pattern(300_000);
    for path in Path::THROUGH {
        let mut wire = stage.open(path);
        wire.request("POST", "/fixed", &[], &body);
        assert_eq!(wire.response().status, 200, "{path:?}");
        let seen = stage.upstream(path).request_to("/fixed");
        assert!(seen.body == body, "{path:?}: {} bytes", seen.body.len());
        assert_eq!(seen.header("content-length"), Some("300000"), "{path:?}");

        let head = wire.written("PUT", "/chunked", &[("Transfer-Encoding", "chunked")], b"");
        wire.send(head);
        for piece in body.chunks(70_000) {
            wire.send(format!("{:x}\r\n", piece.len()));
            wire.send(piece);
            wire.send("\r\n");
        }
        // Fields about framing and routing are removed from trailers.
        wire.send("0\r\nContent-Length: 9\r\nX-Sum: 7\r\nHost: other\r\n\r\n");
        assert_eq!(wire.response().status, 200, "{path:?}");
        let seen = stage.upstream(path).request_to("/chunked");
        assert_eq!(seen.method, "PUT");
        let end = b"\r\n0\r\nx-sum: 7\r\n\r\n";
        assert!(seen.raw_body.ends_with(end), "{path:?}");
        assert!(seen.body == body, "{path:?}: {} bytes", seen.body.len());
        assert_eq!(
            seen.header("transfer-encoding"),
            Some("chunked"),
            "{path:?}"
        );

        wire.request("POST", "/none", &[("Content-Length", "0")], b"");
        assert_eq!(wire.response().status, 200, "{path:?}");
        let seen = stage.upstream(path).request_to("/none");
        assert_eq!(seen.header("content-length"), Some("0"), "{path:?}");
    }
}

#[test]
fn answers_of_every_status_are_passed_on_and_the_connection_goes_on() {
    let stage = Stage::new();
    for path in Path::THROUGH {
        let mut wire = stage.open(path);
        wire.request("HEAD", "/anything", &[], b"");
        let answer = wire.response_to_head();
        assert_eq!(answer.status, 200, "{path:?}");
        assert!(
            answer.header("content-length").is_some(),
            "{path:?}: {answer:?}"
        );
        for (target, status, header) in [
            ("/status/204", 204, ("x-kept", "yes")),
            ("/status/304", 304, ("etag", "\"1\"")),
            // An answer behind a 103, and the upstream's own errors.
            ("/early-hints", 200, ("content-length", "33")),
            ("/status/404", 404, ("content-length", "20")),
            ("/status/503", 503, ("content-length", "20")),
        ] {
            let answer = wire.get(target);
            assert_eq!(answer.status, status, "{path:?}");
            assert_eq!(answer.header(header.0), Some(header.1), "{path:?} {target}");
            assert_eq!(
                answer.header("transfer-encoding"),
                None,
                "{path:?} {target}"
            );
        }
        assert_eq!(wire.get("/json").text(), JSON, "{path:?}");
    }
}

#[test]
fn announced_trailers_arrive_after_the_body_whether_or_not_the_agent_asked_for_them() {
    let stage = Stage::new();
    for rules in [
        json!({}),
        json!({ "network_faults": [{ "mode": "slicer", "average_size": 2 }] }),
    ] {
        stage.daemon.api.chaos(&rules);
        for path in Path::THROUGH {
            let mut wire = stage.open(path);
            for asks in [&[("TE", "trailers"), ("Connection", "TE")][..], &[]] {
                wire.request("GET", "/trailers", asks, b"");
                let answer = wire.response();
                assert_eq!(answer.text(), "hello", "{path:?} {asks:?} {rules}");
                assert_eq!(
                    answer.trailers,
                    [("X-Checksum".to_owned(), "abc".to_owned())],
                    "{path:?} {asks:?} {rules}"
                );
            }
        }
    }
}

#[test]
fn a_body_is_sent_only_after_the_upstream_s_own_100() {
    let stage = Stage::with(&json!({}), |mut connection| {
        while let Some(mut request) = connection.head() {
            let expects = request.header("expect").is_some();
            if request.target == "/refuse" {
                connection.send("HTTP/1.1 417 Expectation Failed\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
                return;
            }
            assert!(expects, "the expectation was not passed on: {request:?}");
            connection.wait_for_step();
            connection.send("HTTP/1.1 100 Continue\r\n\r\n");
            if connection.body(&mut request).is_none() {
                return;
            }
            connection.send("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
        }
    });
    for path in Path::THROUGH {
        let mut wire = stage.open(path);
        let headers = [("Expect", "100-continue"), ("Content-Length", "5")];
        let before = stage.upstream(path).requests().len();
        wire.request("POST", "/wait", &headers, b"");
        stage.upstream(path).wait_for_requests(before + 1);
        stage.upstream(path).step();
        wire.receive_until("HTTP/1.1 100 Continue\r\n\r\n");
        wire.send("hello");
        assert_eq!(wire.response().status, 200, "{path:?}");
        let seen = stage.upstream(path).request_to("/wait");
        assert_eq!(seen.body, b"hello", "{path:?}");

        let mut wire = stage.open(path);
        wire.request("POST", "/refuse", &headers, b"");
        let answer = wire.response();
        assert_eq!(
            (answer.status, answer.informational.len()),
            (417, 0),
            "{path:?}"
        );
    }
}

#[test]
fn requests_sent_without_waiting_are_answered_in_order() {
    let stage = Stage::new();
    for path in Path::THROUGH {
        let mut wire = stage.open(path);
        let bytes: Vec<u8> = ["/bytes/11", "/chunked/1200", "/json"]
            .iter()
            .flat_map(|target| wire.written("GET", target, &[], b""))
            .collect();
        wire.send(bytes);
        assert_eq!(wire.response().body, pattern(11), "{path:?}");
        assert_eq!(wire.response().body, pattern(1200), "{path:?}");
        assert_eq!(wire.response().text(), JSON, "{path:?}");
    }
}

#[test]
fn an_agent_that_asks_to_close_is_closed_after_its_answer() {
    let stage = Stage::new();
    for path in Path::THROUGH {
        let mut wire = stage.open(path);
        wire.request("GET", "/json", &[("Connection", "close")], b"");
        assert_eq!(wire.response().text(), JSON, "{path:?}");
        let (left, end) = wire.rest();
        assert_eq!(
            (left.as_slice(), end),
            (&b""[..], squall_tests::End::Closed),
            "{path:?}"
        );
    }
}

#[test]
fn an_old_agent_s_http_1_0_is_answered_and_closed() {
    let stage = Stage::new();
    let mut wire = stage.daemon.connect();
    let host = stage.plain.address;
    wire.send(format!(
        "GET http://{host}/json HTTP/1.0\r\nHost: {host}\r\n\r\n"
    ));
    let answer = wire.response();
    assert_eq!((answer.status, answer.text().as_str()), (200, JSON));
    assert_eq!(wire.rest().1, squall_tests::End::Closed);
}
