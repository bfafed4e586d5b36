//! Readers of events that never read.

use serde_json::json;
use squall_tests::program::resident;
use squall_tests::{Path, Stage, Wire};

/// Exchanges of 4 KB each: more than the 16 MiB of events that are held.
const EXCHANGES: usize = 5_000;
const LONG: usize = 4_000;

const READERS: u64 = 40;

/// What one of them may cost: far less than what it could be sent.
const MAY_TAKE: u64 = 2 << 20;

/// Sends exchanges whose accounts are long.
fn exchange(stage: &Stage, count: usize) {
    let mut wire = stage.open(Path::Forward);
    let target = format!("/json?{}", "x".repeat(LONG));
    for _ in 0..count {
        assert_eq!(wire.get(&target).status, 200);
    }
}

/// A stream from the oldest event on, which is begun to be read and then is not.
fn reader(stage: &Stage) -> Wire {
    let mut wire = Wire::connect(stage.daemon.api.address);
    let from_the_oldest = [("Last-Event-ID", "0")];
    wire.request("GET", "/v1/events", &from_the_oldest, b"");
    wire.receive_until("event: exchange");
    wire
}

#[test]
fn readers_that_never_read_take_little_memory_and_hold_nobody_up() {
    let stage = Stage::with(
        &json!({ "store": { "exchanges": "none" } }),
        squall_tests::upstream::standard::serve,
    );
    exchange(&stage, EXCHANGES);
    // One that reads a little makes what is made once.
    drop(reader(&stage));
    let before = resident(stage.daemon.id());
    let readers: Vec<Wire> = (0..READERS).map(|_| reader(&stage)).collect();
    exchange(&stage, EXCHANGES / 10);
    let each = resident(stage.daemon.id()).saturating_sub(before) / READERS;
    println!("{} KiB a reader", each >> 10);
    assert!(each < MAY_TAKE, "{each} bytes a reader");
    // Whoever does read is served meanwhile.
    drop(reader(&stage));
    drop(readers);
}
