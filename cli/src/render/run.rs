//! Runs, for people.

use squall_journal::run::{CellRecord, CellState, DocumentVersion, RunRecord, RunState};

use super::paint::Paint;
use super::table::{Table, wrap};

/// Longest line of a reason.
const WIDTH: usize = 100;

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

/// A score as it is told: `87.5`, or nothing.
pub(crate) fn score(score: Option<f64>) -> String {
    score.map_or_else(String::new, |score| {
        format!("{}", (score * 10.0).round() / 10.0)
    })
}

/// A run, with what came of each cell.
pub(crate) fn whole(run: &RunRecord, paint: Paint) -> String {
    let mut lines = vec![head(run, paint), times(run)];
    for why in run.error.iter().chain(&run.reason) {
        lines.extend(wrap(why, WIDTH).iter().map(|line| paint.notable(line)));
    }
    lines.extend(run.score.map(|_| result(run, paint)));
    if !run.cells.is_empty() {
        lines.push(String::new());
        lines.extend(cells(&run.cells, paint).lines().map(str::to_owned));
    }
    if !run.documents.is_empty() {
        lines.push(String::new());
        lines.extend(run.documents.iter().map(|one| paint.faint(document(one))));
    }
    lines.push(String::new());
    lines.join("\n")
}

fn head(run: &RunRecord, paint: Paint) -> String {
    let name = paint.name(&run.name);
    let state = state(run.state, paint);
    format!("{name} {} {state}, seed {}", run.kind.as_str(), run.seed)
}

fn times(run: &RunRecord) -> String {
    let times = [
        ("asked for", Some(&run.created_at)),
        ("started", run.started_at.as_ref()),
        ("over", run.finished_at.as_ref()),
    ];
    let times = times
        .into_iter()
        .filter_map(|(word, at)| Some(format!("{word} {}", at?)));
    let times: Vec<_> = times.collect();
    format!("run {}, {}", run.id, times.join(", "))
}

fn result(run: &RunRecord, paint: Paint) -> String {
    let coverage = &run.coverage;
    format!(
        "score {} of 100: {} of {} cells under chaos met a fault; rules were applied {} times in {} askings",
        paint.strong(score(run.score)),
        coverage.exercised,
        coverage.chaos_cells,
        coverage.rules_applied,
        coverage.agent_invocations,
    )
}

fn document(document: &DocumentVersion) -> String {
    let DocumentVersion { kind, name, .. } = document;
    match document.version {
        Some(version) => format!("{kind} {name}, version {version}"),
        None => format!("{kind} {name}"),
    }
}

fn cells(cells: &[CellRecord], paint: Paint) -> String {
    let mut table = Table::new([
        "INVARIANT",
        "SCENARIO",
        "SEVERITY",
        "STATE",
        "FAULTS",
        "WHY",
    ]);
    for cell in cells {
        let state = match cell.state {
            CellState::Passed => paint.good("passed"),
            CellState::Failed => paint.bad("failed"),
            CellState::NotExercised => paint.notable("not exercised"),
            CellState::NotApplicable => paint.faint("not applicable"),
            CellState::Error => paint.bad("error"),
        };
        let why: String = cell
            .reason
            .iter()
            .flat_map(|why| why.chars())
            .take(WIDTH)
            .collect();
        table.row([
            cell.invariant.clone(),
            cell.scenario.clone(),
            cell.severity.clone(),
            state,
            cell.faults_applied.to_string(),
            why,
        ]);
    }
    table.render()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_run_is_told_with_its_cells_and_what_it_is_made_of() {
        let document = json!({
            "id": "0193a1b2c3d4000000010042", "kind": "chaos", "name": "checkout", "state": "failed",
            "score": 66.666, "passed": false,
            "coverage": { "cells": 2, "chaos_cells": 2, "exercised": 2, "rules_applied": 5, "agent_invocations": 4 },
            "scores": { "mutation_robustness": null, "chaos_resilience": 66.666, "contract_compliance": null,
                        "replay_regression": null, "overall": 66.666 },
            "cells": [
                { "invariant": "completes", "scenario": "api_outage", "severity": "critical", "state": "passed",
                  "reason": null, "faults_applied": 5, "mutation": null, "evidence": [] },
                { "invariant": "says-so", "scenario": "api_outage", "severity": "high", "state": "failed",
                  "reason": "`Book a flight`: the answer does not contain `unavailable`", "faults_applied": 5,
                  "mutation": null, "evidence": [] },
            ],
            "seed": 7, "created_at": "2026-11-22T12:00:00.000Z", "started_at": "2026-11-22T12:00:00.010Z",
            "finished_at": "2026-11-22T12:00:03.500Z", "error": null, "reason": null, "daemon": "d",
            "documents": [
                { "kind": "suite", "name": "checkout", "version": 3, "digest": "x" },
                { "kind": "profile", "name": "api_outage", "version": null, "digest": "y" },
            ],
        });
        let failed: RunRecord = serde_json::from_value(document).expect("a run");
        let errored = RunRecord {
            state: RunState::Errored,
            score: None,
            cells: Vec::new(),
            documents: Vec::new(),
            error: Some("its daemon ended in the middle of it".to_owned()),
            ..failed.clone()
        };
        let plain = Paint::plain();
        insta::assert_snapshot!(format!(
            "{}\n{}",
            whole(&failed, plain),
            whole(&errored, plain)
        ));
    }
}
