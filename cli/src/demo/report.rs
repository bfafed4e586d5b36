//! The demo's results, for people and as a document.

use std::fmt::Write;
use std::path::Path;

use serde_json::{Value, json};
use squall_journal::record::{ExchangeRecord, Kind};
use squall_journal::run::RunRecord;

use super::TASK;
use super::findings::{self, Finding};
use super::trial::Trial;
use crate::render::exchange::{applied, ending, milliseconds};
use crate::render::paint::Paint;
use crate::render::run;
use crate::render::table::{Table, wrap};

/// Columns of running text.
const WIDTH: usize = 88;

/// The whole report. The first trial is the one without chaos.
pub(crate) fn text(trials: &[Trial], seed: u64, paint: Paint) -> String {
    let Some(clean) = trials.first() else {
        return String::new();
    };
    let judged: Vec<_> = trials
        .iter()
        .map(|trial| (trial, findings::of(trial, clean)))
        .collect();
    let mut text = format!("\n{}  {TASK}\n", paint.strong("Task  "));
    for (index, line) in wrap(&clean.answer, WIDTH - 8).iter().enumerate() {
        let heading = if index == 0 { "Answer" } else { "      " };
        let _ = writeln!(text, "{}  {line}", paint.strong(heading));
    }
    text.push('\n');
    text.push_str(&table(&judged, paint));
    let broken: Vec<_> = judged
        .iter()
        .flat_map(|(trial, findings)| findings.iter().map(move |finding| (*trial, finding)))
        .filter(|(_, finding)| !finding.good)
        .collect();
    if broken.is_empty() {
        text.push_str("\nThe agent did not break in any of these.\n");
    } else {
        let _ = writeln!(text, "\n{}", paint.strong("Where it broke, and why"));
        for (trial, finding) in broken {
            text.push_str(&broke(trial, finding, paint));
        }
    }
    let _ = writeln!(
        text,
        "\n{}",
        paint.faint(format!(
            "Seed {seed}: the same seed gives the same faults again."
        ))
    );
    text
}

/// What the agent is held to, below [`text`]: the contract's matrix, its closing line, where its report is.
pub(crate) fn held_to(judged: &RunRecord, report: Option<&Path>, paint: Paint) -> String {
    let mut text = format!(
        "\n{}\n\n{}\n{}\n",
        paint.strong(
            "What it is held to, with the same draws, and where a booking's outcome is unclear"
        ),
        run::matrix(judged, paint),
        run::closing(judged),
    );
    if let Some(report) = report {
        let _ = writeln!(text, "report: {}", report.display());
    }
    text
}

/// One row per trial.
fn table(judged: &[(&Trial, Vec<Finding>)], paint: Paint) -> String {
    let mut table = Table::new([
        "WEATHER",
        "WHAT THE AGENT DID",
        "CALLS",
        "TIME",
        "FAULTS APPLIED",
    ]);
    for (trial, findings) in judged {
        let mut did: Vec<String> = findings
            .iter()
            .map(|finding| marked(finding, paint))
            .collect();
        if did.is_empty() {
            did.push(paint.faint("nothing worth telling"));
        }
        let mut faults = faults(trial);
        if faults.is_empty() {
            faults.push(paint.faint("none"));
        }
        for line in 0..did.len().max(faults.len()) {
            let cell = |cells: &[String]| cells.get(line).cloned().unwrap_or_default();
            let first = |text: String| if line == 0 { text } else { String::new() };
            table.row([
                first(paint.name(&trial.profile)),
                cell(&did),
                first(trial.exchanges.len().to_string()),
                first(milliseconds(trial.took.as_secs_f64() * 1000.0)),
                cell(&faults),
            ]);
        }
    }
    table.render()
}

fn marked(finding: &Finding, paint: Paint) -> String {
    if finding.good {
        format!("{} {}", paint.good("✓"), finding.short)
    } else {
        format!("{} {}", paint.bad("✗"), paint.bad(&finding.short))
    }
}

/// "2 × `rate_limit` on the model", in the order they first struck.
fn faults(trial: &Trial) -> Vec<String> {
    let mut counted: Vec<(String, usize)> = Vec::new();
    for exchange in &trial.exchanges {
        for rule in applied(exchange) {
            let name = format!("{} on {}", rule.mode, target(exchange));
            match counted.iter_mut().find(|(known, _)| *known == name) {
                Some((_, count)) => *count += 1,
                None => counted.push((name, 1)),
            }
        }
    }
    counted
        .into_iter()
        .map(|(name, count)| format!("{count} × {name}"))
        .collect()
}

/// What an exchange was with.
fn target(exchange: &ExchangeRecord) -> &str {
    match (exchange.kind, &exchange.tool) {
        (Kind::Llm, _) => "the model",
        (_, Some(tool)) => tool,
        (_, None) => &exchange.url,
    }
}

/// A finding with its proof.
fn broke(trial: &Trial, finding: &Finding, paint: Paint) -> String {
    let mut text = format!(
        "\n  {}: {}\n",
        paint.name(&trial.profile),
        paint.bad(&finding.short)
    );
    for line in wrap(&finding.why, WIDTH) {
        let _ = writeln!(text, "  {line}");
    }
    let proof = trial
        .exchanges
        .iter()
        .filter(|exchange| finding.proof.contains(&exchange.id));
    for exchange in proof {
        let _ = writeln!(text, "    {}", proof_line(exchange, paint));
    }
    text
}

/// What went over the wire, and what a rule made of it.
fn proof_line(exchange: &ExchangeRecord, paint: Paint) -> String {
    let mut line = format!(
        "{} {} → {}",
        exchange.method,
        exchange.url,
        ending(exchange, paint)
    );
    if exchange.upstream_status.is_some() && exchange.upstream_status != exchange.status {
        let status = exchange.upstream_status.unwrap_or_default();
        let _ = write!(
            line,
            " {}",
            paint.faint(format!("(the service said {status})"))
        );
    }
    for rule in applied(exchange) {
        let _ = write!(line, "  {}", paint.notable(format!("⚡ {}", rule.mode)));
    }
    line
}

/// The same as one document.
pub(crate) fn document(trials: &[Trial], seed: u64) -> Value {
    let clean = trials.first();
    let trials: Vec<Value> = trials
        .iter()
        .map(|trial| {
            let findings = clean
                .map(|clean| findings::of(trial, clean))
                .unwrap_or_default();
            let findings: Vec<Value> = findings
                .iter()
                .map(|finding| {
                    json!({
                        "good": finding.good, "what": finding.short, "why": finding.why,
                        "exchanges": finding.proof,
                    })
                })
                .collect();
            json!({
                "profile": trial.profile, "answer": trial.answer, "complaint": trial.complaint,
                "took_ms": trial.took.as_millis(), "faults": faults(trial),
                "findings": findings, "exchanges": trial.exchanges,
            })
        })
        .collect();
    json!({ "task": TASK, "seed": seed, "trials": trials })
}

#[cfg(test)]
mod tests {
    use super::super::findings::tests::{exchange, trial};
    use super::*;

    #[test]
    fn the_report_says_what_happened_and_why() {
        let ask = "POST http://model.test/v1/chat/completions";
        let book = "POST http://booking.test/bookings";
        let done = "You are booked on DY1873. Have a good trip!";
        let clean = Trial {
            profile: "none".into(),
            ..trial(done, vec![exchange(1.0, book, Some(201), Some(201), None)])
        };
        let stormy = Trial {
            profile: "flaky_network".into(),
            ..trial(
                done,
                vec![
                    exchange(0.0, ask, Some(503), None, Some(("server_error", json!({})))),
                    exchange(0.5, ask, Some(200), Some(200), None),
                    exchange(1.0, book, None, Some(201), Some(("reset_peer", json!({})))),
                    exchange(2.0, book, Some(201), Some(201), None),
                ],
            )
        };
        insta::assert_snapshot!(text(&[clean, stormy], 42, Paint::plain()));
    }

    #[test]
    fn below_it_stands_what_the_agent_is_held_to() {
        let cell = |invariant: &str, scenario: &str, state: &str| {
            json!({ "invariant": invariant, "scenario": scenario, "severity": "critical", "state": state,
                    "reason": null, "faults_applied": 1, "mutation": null, "evidence": [] })
        };
        let judged = json!({
            "id": "0193a1b2c3d4000000010042", "kind": "contract", "name": "demo", "state": "failed",
            "score": 66.6, "passed": false, "coverage": squall_journal::run::CoverageRecord::default(),
            "scores": squall_journal::run::ScoresRecord::default(), "seed": 6,
            "created_at": "", "started_at": null, "finished_at": null, "error": null, "reason": null,
            "daemon": "", "documents": [],
            "cells": [cell("answers", "calm", "passed"), cell("answers", "flaky_network", "passed"),
                      cell("books-once", "calm", "not_exercised"),
                      cell("books-once", "flaky_network", "failed")],
        });
        let judged: RunRecord = serde_json::from_value(judged).expect("a run");
        let report = Path::new("squall-demo.html");
        insta::assert_snapshot!(held_to(&judged, Some(report), Paint::plain()));
    }
}
