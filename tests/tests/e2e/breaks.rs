//! What breaks upstream breaks the same way to the agent, and each client stack reports an injected failure as it
//! reports the real one.

use serde_json::json;
use squall_tests::program::Way;
use squall_tests::{End, Path, Stage};

const STACKS: [(&str, &str); 4] = [
    ("requests_get.py", "error"),
    ("httpx_get.py", "error"),
    ("aiohttp_get.py", "error"),
    ("fetch.mjs", "cause"),
];

/// What five stacks report of a GET: curl's exit code, and the error of each other one.
fn reports(way: &Way) -> Vec<String> {
    let code = way.curl(&["--output", "/dev/null"]).status.code();
    let errors = STACKS.map(|(script, field)| {
        let report = way.ask(script, &[]);
        match report[field].as_str() {
            // `requests` raises a kind of `ConnectionError` through a proxy, httpx notices an RST that comes while it
            // still writes as an end, and Node's TLS reports an RST either way: all of them without Squall as well.
            Some("ProxyError") => "ConnectionError".to_owned(),
            Some("ReadError") => "RemoteProtocolError".to_owned(),
            Some("ECONNRESET") => "UND_ERR_SOCKET".to_owned(),
            error => error.map_or_else(|| report.to_string(), str::to_owned),
        }
    });
    let mut reports = vec![code.unwrap_or(-1).to_string()];
    reports.extend(errors);
    reports
}

#[test]
fn clients_report_a_break_behind_squall_and_an_injected_one_as_a_real_one() {
    let stage = Stage::new();
    let mut known = Vec::new();
    for (target, mut rule) in [
        ("/break/reset", json!({ "mode": "reset_peer" })),
        ("/break/close", json!({ "mode": "timeout", "delay_ms": 10 })),
        (
            "/break/short",
            json!({ "mode": "limit_data", "bytes": 1000 }),
        ),
    ] {
        let real = reports(&stage.way(Path::Direct, target));
        // Not at the CONNECT.
        rule["match_url"] = json!("*/bytes/*");
        stage.daemon.api.chaos(&json!({ "network_faults": [rule] }));
        let behind = reports(&stage.way(Path::Intercepted, target));
        let injected = reports(&stage.way(Path::Intercepted, "/bytes/5000"));
        assert_eq!(behind, real, "{target}");
        assert_eq!(injected, real, "{rule}");
        assert!(!known.contains(&real), "{target} is told apart: {real:?}");
        known.push(real);
    }
}

#[test]
fn clients_report_a_refused_connect_and_an_untrusted_leaf() {
    let stage = Stage::new();
    let way = stage.way(Path::Intercepted, "/json");
    for (rule, curl, expected) in [
        (
            json!({ "mode": "refuse" }),
            56,
            ["ConnectionError", "ReadError", "ClientOSError"],
        ),
        (
            json!({ "mode": "tls_failure", "kind": "untrusted" }),
            60,
            [
                "SSLError",
                "ConnectError",
                "ClientConnectorCertificateError",
            ],
        ),
    ] {
        stage.daemon.api.chaos(&json!({ "network_faults": [rule] }));
        let code = way.curl(&["--output", "/dev/null"]).status.code();
        assert_eq!(code, Some(curl), "{rule}");
        let scripts = ["requests_get.py", "httpx_get.py", "aiohttp_get.py"];
        for (script, expected) in scripts.iter().zip(expected) {
            let told = way.ask(script, &[]);
            assert_eq!(told["error"], expected, "{script}: {told}");
        }
        let told = way.ask("fetch.mjs", &[]);
        let cause = told["cause"].as_str().unwrap_or_default();
        let known = ["ECONNRESET", "CERT", "SIGNATURE"];
        assert!(known.iter().any(|word| cause.contains(word)), "{told}");
    }
}

#[test]
fn every_byte_before_a_break_arrives_and_the_break_keeps_its_kind() {
    let stage = Stage::new();
    for path in Path::THROUGH {
        for (target, length, end) in [
            ("/break/short", 1000, End::Closed),
            ("/break/unfinished", 5, End::Closed),
            ("/break/chunk", 5, End::Closed),
            ("/break/short-reset", 1000, End::Reset),
        ] {
            let mut wire = stage.open(path);
            wire.request("GET", target, &[], b"");
            let head = wire.receive_until("\r\n\r\n");
            let begun = head.starts_with(b"HTTP/1.1 200 OK\r\n");
            assert!(begun, "{path:?} {target}");
            if end == End::Reset {
                // The body is on the client's side before the upstream resets.
                assert_eq!(wire.receive(length).len(), length, "{path:?} {target}");
                stage.upstream(path).step();
                assert_eq!(wire.rest().1, end, "{path:?} {target}");
            } else {
                let (body, how) = wire.rest();
                let body = String::from_utf8_lossy(&body);
                let enough = body.len() >= length && body.len() < 1020;
                assert!(enough, "{path:?} {target}: {body}");
                let unended = !body.ends_with("0\r\n\r\n");
                assert!(unended, "{path:?} {target}: a clean end: {body}");
                assert_eq!(how, end, "{path:?} {target}");
            }
        }
    }
}
