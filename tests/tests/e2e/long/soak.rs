//! One daemon, many minutes: nothing grows, nothing stays behind.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use squall_tests::program::resident;
use squall_tests::upstream::standard::{JSON, pattern};
use squall_tests::{Path, Stage};

const PROFILES: [&str; 6] = [
    "none",
    "flaky_network",
    "rate_limit_storm",
    "api_outage",
    "mid_stream_failure",
    "brownout",
];

/// Growth allowed between the first fifth of the run and its end.
const MAY_GROW: u64 = 24 << 20;

#[test]
#[ignore = "takes minutes; run by scripts/soak"]
#[expect(
    clippy::disallowed_methods,
    reason = "profiles change at a steady pace"
)]
fn mixed_traffic_under_changing_chaos_leaves_nothing_behind() {
    let seconds = std::env::var("SQUALL_SOAK_SECONDS")
        .ok()
        .and_then(|text| text.parse().ok());
    let whole = Duration::from_secs(seconds.unwrap_or(600));
    let stage = Stage::new();
    let (stop, count) = (AtomicBool::new(false), AtomicU64::new(0));
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for worker in 0..8 {
            let (stage, stop, count) = (&stage, &stop, &count);
            scope.spawn(move || {
                let mut number = worker;
                while !stop.load(Ordering::Relaxed) {
                    number += 1;
                    traffic(stage, number);
                    count.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let mut early = None;
        let mut turn = 0;
        while begun.elapsed() < whole {
            turn += 1;
            let profile = PROFILES[turn % PROFILES.len()];
            stage
                .daemon
                .api
                .activate("/v1/chaos", &json!({ "profile": profile, "seed": turn }));
            std::thread::sleep(Duration::from_secs(1));
            if early.is_none() && begun.elapsed() > whole / 5 {
                early = Some(resident(stage.daemon.id()));
            }
        }
        stop.store(true, Ordering::Relaxed);
        let (early, late) = (early.unwrap(), resident(stage.daemon.id()));
        let turns = count.load(Ordering::Relaxed);
        println!(
            "{turns} turns; resident {} → {} MiB",
            early >> 20,
            late >> 20
        );
        assert!(
            late.saturating_sub(early) < MAY_GROW,
            "grew from {early} to {late} bytes"
        );
    });
    stage.daemon.api.end_chaos();
    for path in Path::THROUGH {
        assert_eq!(
            stage.open(path).get("/json").text(),
            JSON,
            "{path:?} after the chaos"
        );
    }
    stage.daemon.api.wait("closed connections", || {
        let open = stage
            .daemon
            .api
            .metric("squall_open_connections", &["side=\"agent\""]);
        (open < 1.5).then_some(())
    });
}

/// One turn of a client's: whatever comes of it under chaos is fine.
fn traffic(stage: &Stage, number: usize) {
    let path = Path::THROUGH[number % Path::THROUGH.len()];
    let mut wire = stage.daemon.connect();
    if path == Path::Intercepted {
        if wire.open_tunnel(&stage.secure_authority(), "").status != 200 {
            return;
        }
        let Ok(encrypted) = wire.encrypt(&stage.daemon.ca, "localhost") else {
            return;
        };
        wire = encrypted;
        wire.host = stage.secure_authority();
    } else {
        wire = stage.open(path);
    }
    let chat = r#"{"model":"m","stream":true,"messages":[]}"#;
    for round in 0..8 {
        let answer = match (number + round) % 5 {
            0 => wire.get("/json"),
            1 => wire.get("/chunked/40000"),
            2 => wire.post("/v1/chat/completions", chat),
            3 => wire.post("/tool", "{\"n\":1}"),
            _ => wire.get("/gzip"),
        };
        if answer.broke.is_some() || answer.status == 0 {
            return;
        }
    }
    // Now and then somebody leaves in the middle.
    if number.is_multiple_of(7) {
        wire.request("GET", "/bytes/3000000", &[], b"");
        wire.receive(1000);
    }
}

#[test]
#[ignore = "takes a minute; run by scripts/soak"]
fn a_body_of_1_gb_passes_both_ways_with_flat_memory() {
    const WHOLE: usize = 1 << 30;
    let stage = Stage::with(&json!({}), |mut connection| {
        let piece = pattern(1 << 20);
        while let Some(request) = connection.head() {
            let mut left = request
                .header("content-length")
                .and_then(|text| text.parse().ok())
                .unwrap_or(0);
            while left > 0 {
                let read = connection.receive().len();
                if read == 0 {
                    return;
                }
                left -= read.min(left);
            }
            connection.send(format!(
                "HTTP/1.1 200 OK\r\ncontent-length: {WHOLE}\r\n\r\n"
            ));
            for _ in 0..WHOLE / piece.len() {
                if !connection.send(&piece) {
                    return;
                }
            }
        }
    });
    let piece = pattern(1 << 20);
    for path in Path::THROUGH {
        let mut wire = stage.open(path);
        wire.request("POST", "/", &[("Content-Length", &WHOLE.to_string())], b"");
        for _ in 0..WHOLE / piece.len() {
            wire.send(&piece);
        }
        let before = resident(stage.daemon.id());
        wire.receive_until("\r\n\r\n");
        let mut most = before;
        let mut read = 0;
        while read < WHOLE {
            let bytes = wire.receive(1 << 20);
            assert!(!bytes.is_empty(), "{path:?}: it ended after {read}");
            read += bytes.len();
            most = most.max(resident(stage.daemon.id()));
        }
        assert_eq!(read, WHOLE, "{path:?}");
        println!(
            "{path:?}: resident {} → {} MiB at most",
            before >> 20,
            most >> 20
        );
        assert!(
            most - before < 16 << 20,
            "{path:?}: grew from {before} to {most} bytes"
        );
    }
}
