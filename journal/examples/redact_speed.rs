//! What redaction costs, in nanoseconds a kilobyte: `cargo run --release -p squall-journal --example redact_speed`.

#![expect(
    clippy::cast_precision_loss,
    clippy::disallowed_methods,
    reason = "figures for people, measured"
)]

use std::time::Instant;

use squall_journal::redact::Redactor;

fn main() {
    let redactor = Redactor::default();
    for (name, piece) in [
        (
            "prose",
            "The quick brown fox jumps over the lazy dog, task by task, as 12 others had done before. ",
        ),
        (
            "json",
            r#"{"id":"chatcmpl-9f2c","created":1763812345,"choices":[{"index":0,"delta":{"content":"Paris"}}]}"#,
        ),
        (
            "url",
            "https://api.example.com/v1/items/0193a1b2-c3d4-7000-8001-beefbeefbeef?page=2&limit=50&sort=asc&",
        ),
        (
            "hex",
            "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 ",
        ),
        (
            "keys",
            "key sk-proj-abcdefghijklmnop and AKIAIOSFODNN7EXAMPLE. ",
        ),
    ] {
        let text = piece.repeat(64 * 1024 / piece.len());
        let kilobytes = text.len() as f64 / 1024.0;
        let mut best = f64::MAX;
        for _ in 0..20 {
            let mut copy = text.clone();
            let began = Instant::now();
            redactor.text(&mut copy, usize::MAX);
            best = best.min(began.elapsed().as_nanos() as f64 / kilobytes);
        }
        println!("{name:6} {best:8.0} ns/KiB");
    }
    for url in [
        "https://api.openai.com/v1/chat/completions",
        "http://127.0.0.1:5001/search?q=cats&limit=10",
    ] {
        let began = Instant::now();
        for _ in 0..20_000 {
            let mut copy = url.to_owned();
            redactor.url(&mut copy, 4096);
            std::hint::black_box(copy);
        }
        let each = began.elapsed().as_nanos() as f64 / 20_000.0;
        println!("{each:8.0} ns {url}");
    }
}
