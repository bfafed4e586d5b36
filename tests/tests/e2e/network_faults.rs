//! Every network fault, as a client sees it, on every path.

use serde_json::{Value, json};
use squall_tests::upstream::standard::pattern;
use squall_tests::{End, Path, Stage};

use crate::matrix::{Ask, Seen, check, exchange, on_every_path, see};

const NETWORK: &str = "network_faults";

fn whole(seen: &Seen) -> Result<(), String> {
    let body = pattern(5000);
    seen.expect(
        "every byte arrived",
        seen.answer.body == body && seen.answer.broke.is_none(),
    )
}

fn late_and_whole(seen: &Seen) -> Result<(), String> {
    whole(seen)?;
    late(seen)
}

fn late(seen: &Seen) -> Result<(), String> {
    seen.expect("it took 250 ms", seen.took.as_millis() >= 250)
}

fn cut(seen: &Seen, end: End) -> Result<(), String> {
    seen.expect("1,234 bytes", seen.answer.body == pattern(5000)[..1234])?;
    seen.expect("how it ended", seen.answer.broke == Some(end))
}

#[test]
#[rustfmt::skip]
fn what_slows_an_exchange_changes_no_byte() {
    on_every_path(
        NETWORK,
        [
            (json!({ "mode": "latency", "delay_ms": 250 }), Ask::Get("/bytes/5000"), late_and_whole),
            // 80 kilobits are 10,000 bytes a second; half of 5,000 bytes may be a burst.
            (json!({ "mode": "bandwidth", "rate_kbps": 80 }), Ask::Get("/bytes/5000"), late_and_whole),
            (
                json!({ "mode": "bandwidth", "rate_kbps": 80, "direction": "up" }),
                Ask::Upload(5000),
                |seen| {
                    let sent_on = seen.answer.body.ends_with(&pattern(5000));
                    seen.expect("every byte was sent on", sent_on)?;
                    late(seen)
                },
            ),
            (
                json!({ "mode": "slicer", "average_size": 500, "size_variation": 0, "delay_us": 30_000 }),
                Ask::Get("/bytes/5000"),
                late_and_whole,
            ),
            // Only the last chunk tells that the body has ended.
            (json!({ "mode": "slow_close", "delay_ms": 250 }), Ask::Get("/chunked/5000"), late_and_whole),
        ],
    );
}

#[test]
fn what_breaks_an_exchange_ends_it_as_named_and_after_exactly_so_many_bytes() {
    on_every_path(
        NETWORK,
        [
            (
                json!({ "mode": "timeout", "delay_ms": 250 }),
                Ask::Get("/json"),
                |seen| {
                    let silent = seen.answer.status == 0 && seen.answer.body.is_empty();
                    seen.expect("no answer", silent)?;
                    let fin = seen.answer.broke == Some(End::Closed) || seen.handshake.is_some();
                    seen.expect("FIN", fin)?;
                    seen.expect("nothing forwarded", seen.forwarded == 0)?;
                    late(seen)
                },
            ),
            (json!({ "mode": "reset_peer" }), Ask::Get("/json"), |seen| {
                seen.expect("no answer", seen.answer.status == 0)?;
                seen.expect("RST", seen.answer.broke == Some(End::Reset))
            }),
            (
                json!({ "mode": "reset_peer", "after_bytes": 1234 }),
                Ask::Get("/bytes/5000"),
                |seen| cut(seen, End::Reset),
            ),
            (
                json!({ "mode": "limit_data", "bytes": 1234 }),
                Ask::Get("/bytes/5000"),
                |seen| cut(seen, End::Closed),
            ),
            (
                json!({ "mode": "limit_data", "bytes": 1234 }),
                Ask::Get("/chunked/5000"),
                |seen| cut(seen, End::Closed),
            ),
        ],
    );
}

#[test]
fn what_fails_before_the_upstream_is_reached_fails_before_the_200_of_a_connect() {
    on_every_path(
        NETWORK,
        [
            (json!({ "mode": "refuse" }), Ask::Get("/json"), |seen| {
                let silent = seen.answer.head.is_empty() && seen.answer.body.is_empty();
                seen.expect("no answer at all", silent)?;
                seen.expect("RST", seen.answer.broke == Some(End::Reset))?;
                untouched(seen)
            }),
            (
                json!({ "mode": "dns_failure" }),
                Ask::Get("/json"),
                |seen| {
                    seen.expect("502", seen.answer.status == 502)?;
                    let problem: Value =
                        serde_json::from_slice(&seen.answer.body).unwrap_or_default();
                    let detail = problem["detail"].to_string().to_lowercase();
                    seen.expect("the name is blamed", detail.contains("resolve"))?;
                    untouched(seen)
                },
            ),
        ],
    );
}

fn untouched(seen: &Seen) -> Result<(), String> {
    let no_tunnel = seen.path != Path::Intercepted || !seen.tunnelled;
    seen.expect("no 200 to CONNECT", no_tunnel)?;
    seen.expect("nothing forwarded", seen.forwarded == 0)
}

#[test]
fn a_tls_failure_fails_the_handshake_as_named() {
    let failing = |kind: &str| json!({ "mode": "tls_failure", "kind": kind });
    check(
        NETWORK,
        [
            (failing("expired"), Ask::Get("/json"), |seen| {
                blames(seen, &["expired"])
            }),
            (failing("wrong_host"), Ask::Get("/json"), |seen| {
                blames(seen, &["not valid for name"])
            }),
            (failing("untrusted"), Ask::Get("/json"), |seen| {
                blames(seen, &["unknownissuer", "badsignature"])
            }),
            (failing("handshake"), Ask::Get("/json"), |seen| {
                blames(seen, &["alert"])
            }),
        ],
        &[Path::Intercepted],
    );
}

fn blames(seen: &Seen, words: &[&str]) -> Result<(), String> {
    let error = seen.handshake.as_deref().unwrap_or_default().to_lowercase();
    let blamed = words.iter().any(|word| error.contains(word));
    seen.expect(&words.join(" or "), blamed)?;
    seen.expect("nothing forwarded", seen.forwarded == 0)
}

#[test]
fn an_open_connection_meets_rules_that_refuse_it_at_its_next_exchange() {
    let stage = Stage::new();
    for (number, mode) in [(2, "refuse"), (4, "dns_failure")] {
        stage.daemon.api.end_chaos();
        let mut wire = stage.open(Path::Intercepted);
        assert_eq!(wire.get("/json").status, 200, "{mode}");
        let chaos = json!({ NETWORK: [{ "mode": mode }] });
        stage.daemon.api.chaos(&chaos);
        let refused = wire.get("/json");
        assert_ne!(refused.status, 200, "{mode}: {refused:?}");
        let rule = &exchange(&stage, number)["rules"][0];
        let found = (&rule["mode"], &rule["outcome"]);
        assert_eq!(found, (&json!(mode), &json!("applied")));
    }
}

#[test]
fn a_refusal_that_waits_for_the_path_lets_connect_through() {
    let stage = Stage::new();
    let rule = json!({ "mode": "refuse", "match_url": "*/json" });
    stage.daemon.api.chaos(&json!({ NETWORK: [rule] }));
    let seen = see(&stage, Path::Intercepted, Ask::Get("/json"));
    assert!(seen.tunnelled, "{seen:#?}");
    let ended = (seen.answer.status, seen.answer.broke);
    assert_eq!(ended, (0, Some(End::Reset)), "{seen:#?}");
    let other = see(&stage, Path::Intercepted, Ask::Get("/tool"));
    assert_eq!(other.answer.status, 200);
}

#[test]
fn a_rule_that_does_not_fire_leaves_no_rst_behind() {
    let stage = Stage::new();
    let never = json!({ "mode": "reset_peer", "probability": 0 });
    stage.daemon.api.chaos(&json!({ NETWORK: [never] }));
    for path in Path::THROUGH {
        let mut wire = stage.open(path);
        wire.request("GET", "/json", &[("Connection", "close")], b"");
        assert_eq!(wire.response().status, 200, "{path:?}");
        assert_eq!(wire.rest().1, End::Closed, "{path:?}");
    }
}
