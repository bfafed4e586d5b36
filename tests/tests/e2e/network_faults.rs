//! Every network fault, as a client sees it, on every path.

use serde_json::{Value, json};
use squall_tests::upstream::standard::pattern;
use squall_tests::{End, Path, Stage};

use crate::matrix::{Ask, Judge, Row, Seen, check, exchange, see};
use crate::oracle;

const NETWORK: &str = "network_faults";

fn row(rule: Value, ask: Ask, check: Judge) -> Row {
    Row {
        family: NETWORK,
        rule,
        ask,
        check,
    }
}

fn whole(seen: &Seen) -> Result<(), String> {
    let body = pattern(5000);
    seen.expect(
        "every byte arrived",
        seen.answer.body == body && seen.answer.broke.is_none(),
    )
}

fn at_least(seen: &Seen, milliseconds: u64) -> Result<(), String> {
    let enough = seen.took >= std::time::Duration::from_millis(milliseconds);
    seen.expect(&format!("it took {milliseconds} ms"), enough)
}

/// No byte of an answer; through CONNECT, no 200.
fn refused(seen: &Seen) -> Result<(), String> {
    seen.expect(
        "no answer at all",
        seen.answer.head.is_empty() && seen.answer.body.is_empty(),
    )?;
    seen.expect("RST", seen.answer.broke == Some(End::Reset))?;
    seen.expect(
        "no 200 to CONNECT",
        seen.path != Path::Intercepted || !seen.tunnelled,
    )?;
    seen.expect("nothing forwarded", seen.forwarded == 0)
}

#[test]
fn latency_holds_an_exchange_back_and_changes_no_byte() {
    let stage = Stage::new();
    let rule = json!({ "mode": "latency", "delay_ms": 250 });
    check(
        &stage,
        &row(rule, Ask::Get("/bytes/5000"), |seen| {
            whole(seen)?;
            at_least(seen, 250)
        }),
        &Path::THROUGH,
    );
}

#[test]
fn the_journal_tells_how_long_a_delay_was() {
    for path in Path::THROUGH {
        let stage = Stage::new();
        let rule = json!({ "mode": "latency", "delay_ms": 120, "jitter_ms": 50 });
        let other = json!({ "mode": "latency", "delay_ms": 30 });
        stage.daemon.api.chaos(&json!({ NETWORK: [rule, other] }));
        let seen = see(&stage, path, Ask::Get("/json"));
        assert_eq!(seen.answer.status, 200);
        let injected = exchange(&stage, 1)["injected_ms"].as_f64().unwrap();
        // Delays add; what a busy machine adds to them is injected as well, as far as it goes.
        assert!(injected >= 150.0, "{path:?}: {injected} ms");
        let took = seen.took.as_secs_f64() * 1000.0;
        assert!(
            took >= injected.floor(),
            "{path:?}: {took} ms for {injected} ms"
        );
    }
}

#[test]
fn bandwidth_paces_the_answer_and_changes_no_byte() {
    let stage = Stage::new();
    // 80 kilobits are 10,000 bytes a second; half of 5,000 bytes may be a burst.
    let rule = json!({ "mode": "bandwidth", "rate_kbps": 80 });
    check(
        &stage,
        &row(rule, Ask::Get("/bytes/5000"), |seen| {
            whole(seen)?;
            at_least(seen, 250)
        }),
        &Path::THROUGH,
    );
}

#[test]
fn bandwidth_upwards_paces_the_request() {
    let stage = Stage::new();
    let rule = json!({ "mode": "bandwidth", "rate_kbps": 80, "direction": "up" });
    check(
        &stage,
        &row(rule, Ask::Upload(5000), |seen| {
            seen.expect(
                "every byte was sent on",
                seen.answer.body.ends_with(&pattern(5000)),
            )?;
            at_least(seen, 250)
        }),
        &Path::THROUGH,
    );
}

#[test]
fn slices_arrive_with_pauses_and_change_no_byte() {
    let stage = Stage::new();
    let rule =
        json!({ "mode": "slicer", "average_size": 500, "size_variation": 0, "delay_us": 30_000 });
    check(
        &stage,
        &row(rule, Ask::Get("/bytes/5000"), |seen| {
            whole(seen)?;
            at_least(seen, 9 * 30)
        }),
        &Path::THROUGH,
    );
}

#[test]
fn a_slow_close_keeps_the_end_of_the_message_back() {
    let stage = Stage::new();
    let rule = json!({ "mode": "slow_close", "delay_ms": 250 });
    // Only the last chunk tells that the body has ended.
    check(
        &stage,
        &row(rule, Ask::Get("/chunked/5000"), |seen| {
            whole(seen)?;
            at_least(seen, 250)
        }),
        &Path::THROUGH,
    );
}

#[test]
fn a_timeout_holds_and_then_closes_without_an_answer() {
    let stage = Stage::new();
    let rule = json!({ "mode": "timeout", "delay_ms": 250 });
    check(
        &stage,
        &row(rule, Ask::Get("/json"), |seen| {
            seen.expect(
                "no answer",
                seen.answer.status == 0 && seen.answer.body.is_empty(),
            )?;
            seen.expect(
                "FIN",
                seen.answer.broke == Some(End::Closed) || seen.handshake.is_some(),
            )?;
            seen.expect("nothing forwarded", seen.forwarded == 0)?;
            at_least(seen, 250)
        }),
        &Path::THROUGH,
    );
}

#[test]
fn a_reset_is_an_rst() {
    let stage = Stage::new();
    let rule = json!({ "mode": "reset_peer" });
    check(
        &stage,
        &row(rule, Ask::Get("/json"), |seen| {
            seen.expect("RST without an answer", seen.answer.status == 0)?;
            seen.expect("RST", seen.answer.broke == Some(End::Reset))
        }),
        &Path::THROUGH,
    );
}

#[test]
fn a_reset_after_bytes_comes_after_exactly_so_many() {
    let stage = Stage::new();
    let rule = json!({ "mode": "reset_peer", "after_bytes": 1234 });
    check(
        &stage,
        &row(rule, Ask::Get("/bytes/5000"), |seen| {
            seen.expect("1,234 bytes", seen.answer.body == pattern(5000)[..1234])?;
            seen.expect("RST", seen.answer.broke == Some(End::Reset))
        }),
        &Path::THROUGH,
    );
}

#[test]
fn the_second_request_of_a_connection_is_reset_and_the_first_is_not() {
    let stage = Stage::new();
    for path in Path::THROUGH {
        stage
            .daemon
            .api
            .chaos(&json!({ NETWORK: [{ "mode": "reset_peer", "after_calls": 1 }] }));
        let mut wire = stage.open(path);
        assert_eq!(wire.get("/json").status, 200, "{path:?}");
        let second = wire.get("/json");
        assert_eq!(
            (second.status, second.broke),
            (0, Some(End::Reset)),
            "{path:?}: {second:?}"
        );
    }
}

#[test]
fn a_connection_that_is_open_meets_rules_that_refuse_it_at_its_next_exchange() {
    for (mode, outcome) in [("refuse", "applied"), ("dns_failure", "applied")] {
        let stage = Stage::new();
        let mut wire = stage.open(Path::Intercepted);
        assert_eq!(wire.get("/json").status, 200, "{mode}");
        stage
            .daemon
            .api
            .chaos(&json!({ NETWORK: [{ "mode": mode }] }));
        let refused = wire.get("/json");
        assert_ne!(refused.status, 200, "{mode}: {refused:?}");
        let exchange = exchange(&stage, 2);
        assert_eq!(exchange["rules"][0]["mode"], mode, "{exchange}");
        assert_eq!(exchange["rules"][0]["outcome"], outcome, "{exchange}");
    }
}

#[test]
fn a_rule_that_does_not_fire_leaves_no_rst_behind() {
    let stage = Stage::new();
    stage
        .daemon
        .api
        .chaos(&json!({ NETWORK: [{ "mode": "reset_peer", "probability": 0 }] }));
    for path in Path::THROUGH {
        let mut wire = stage.open(path);
        wire.request("GET", "/json", &[("Connection", "close")], b"");
        assert_eq!(wire.response().status, 200, "{path:?}");
        assert_eq!(wire.rest().1, End::Closed, "{path:?}");
    }
}

#[test]
fn a_data_limit_cuts_after_exactly_so_many_bytes_with_a_fin() {
    let stage = Stage::new();
    for target in ["/bytes/5000", "/chunked/5000"] {
        let ask = if target == "/bytes/5000" {
            Ask::Get("/bytes/5000")
        } else {
            Ask::Get("/chunked/5000")
        };
        let rule = json!({ "mode": "limit_data", "bytes": 1234 });
        check(
            &stage,
            &row(rule, ask, |seen| {
                seen.expect("1,234 bytes", seen.answer.body == pattern(5000)[..1234])?;
                seen.expect("FIN", seen.answer.broke == Some(End::Closed))
            }),
            &Path::THROUGH,
        );
    }
}

#[test]
fn a_refusal_is_an_rst_before_any_answer_and_through_connect_before_its_200() {
    let stage = Stage::new();
    check(
        &stage,
        &row(json!({ "mode": "refuse" }), Ask::Get("/json"), refused),
        &Path::THROUGH,
    );
}

#[test]
fn a_refusal_that_waits_for_the_path_lets_connect_through() {
    let stage = Stage::new();
    let rule = json!({ "mode": "refuse", "match_url": "*/json" });
    stage.daemon.api.chaos(&json!({ NETWORK: [rule] }));
    let seen = see(&stage, Path::Intercepted, Ask::Get("/json"));
    assert!(seen.tunnelled, "{seen:#?}");
    assert_eq!(
        (seen.answer.status, seen.answer.broke),
        (0, Some(End::Reset)),
        "{seen:#?}"
    );
    assert_eq!(
        see(&stage, Path::Intercepted, Ask::Get("/tool"))
            .answer
            .status,
        200
    );
}

#[test]
fn a_dns_failure_is_a_502_that_says_so() {
    let stage = Stage::new();
    check(
        &stage,
        &row(
            json!({ "mode": "dns_failure" }),
            Ask::Get("/json"),
            |seen| {
                seen.expect("502", seen.answer.status == 502)?;
                seen.expect(
                    "no 200 to CONNECT",
                    seen.path != Path::Intercepted || !seen.tunnelled,
                )?;
                let problem: Value = serde_json::from_slice(&seen.answer.body).unwrap_or_default();
                let detail = problem["detail"]
                    .as_str()
                    .unwrap_or_default()
                    .to_lowercase();
                seen.expect("the name is blamed", detail.contains("resolve"))?;
                seen.expect("nothing forwarded", seen.forwarded == 0)
            },
        ),
        &Path::THROUGH,
    );
}

#[test]
fn a_tls_failure_fails_the_handshake_as_named() {
    let stage = Stage::new();
    let kinds: [(&str, Judge); 4] = [
        ("expired", |seen| blames(seen, &["expired"])),
        ("wrong_host", |seen| blames(seen, &["not valid for name"])),
        ("untrusted", |seen| {
            blames(seen, &["unknownissuer", "badsignature"])
        }),
        ("handshake", |seen| blames(seen, &["alert"])),
    ];
    for (kind, check_kind) in kinds {
        let rule = json!({ "mode": "tls_failure", "kind": kind });
        check(
            &stage,
            &row(rule, Ask::Get("/json"), check_kind),
            &[Path::Intercepted],
        );
    }
}

fn blames(seen: &Seen, words: &[&str]) -> Result<(), String> {
    let error = seen.handshake.as_deref().unwrap_or_default().to_lowercase();
    seen.expect(
        &words.join(" or "),
        words.iter().any(|word| error.contains(word)),
    )?;
    seen.expect("nothing forwarded", seen.forwarded == 0)
}

#[test]
fn a_tls_failure_without_a_handshake_is_bypassed() {
    let stage = Stage::new();
    stage
        .daemon
        .api
        .chaos(&json!({ NETWORK: [{ "mode": "tls_failure", "kind": "expired" }] }));
    assert_eq!(
        see(&stage, Path::Forward, Ask::Get("/json")).answer.status,
        200
    );
    let rules = exchange(&stage, 1)["rules"].clone();
    assert_eq!(rules[0]["outcome"], "bypassed", "{rules}");
}

fn injected_as_real(path: Path) {
    let stage = Stage::new();
    let mut wrong = Vec::new();
    for (rule, oracle) in [
        (
            json!({ "mode": "reset_peer", "match_url": "*/bytes/*" }),
            oracle::RESET,
        ),
        (
            json!({ "mode": "timeout", "delay_ms": 10, "match_url": "*/bytes/*" }),
            oracle::CLOSED,
        ),
        (
            json!({ "mode": "limit_data", "bytes": 1000 }),
            oracle::SHORT,
        ),
    ] {
        stage.daemon.api.chaos(&json!({ NETWORK: [rule] }));
        wrong.extend(oracle.disagreements(&stage.way(path, "/bytes/5000")));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_client_takes_a_failure_behind_a_forward_proxy_for_a_real_one() {
    injected_as_real(Path::Forward);
}

#[test]
fn every_client_takes_a_failure_inside_an_intercepted_tunnel_for_a_real_one() {
    injected_as_real(Path::Intercepted);
}

#[test]
fn every_client_takes_a_failure_behind_a_route_for_a_real_one() {
    injected_as_real(Path::Reverse);
}

#[test]
fn a_refused_connect_fails_in_every_client() {
    let stage = Stage::new();
    stage
        .daemon
        .api
        .chaos(&json!({ NETWORK: [{ "mode": "refuse" }] }));
    let way = stage.way(Path::Intercepted, "/json");
    let code = way.curl(&["--output", "/dev/null"]).status.code();
    assert_eq!(code, Some(56));
    for (script, field, expected) in [
        ("requests_get.py", "error", "ConnectionError"),
        ("httpx_get.py", "error", "ReadError"),
        ("aiohttp_get.py", "error", "ClientOSError"),
        ("fetch.mjs", "cause", "ECONNRESET"),
    ] {
        let told = way.ask(script, &[]);
        assert_eq!(told[field], expected, "{script}: {told}");
    }
}

#[test]
fn an_untrusted_leaf_fails_in_every_client() {
    let stage = Stage::new();
    let rule = json!({ "mode": "tls_failure", "kind": "untrusted" });
    stage.daemon.api.chaos(&json!({ NETWORK: [rule] }));
    let way = stage.way(Path::Intercepted, "/json");
    let code = way.curl(&["--output", "/dev/null"]).status.code();
    assert_eq!(code, Some(60));
    for (script, expected) in [
        ("requests_get.py", "SSLError"),
        ("httpx_get.py", "ConnectError"),
        ("aiohttp_get.py", "ClientConnectorCertificateError"),
    ] {
        let told = way.ask(script, &[]);
        assert_eq!(told["error"], expected, "{script}: {told}");
    }
    let told = way.ask("fetch.mjs", &[]);
    let cause = told["cause"].as_str().unwrap_or_default();
    assert!(
        cause.contains("CERT") || cause.contains("SIGNATURE"),
        "{told}"
    );
}
