//! Runs, as text.

mod checks;
mod exploration;
mod failures;
mod figures;
mod matrix;

use squall_harness::report::{self, next_step};
use squall_harness::run::{CellState, DocumentVersion, RunRecord, RunState};
use squall_harness::scores::score_beside;

pub(crate) use self::checks::render as check;
pub(crate) use self::figures::compared;
use super::paint::Paint;
use super::table::wrap;
use super::{clean, output};

/// Longest line of a reason.
const WIDTH: usize = 100;

/// Most characters of a reason.
const REASON: usize = 1000;

/// A state in its colour.
pub(crate) fn state(state: RunState, paint: Paint) -> String {
    let word = state.as_str().replace('_', " ");
    match state {
        RunState::Passed => paint.good(word),
        RunState::Failed | RunState::Errored => paint.bad(word),
        RunState::Inconclusive | RunState::AwaitingApproval => paint.notable(word),
        RunState::Running => paint.strong(word),
        RunState::Queued | RunState::Cancelled => paint.faint(word),
    }
}

/// A score as text: `87.5`, or empty.
pub(crate) fn score(found: Option<f64>) -> String {
    found.map_or_else(String::new, report::score)
}

/// A run: its kind, the matrix, failures and figures.
pub(crate) fn whole(run: &RunRecord, paint: Paint) -> String {
    let mut lines = vec![head(run, paint), times(run)];
    for why in run.error.iter().chain(&run.reason) {
        let reason = wrap(&clean(why, REASON), WIDTH);
        lines.extend(reason.iter().map(|line| paint.notable(line)));
    }
    if let Some(step) = next_step(run) {
        lines.extend(wrap(step, WIDTH));
    }
    if !run.checks.is_empty() {
        lines.push(String::new());
        let of_suite = |at: &str| format!("`{at}` of the suite");
        let found = run.checks.iter();
        lines.extend(found.flat_map(|found| check(found, of_suite, paint)));
    }
    if run.load.is_some() {
        lines.push(String::new());
        lines.extend(figures::load(run));
    }
    if !run.cells.is_empty() {
        lines.push(String::new());
        if let Some(exploration) = &run.exploration {
            lines.extend(exploration::render(run, exploration, paint));
        } else {
            let matrix = matrix::render(&run.cells, output::width(), paint);
            lines.extend(matrix.lines().map(str::to_owned));
        }
        lines.extend(failures::render(run, paint));
    }
    if !run.replays.is_empty() {
        lines.push(String::new());
        let sessions = run.replays.iter().map(report::replayed);
        lines.extend(sessions.flat_map(|line| wrap(&clean(&line, REASON), WIDTH)));
    }
    if run.state.is_over() && (run.score.is_some() || !run.cells.is_empty()) {
        lines.push(String::new());
        lines.extend(figures::render(run, paint));
    }
    if !run.documents.is_empty() {
        lines.push(String::new());
        let made_with: Vec<_> = run.documents.iter().map(document).collect();
        lines.push(paint.faint(format!("made with: {}", made_with.join("; "))));
    }
    lines.push(String::new());
    lines.join("\n")
}

/// The last line, for people and scripts; it contains `name=value` pairs.
pub(crate) fn closing(run: &RunRecord) -> String {
    let count = |state: CellState| {
        let found = run.cells.iter().filter(|cell| cell.state == state);
        found.count()
    };
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "none".to_owned());
    let score = or_none(run.score.map(|found| match run.min_score {
        Some(minimum) => score_beside(found, minimum),
        None => report::score(found),
    }));
    let minimum = or_none(run.min_score.map(|minimum| minimum.to_string()));
    let line = format!(
        "squall {}: {} score={score} min_score={minimum} passed={} failed={} not_judged={} not_exercised={} not_applicable={}",
        run.kind.as_str(),
        run.state.as_str(),
        count(CellState::Passed),
        count(CellState::Failed),
        count(CellState::Error),
        count(CellState::NotExercised),
        count(CellState::NotApplicable),
    );
    let compared = run.comparison.as_ref().map(|comparison| {
        let (worse, fixed) = (comparison.newly_failing.len(), comparison.fixed.len());
        format!(" newly_failing={worse} fixed={fixed}")
    });
    let compared = compared.unwrap_or_default();
    let breaks = run.load.as_ref().map(|load| {
        let at = load.breaks_at.map(|level| level.to_string());
        format!(" breaks_at={}", or_none(at))
    });
    let breaks = breaks.unwrap_or_default();
    format!("{line}{compared}{breaks} seed={} run={}", run.seed, run.id)
}

fn head(run: &RunRecord, paint: Paint) -> String {
    let name = paint.name(clean(&run.name, WIDTH));
    let state = state(run.state, paint);
    format!("{name} {} {state}, seed {}", run.kind.as_str(), run.seed)
}

fn times(run: &RunRecord) -> String {
    let times = [
        ("requested", Some(&run.created_at)),
        ("started", run.started_at.as_ref()),
        ("ended", run.finished_at.as_ref()),
    ];
    let times = times
        .into_iter()
        .filter_map(|(word, at)| Some(format!("{word} {}", at?)));
    let times: Vec<_> = times.collect();
    format!("run {}, {}", run.id, times.join(", "))
}

fn document(document: &DocumentVersion) -> String {
    let DocumentVersion { kind, name, .. } = document;
    let name = clean(name, WIDTH);
    match document.shown_version() {
        Some(version) => format!("{kind} `{name}`, version {}", clean(&version, WIDTH)),
        None => format!("{kind} `{name}`"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn cell(
        invariant: &str,
        scenario: &str,
        severity: &str,
        state: &str,
        reason: Option<&str>,
    ) -> serde_json::Value {
        json!({ "invariant": invariant, "scenario": scenario, "severity": severity, "state": state,
                "reason": reason, "faults_applied": 5, "mutation": null, "evidence": [
            { "prompt": "Is it sunny?", "answer": "It is.", "latency_ms": 3.5, "exchanges": [], "state": "passed",
              "reason": null, "faults_applied": 0 },
            { "prompt": "Book a flight", "answer": "Done\u{1b}[2J!", "latency_ms": 3.5, "exchanges": ["0193e"],
              "state": "failed", "reason": reason, "faults_applied": 5, "fault": "error", "call": "book_flight" } ] })
    }

    /// A run with every state of a cell and all optional parts.
    fn failed() -> serde_json::Value {
        let mut known = cell(
            "valid-json",
            "clean",
            "low",
            "failed",
            Some("this is no JSON"),
        );
        known["baseline_failed"] = json!(true);
        json!({
            "id": "0193a1b2c3d4000000010042", "kind": "ci", "name": "checkout", "state": "failed",
            "score": 66.666, "passed": false, "min_score": 90.0,
            "coverage": { "cells": 6, "chaos_cells": 5, "exercised": 4, "rules_applied": 5, "agent_invocations": 4 },
            "scores": { "mutation_robustness": null, "chaos_resilience": 50.0, "contract_compliance": 71.4285,
                        "replay_regression": null, "overall": 66.666 },
            "cells": [
                cell("completes", "clean", "critical", "passed", None),
                cell("completes", "api_outage", "critical", "passed", None),
                known,
                cell("valid-json", "api_outage", "low", "not_exercised", Some("no planned fault was applied")),
                cell("says-so", "clean", "high", "not_applicable", None),
                cell("says-so", "api_outage", "high", "failed",
                     Some("`Book a flight`: the answer does not contain `unavailable`")),
                cell("no-secret", "api_outage", "critical", "failed", Some("a key was sent to evil.example")),
                cell("no-secret", "clean", "critical", "error", Some("the baseline could not be had")),
            ],
            "recoveries": [{ "family": "tool_faults", "passed": 3, "judged": 4, "rate": 75.0, "low": 30.06,
                             "high": 95.44 }],
            "stability": { "repeats": 3, "judged": 4, "always_passed": 2, "flaky": 1, "pass_k": 50.0 },
            "crew": [{ "from": "planner", "to": "worker\u{1b}[2J", "calls": 4, "failed": 2, "faults": 2 }],
            "comparison": { "baseline": "0192", "score_before": 80.0, "fixed": [], "changed": [], "newly_failing": [
                { "invariant": "says-so", "scenario": "api_outage", "before": "passed", "after": "failed" },
                { "invariant": "no-secret", "scenario": "api_outage", "before": null, "after": "failed" } ] },
            "warnings": ["the agent keeps state and is not reset"],
            "shrunk": [
                { "invariant": "no-secret", "scenario": "api_outage", "of": 5, "invocations": 64, "is_minimal": false,
                  "needed": ["503 on the 1st call of book_flight", "latency on the 2nd call of book_flight"] },
                { "invariant": "says-so", "scenario": "api_outage", "of": 5, "invocations": 1, "is_minimal": true,
                  "needed": [] },
            ],
            "seed": 7, "created_at": "2026-11-22T12:00:00.000Z", "started_at": "2026-11-22T12:00:00.010Z",
            "finished_at": "2026-11-22T12:00:03.500Z", "error": null, "reason": null, "daemon": "d",
            "documents": [
                { "kind": "suite", "name": "checkout", "version": 3, "digest": "x" },
                { "kind": "profile", "name": "api_outage", "version": null, "digest": "y" },
            ],
        })
    }

    #[test]
    fn a_run_has_a_matrix_and_its_failures() {
        let failed: RunRecord = serde_json::from_value(failed()).expect("a run");
        let errored = RunRecord {
            state: RunState::Errored,
            score: None,
            cells: Vec::new(),
            documents: Vec::new(),
            comparison: None,
            error: Some("its daemon ended in the middle of it".to_owned()),
            ..failed.clone()
        };
        let plain = Paint::plain();
        let texts = [&failed, &errored].map(|run| format!("{}{}", whole(run, plain), closing(run)));
        insta::assert_snapshot!(texts.join("\n\n---\n"));
    }

    #[test]
    fn scenarios_that_are_too_many_for_a_line_are_in_tables_below() {
        let mut document = failed();
        let scenarios = (1..=9).map(|number| format!("a scenario of number {number}"));
        let cells = scenarios.map(|name| cell("completes", &name, "high", "passed", None));
        document["cells"] = cells.collect();
        let run: RunRecord = serde_json::from_value(document).expect("a run");
        for (width, tables) in [(40, 9), (80, 5), (200, 2), (400, 1)] {
            let text = matrix::render(&run.cells, width, Paint::plain());
            let mut lines = text.lines().map(|line| line.chars().count());
            assert!(width == 40 || lines.all(|line| line <= width), "{text}");
            assert_eq!(text.matches("SEVERITY").count(), tables, "{width}: {text}");
        }
        insta::assert_snapshot!(matrix::render(&run.cells, 80, Paint::plain()));
    }
}
