//! Chance that repeats, counters that count, swaps that take over at once.

use serde_json::{Value, json};
use squall_tests::{Path, Stage};

fn tool(rules: &Value) -> Value {
    json!({ "tool_faults": rules })
}

/// Statuses of GETs of `/item/N` for N in order, on one connection.
fn statuses(stage: &Stage, count: usize) -> Vec<u16> {
    let mut wire = stage.open(Path::Forward);
    (0..count)
        .map(|number| wire.get(&format!("/item/{number}")).status)
        .collect()
}

#[test]
fn the_same_seed_draws_the_same_and_another_does_not() {
    let stage = Stage::new();
    let chaos = tool(&json!([{ "mode": "error", "probability": 0.5 }]));
    let with_seed = |seed: u64| {
        stage
            .daemon
            .api
            .activate("/v1/chaos", &json!({ "chaos": chaos, "seed": seed }));
        statuses(&stage, 200)
    };
    let first = with_seed(7);
    assert_eq!(with_seed(7), first);
    assert_ne!(with_seed(8), first);
    // Five standard deviations either way of a fair share.
    let hits = first.iter().filter(|status| **status == 503).count();
    assert!(
        (65..=135).contains(&hits),
        "{hits} of 200 at probability 0.5"
    );
}

#[test]
fn draws_do_not_depend_on_what_else_is_in_flight() {
    let stage = Stage::new();
    let chaos = tool(&json!([{ "mode": "error", "probability": 0.5 }]));
    stage.daemon.api.chaos(&chaos);
    let alone = statuses(&stage, 128);
    stage.daemon.api.chaos(&chaos);
    let together = std::sync::Mutex::new(vec![0; 128]);
    std::thread::scope(|scope| {
        for worker in 0..16 {
            let (stage, together) = (&stage, &together);
            scope.spawn(move || {
                let mut wire = stage.open(Path::Forward);
                // In another order, and each worker its own share.
                for number in (0..128).rev().filter(|number| number % 16 == worker) {
                    let status = wire.get(&format!("/item/{number}")).status;
                    together.lock().unwrap()[number] = status;
                }
            });
        }
    });
    assert_eq!(together.into_inner().unwrap(), alone);
}

#[test]
fn a_probability_of_nothing_never_fires_and_of_one_always() {
    let stage = Stage::new();
    for (probability, expected) in [(0.0, 200), (1.0, 503)] {
        stage.daemon.api.chaos(&tool(
            &json!([{ "mode": "error", "probability": probability }]),
        ));
        assert!(
            statuses(&stage, 50)
                .iter()
                .all(|status| *status == expected),
            "{probability}"
        );
    }
}

#[test]
fn adding_and_editing_one_rule_moves_no_other() {
    let stage = Stage::new();
    let other = json!({ "id": "other", "mode": "error", "error_code": 418, "probability": 0.5 });
    stage.daemon.api.chaos(&tool(&json!([other])));
    let alone = statuses(&stage, 100);
    for first in [0.2, 0.6] {
        let rule = json!({ "id": "first", "mode": "slow", "delay_ms": 0, "probability": first });
        stage.daemon.api.chaos(&tool(&json!([rule, other])));
        assert_eq!(
            statuses(&stage, 100),
            alone,
            "beside a rule of probability {first}"
        );
    }
}

#[test]
fn a_retry_gets_a_draw_of_its_own() {
    let stage = Stage::new();
    stage
        .daemon
        .api
        .chaos(&tool(&json!([{ "mode": "error", "probability": 0.5 }])));
    let mut wire = stage.open(Path::Forward);
    let same: Vec<u16> = (0..64).map(|_| wire.get("/item").status).collect();
    assert!(same.contains(&200) && same.contains(&503), "{same:?}");
    let attempts: Vec<_> = stage
        .daemon
        .api
        .wait_for_exchanges(64)
        .iter()
        .map(|one| one["attempt"].as_u64())
        .collect();
    let expected: Vec<_> = (1..=64).map(Some).collect();
    assert_eq!(attempts, expected);
}

#[test]
fn triggers_count_in_order_of_arrival() {
    let stage = Stage::new();
    for (trigger, hits) in [
        (json!({ "after_calls": 3 }), vec![4, 5, 6, 7, 8]),
        (json!({ "every": 3 }), vec![3, 6]),
        (json!({ "limit": 2 }), vec![1, 2]),
        (json!({ "calls": [1, 3] }), vec![1, 3]),
        (json!({ "after_calls": 2, "limit": 2 }), vec![3, 4]),
    ] {
        let mut rule = json!({ "mode": "error" });
        rule.as_object_mut()
            .unwrap()
            .extend(trigger.as_object().unwrap().clone());
        stage.daemon.api.chaos(&tool(&json!([rule])));
        let expected: Vec<u16> = (1..=8)
            .map(|call| if hits.contains(&call) { 503 } else { 200 })
            .collect();
        assert_eq!(statuses(&stage, 8), expected, "{trigger}");
    }
}

#[test]
fn two_rules_and_two_scopes_count_apart() {
    let stage = Stage::new();
    let rules = tool(&json!([
        { "mode": "error", "error_code": 418, "calls": [2] },
        { "mode": "error", "error_code": 503, "calls": [3] },
    ]));
    stage.daemon.api.chaos(&rules);
    assert_eq!(statuses(&stage, 4), [200, 418, 503, 200]);
    for scope in ["one", "two"] {
        stage.daemon.api.chaos_in(scope, &rules);
    }
    for expected in [200, 418, 503, 200] {
        for scope in ["one", "two"] {
            let mut wire = stage.open(Path::Forward);
            wire.request("GET", "/item", &[("x-squall-scope", scope)], b"");
            assert_eq!(wire.response().status, expected, "{scope}");
        }
    }
}

#[test]
fn a_rule_is_armed_by_what_happened_before() {
    let stage = Stage::new();
    stage.daemon.api.chaos(&tool(&json!([
        { "mode": "error", "methods": ["GET"], "armed_by": { "methods": ["POST"] } },
    ])));
    let mut wire = stage.open(Path::Forward);
    assert_eq!(wire.get("/item").status, 200);
    assert_eq!(wire.post("/item", "{}").status, 200);
    assert_eq!(wire.get("/item").status, 503);
}

#[test]
fn an_exchange_keeps_the_rules_it_began_with_and_the_next_sees_the_new_ones() {
    let stage = Stage::new();
    for path in Path::THROUGH {
        stage.daemon.api.calm();
        let mut wire = stage.open(path);
        wire.request("GET", "/events", &[], b"");
        wire.receive_until("data: 1\n\n");
        stage
            .daemon
            .api
            .chaos(&json!({ "network_faults": [{ "mode": "reset_peer" }] }));
        stage.upstream(path).step();
        wire.receive_until("data: 2\n\n");
        stage.upstream(path).step();
        wire.receive_until("data: 3\n\n");
        wire.receive_until("0\r\n\r\n");
        assert_eq!(
            wire.get("/json").status,
            0,
            "{path:?}: the kept connection sees the new rules"
        );
    }
}

#[test]
fn an_edit_of_the_profile_in_force_takes_over_at_once_and_keeps_counters() {
    let stage = Stage::new();
    let api = stage.daemon.api;
    let put = |code: u16| {
        let profile = json!({ "name": "edited", "chaos": tool(&json!([
            { "id": "counted", "mode": "error", "error_code": 418, "after_calls": 2 },
            { "id": "edited", "mode": "error", "error_code": code, "match_url": "*/edited" },
        ])) });
        let answer = api.call("PUT", "/v1/profiles/edited", Some(&profile));
        assert!((200..300).contains(&answer.status), "{}", answer.text());
    };
    put(500);
    api.activate("/v1/chaos", &json!({ "profile": "edited", "seed": 1 }));
    let mut wire = stage.open(Path::Forward);
    assert_eq!(wire.get("/a").status, 200);
    assert_eq!(wire.get("/edited").status, 500);
    put(501);
    assert_eq!(
        wire.get("/b").status,
        418,
        "the untouched rule had seen two calls already"
    );
}

#[test]
fn metrics_move_while_a_faulted_stream_is_still_open() {
    let stage = Stage::new();
    stage
        .daemon
        .api
        .chaos(&json!({ "network_faults": [{ "mode": "latency", "delay_ms": 5 }] }));
    let mut wire = stage.open(Path::Forward);
    wire.request("GET", "/events", &[], b"");
    wire.receive_until("data: 1\n\n");
    let moved = stage
        .daemon
        .api
        .metric("squall_faults_injected_total", &["mode=\"latency\""]);
    assert!((moved - 1.0).abs() < 0.5, "{moved}");
}

#[test]
fn a_delay_of_nothing_disables_no_other_rule() {
    let stage = Stage::new();
    stage.daemon.api.chaos(&json!({
        "network_faults": [{ "mode": "latency", "delay_ms": 0 }],
        "tool_faults": [{ "mode": "error" }],
    }));
    assert_eq!(statuses(&stage, 3), [503, 503, 503]);
}

#[test]
fn the_first_rule_that_answers_wins_and_the_others_are_bypassed() {
    let stage = Stage::new();
    stage.daemon.api.chaos(&tool(&json!([
        { "id": "first", "mode": "error", "error_code": 418 },
        { "id": "second", "mode": "error", "error_code": 503 },
    ])));
    assert_eq!(statuses(&stage, 1), [418]);
    let rules = stage.daemon.api.wait_for_exchanges(1)[0]["rules"].clone();
    let outcome = |id| {
        rules
            .as_array()
            .unwrap()
            .iter()
            .find(|rule| rule["rule"] == id)
            .unwrap()["outcome"]
            .clone()
    };
    assert_eq!(
        (outcome("first"), outcome("second")),
        (json!("applied"), json!("bypassed")),
        "{rules}"
    );
}
