//! What breaks upstream breaks the same way to the agent, and an injected failure is reported by each
//! client stack as the real one is.

use serde_json::{Value, json};
use squall_tests::program::Way;
use squall_tests::{End, Path, Stage};

/// One way to break, as five stacks report it.
#[derive(Debug, Clone, Copy)]
struct Oracle {
    /// curl's exit code.
    curl: i32,
    /// The class that `requests` raises; through a proxy it may be `ProxyError`, a kind of
    /// `ConnectionError`.
    requests: &'static str,
    /// The class that `httpx` raises.
    httpx: &'static str,
    /// The class that `aiohttp` raises.
    aiohttp: &'static str,
    /// Node's `fetch`: the code of the error's cause.
    fetch: &'static str,
}

/// RST where a head was due.
const RESET: Oracle = Oracle {
    curl: 56,
    requests: "ConnectionError",
    httpx: "ReadError",
    aiohttp: "ClientOSError",
    fetch: "ECONNRESET",
};

/// FIN where a head was due.
const CLOSED: Oracle = Oracle {
    curl: 52,
    requests: "ConnectionError",
    httpx: "RemoteProtocolError",
    aiohttp: "ServerDisconnectedError",
    fetch: "UND_ERR_SOCKET",
};

/// FIN before a body of announced length was whole.
const SHORT: Oracle = Oracle {
    curl: 18,
    requests: "ChunkedEncodingError",
    httpx: "RemoteProtocolError",
    aiohttp: "ClientPayloadError",
    fetch: "UND_ERR_SOCKET",
};

impl Oracle {
    /// The stacks that report something else for a GET that goes `way`.
    fn disagreements(&self, way: &Way) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut check = |stack: &str, found: String, expected: String| {
            if found != expected {
                wrong.push(format!("{way:?}: {stack} reports {found}, not {expected}"));
            }
        };
        let output = way.curl(&["--output", "/dev/null"]);
        let code = output.status.code().unwrap_or(-1);
        check("curl", code.to_string(), self.curl.to_string());
        // An RST that comes while httpx still writes is only noticed as an end.
        let late = |found: &str| self.httpx == "ReadError" && found == "RemoteProtocolError";
        let encrypted = way.url.starts_with("https:");
        for (script, field, expected) in [
            ("requests_get.py", "error", self.requests),
            ("httpx_get.py", "error", self.httpx),
            ("aiohttp_get.py", "error", self.aiohttp),
            ("fetch.mjs", "cause", self.fetch),
        ] {
            let told = way.ask(script, &[]);
            let found = told[field]
                .as_str()
                .map_or_else(|| told.to_string(), str::to_owned);
            let as_good = match script {
                "requests_get.py" => way.proxy.is_some() && found == "ProxyError",
                "httpx_get.py" => encrypted && late(&found),
                // Node's TLS tells of an RST either way, without Squall as well.
                "fetch.mjs" => encrypted && found == "UND_ERR_SOCKET",
                _ => false,
            };
            if !as_good {
                check(script, found, expected.to_owned());
            }
        }
        wrong
    }
}

/// A break of the upstream, the fault that injects it, and what clients report.
fn breaks() -> [(&'static str, Value, Oracle); 3] {
    [
        ("/break/reset", json!({ "mode": "reset_peer" }), RESET),
        (
            "/break/close",
            json!({ "mode": "timeout", "delay_ms": 10 }),
            CLOSED,
        ),
        (
            "/break/short",
            json!({ "mode": "limit_data", "bytes": 1000 }),
            SHORT,
        ),
    ]
}

fn agree(stage: &Stage, path: Path) {
    let targets = breaks();
    let wrong = targets.iter().flat_map(|(target, _, oracle)| {
        let way = stage.way(path, target);
        oracle.disagreements(&way)
    });
    let wrong: Vec<_> = wrong.collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn clients_report_breaks_of_the_upstream_itself_as_the_oracles_say() {
    agree(&Stage::new(), Path::Direct);
}

#[test]
fn clients_report_a_break_behind_squall_as_without_it() {
    agree(&Stage::new(), Path::Intercepted);
}

#[test]
fn clients_report_an_injected_failure_as_a_real_one() {
    let stage = Stage::new();
    let mut wrong = Vec::new();
    for (_, mut rule, oracle) in breaks() {
        // Not at the CONNECT.
        rule["match_url"] = json!("*/bytes/*");
        stage.daemon.api.chaos(&json!({ "network_faults": [rule] }));
        let way = stage.way(Path::Intercepted, "/bytes/5000");
        wrong.extend(oracle.disagreements(&way));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
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
