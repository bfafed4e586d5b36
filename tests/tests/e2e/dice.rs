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
fn the_same_seed_draws_the_same_whatever_else_is_in_flight() {
    let stage = Stage::new();
    let chaos = tool(&json!([{ "mode": "error", "probability": 0.5 }]));
    let put = |seed: u64| {
        let activation = json!({ "chaos": chaos, "seed": seed });
        stage.daemon.api.activate("/v1/chaos", &activation);
    };
    put(7);
    let alone = statuses(&stage, 128);
    // Five standard deviations either way of a fair share.
    let hits = alone.iter().filter(|status| **status == 503).count();
    assert!(
        (36..=92).contains(&hits),
        "{hits} of 128 at probability 0.5"
    );
    put(8);
    assert_ne!(statuses(&stage, 128), alone, "another seed");
    put(7);
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
fn an_exchange_keeps_the_rules_it_began_with_and_the_next_sees_the_new_ones() {
    let stage = Stage::new();
    for path in Path::THROUGH {
        stage.daemon.api.end_chaos();
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
