//! `squall load`: agents that retry in different ways, under one rate limit.

use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};
use squall_tests::daemon::{pid, start};
use squall_tests::upstream::standard;
use squall_tests::{Daemon, Upstream, Wire};

use crate::desk::{CommandResult, Desk};

/// How an agent retries a call that was limited.
#[derive(Debug, Clone, Copy)]
enum Retries {
    /// At once, many times.
    Naive,
    /// After the time that the response requests, and up to as much again.
    Backoff,
}

impl Retries {
    /// Attempts at one call. Those of `Backoff` make at most three calls per call needed: 12 of 16 pass at once.
    fn most(self) -> u64 {
        match self {
            Self::Naive => 41,
            Self::Backoff => 9,
        }
    }
}

/// Invocations of all agents, for the jitter.
static INVOCATIONS: AtomicU64 = AtomicU64::new(0);

/// An agent that makes one model call for each prompt. `carries`: whether its calls carry the scope.
fn agent(proxy: SocketAddr, model: SocketAddr, retries: Retries, carries: bool) -> Upstream {
    Upstream::start(None, move |mut connection| {
        while let Some(request) = connection.request() {
            let invocation = INVOCATIONS.fetch_add(1, Ordering::Relaxed);
            let baggage = request.header("baggage").filter(|_| carries);
            let headers = [
                ("content-type", "application/json"),
                ("baggage", baggage.unwrap_or("none=none")),
            ];
            let body =
                json!({ "model": "m", "messages": [{ "role": "user", "content": "Weather?" }] });
            let mut wire = Wire::connect(proxy);
            wire.prefix = format!("http://{model}");
            wire.host = model.to_string();
            let mut answered = None;
            for attempt in 1..=retries.most() {
                wire.request(
                    "POST",
                    "/v1/chat/completions",
                    &headers,
                    body.to_string().as_bytes(),
                );
                let response = wire.response();
                if response.status == 200 {
                    let text = &response.json()["choices"][0]["message"]["content"];
                    answered = text.as_str().map(str::to_owned);
                    break;
                }
                if let Retries::Backoff = retries {
                    let wait: u64 = response.header("retry-after").unwrap().parse().unwrap();
                    // Different for each invocation and attempt.
                    let jitter = (invocation * 37 + attempt * 61) % 100;
                    #[expect(
                        clippy::disallowed_methods,
                        reason = "what the agent waits is under test"
                    )]
                    std::thread::sleep(Duration::from_millis(wait * 10 * (100 + jitter)));
                }
            }
            let (status, body) = match answered {
                Some(text) => ("200 OK", json!({ "output": text })),
                None => (
                    "503 Service Unavailable",
                    json!({ "error": "the model is busy" }),
                ),
            };
            let body = body.to_string();
            if !connection.send(standard::whole(status, "application/json", body.as_bytes())) {
                return;
            }
        }
    })
}

/// A model that rejects every call after the first `passes` with 429.
fn model(passes: u64) -> Upstream {
    let served = AtomicU64::new(0);
    Upstream::start(None, move |mut connection| {
        while let Some(_request) = connection.request() {
            let (status, body) = if served.fetch_add(1, Ordering::Relaxed) < passes {
                let message = json!({ "role": "assistant", "content": "It is sunny." });
                let choices = json!([{ "index": 0, "finish_reason": "stop", "message": message }]);
                let usage =
                    json!({ "prompt_tokens": 9, "completion_tokens": 7, "total_tokens": 16 });
                (
                    "200 OK",
                    json!({ "id": "1", "object": "chat.completion", "created": 1, "model": "m",
                                   "choices": choices, "usage": usage }),
                )
            } else {
                (
                    "429 Too Many Requests",
                    json!({ "error": { "message": "busy", "code": "rate_limit_exceeded" } }),
                )
            };
            let body = body.to_string();
            if !connection.send(standard::whole(status, "application/json", body.as_bytes())) {
                return;
            }
        }
    })
}

/// The suite of the page, for an agent at this address.
fn suite(agent: &Upstream) -> String {
    let page = include_str!("../../../docs/load.md");
    let (_, rest) = page.split_once("```yaml\n").unwrap();
    let (suite, _) = rest.split_once("```").unwrap();
    suite.replace("127.0.0.1:8000", &agent.address.to_string())
}

/// The command of the page with more options, on this suite.
fn load(daemon: &Daemon, suite: &str, more: &[&str]) -> CommandResult {
    let desk = Desk::new();
    let file = desk.directory.path().join("suite.yaml");
    std::fs::write(file, suite).unwrap();
    let server = format!("http://{}", daemon.api.address);
    let command = ["load", "--concurrency", "1..8", "--server", &server];
    let mut command = desk.squall(&[&command, more].concat());
    command.output().unwrap().into()
}

/// The measured load in a run that was printed as JSON.
fn measured(result: &CommandResult) -> Value {
    let run: Value = serde_json::from_str(&result.out).unwrap_or_else(|_| panic!("{result:#?}"));
    run["load"].clone()
}

fn amplification(level: &Value) -> f64 {
    level["amplification"].as_f64().unwrap()
}

#[test]
fn naive_retries_thrash_under_a_rate_limit_and_break_where_backoff_converges() {
    let (daemon, model) = (Daemon::start(&json!({})), model(u64::MAX));
    let agents = [Retries::Naive, Retries::Backoff]
        .map(|retries| agent(daemon.proxy, model.address, retries, true));
    let [naive, backoff] = agents.each_ref().map(|agent| {
        let result = load(&daemon, &suite(agent), &["--json"]);
        // Without a minimum score, a run passes.
        result.ended(0);
        measured(&result)
    });
    let highest = |load: &Value| load["levels"][3].clone();
    let [worst, best] = [&naive, &backoff].map(highest);
    let amplified = [&worst, &best].map(amplification);
    eprintln!(
        "calls made per call needed: naive retries {:.2}, backoff with jitter {:.2}",
        amplified[0], amplified[1]
    );
    assert_eq!(naive["breaks_at"], 8, "{naive:#}");
    assert_eq!(worst["reaction"], "thrashes", "{naive:#}");
    assert!(worst["failures"]["limited"].as_u64() > Some(1), "{naive:#}");
    assert!(worst["limited_by_squall"].as_u64() > Some(80), "{naive:#}");
    assert_eq!(worst["limited_by_upstream"], 0, "{naive:#}");
    assert_eq!(backoff["breaks_at"], Value::Null, "{backoff:#}");
    assert_eq!(best["reaction"], "converges", "{backoff:#}");
    assert_eq!(best["success"], 100.0, "{backoff:#}");
    assert!(amplified[0] > 1.5 * amplified[1], "{amplified:?}");
    for load in [&naive, &backoff] {
        let levels = load["levels"].as_array().unwrap();
        let concurrency: Vec<_> = levels.iter().map(|level| &level["concurrency"]).collect();
        assert_eq!(concurrency, [1, 2, 4, 8]);
        // Lower levels stay below the limit: it is shared by a level, and full when the next begins.
        for level in &levels[..3] {
            assert_eq!(
                (&level["amplification"], &level["success"]),
                (&json!(1.0), &json!(100.0))
            );
            assert_eq!(
                (&level["calls"], &level["input_tokens"]),
                (&json!(10), &json!(90))
            );
        }
    }

    // The limit is the cause.
    for agent in &agents {
        let suite = suite(agent);
        let (unlimited, _) = suite.split_once("chaos:").unwrap();
        // A prompt may be there twice.
        let unlimited = unlimited.replace("[\"What", "[Once, Once, \"What");
        let result = load(&daemon, &unlimited, &["--json", "--min-score", "1"]);
        result.ended(0);
        let load = measured(&result);
        assert_eq!(load["breaks_at"], Value::Null, "{load:#}");
        let level = highest(&load);
        assert_eq!(
            (&level["amplification"], &level["reaction"]),
            (&json!(1.0), &Value::Null)
        );
    }

    // A minimum score fails the run, and people see where and why.
    let result = load(&daemon, &suite(&agents[0]), &["--min-score", "0.9"]);
    result.ended(1);
    eprintln!("{}", result.out);
    result.out_has("the agent breaks at 8 at once: ");
    result.out_has("; failed: ");
    result.out_has("8 at once: under the rate limit, the agent thrashes");
    assert!(result.closing().contains(" breaks_at=8 "), "{result:#?}");
}

#[test]
fn an_agent_whose_calls_carry_no_scope_is_measured_level_by_level() {
    let (daemon, model) = (Daemon::start(&json!({})), model(1));
    let agent = agent(daemon.proxy, model.address, Retries::Naive, false);
    let suite = suite(&agent);
    let (suite, _) = suite.split_once("chaos:").unwrap();
    let result = load(&daemon, suite, &["--json", "--per-level", "8"]);
    result.ended(0);
    let load = measured(&result);
    assert_eq!(load["calls_by_level"], true, "{load:#}");
    assert_eq!(load["breaks_at"], 1, "{load:#}");
    for level in load["levels"].as_array().unwrap() {
        assert_eq!(
            (&level["calls"], &level["calls_needed"]),
            (&json!(8 * 41), &json!(8))
        );
        assert_eq!(
            (&level["limited_by_upstream"], &level["limited_by_squall"]),
            (&json!(8 * 41), &json!(0))
        );
        assert_eq!(level["failures"]["errors"], 8, "{level:#}");
        assert_eq!(level["reaction"], "thrashes", "{level:#}");
    }
    let run: Value = serde_json::from_str(&result.out).unwrap();
    let warnings = run["warnings"].to_string();
    assert!(
        warnings.contains("they are counted for each level"),
        "{warnings}"
    );
}

#[test]
fn a_load_run_that_is_interrupted_prints_the_levels_that_ended() {
    let (daemon, desk) = (Daemon::start(&json!({})), Desk::new());
    let server = format!("http://{}", daemon.api.address);
    for options in [&["--json"][..], &[]] {
        let invocations = AtomicU64::new(0);
        // It answers the clean baseline and the ten invocations of the first level.
        let agent = Upstream::start(None, move |mut connection| {
            while connection.request().is_some() {
                if invocations.fetch_add(1, Ordering::SeqCst) >= 11 {
                    connection.hold();
                    return;
                }
                let body = json!({ "output": "It is sunny." }).to_string();
                let body = standard::whole("200 OK", "application/json", body.as_bytes());
                connection.send(body);
            }
        });
        let file = desk.directory.path().join("suite.yaml");
        std::fs::write(file, suite(&agent)).unwrap();
        let arguments = ["load", "--concurrency", "1..2", "--server", &server];
        let mut command = desk.squall(&[&arguments, options].concat());
        let (child, _, _lines) = start(command.stdout(Stdio::piped()));
        agent.wait_for_requests(12);
        kill_process(pid(&child), Signal::INT).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{output:?}");
        let out = String::from_utf8(output.stdout).unwrap();
        if options.is_empty() {
            assert!(out.contains("10 of 10, 100 %"), "{out}");
            continue;
        }
        let run: Value = serde_json::from_str(&out).expect(&out);
        assert_eq!(run["state"], "cancelled", "{run:#}");
        let levels = run["load"]["levels"].as_array().unwrap();
        assert_eq!(levels.len(), 1, "{run:#}");
        assert_eq!(levels[0]["invocations"], 10, "{run:#}");
    }
}
