//! The failures of a run, the worst first.

use squall_harness::report::exercised;
use squall_harness::run::{CellRecord, CellState, EvidenceRecord, RunRecord};

use crate::render::clean;
use crate::render::paint::Paint;
use crate::render::table::wrap;

/// Most cells of each kind that are shown.
const TOLD: usize = 5;

/// Longest line.
const WIDTH: usize = 96;

/// Most characters of a prompt or an answer.
const SAID: usize = 300;

/// Failed cells, cells that also fail without chaos, cells that could not be judged, and cells of invariants that were
/// exercised in no scenario.
pub(super) fn render(run: &RunRecord, paint: Paint) -> Vec<String> {
    let cells = &run.cells;
    let of = |wanted: fn(&CellRecord) -> bool| {
        let mut found: Vec<_> = cells.iter().filter(|cell| wanted(cell)).collect();
        found.sort_by_key(|cell| rank(&cell.severity));
        found
    };
    let mut lines = Vec::new();
    let mut part =
        |what: &str, found: &[&CellRecord], tell: fn(&CellRecord, Paint) -> Vec<String>| {
            if found.is_empty() {
                return;
            }
            lines.push(String::new());
            let more = found.len().saturating_sub(TOLD);
            let rest = match more {
                0 => String::new(),
                more => format!("; the worst {TOLD}, {more} more in the report"),
            };
            let cells = if found.len() == 1 { "cell" } else { "cells" };
            let heading = format!("{} {cells} {what}{rest}:", found.len());
            lines.push(paint.strong(heading));
            for cell in &found[..found.len() - more] {
                lines.extend(tell(cell, paint));
            }
        };
    let failed = of(|cell| cell.state == CellState::Failed && !cell.baseline_failed);
    part("failed", &failed, at_length);
    let without_chaos = of(|cell| cell.state == CellState::Failed && cell.baseline_failed);
    part("failing without chaos too (✗*)", &without_chaos, at_length);
    let unjudged = of(|cell| cell.state == CellState::Error);
    part("could not be judged", &unjudged, briefly);
    let mut unproved = of(|cell| cell.state == CellState::NotExercised);
    let exercised = exercised(run);
    unproved.retain(|cell| !exercised.contains(cell.invariant.as_str()));
    part(
        "not exercised, of invariants that were exercised in no scenario",
        &unproved,
        briefly,
    );
    lines
}

fn rank(severity: &str) -> usize {
    let known = ["critical", "high", "medium", "low"];
    known
        .iter()
        .position(|word| *word == severity)
        .unwrap_or(known.len())
}

fn briefly(cell: &CellRecord, paint: Paint) -> Vec<String> {
    let mut lines = vec![head(cell, paint)];
    lines.extend(indented(cell.reason.as_deref().unwrap_or_default()));
    lines
}

fn at_length(cell: &CellRecord, paint: Paint) -> Vec<String> {
    let mut lines = briefly(cell, paint);
    let Some(evidence) = guilty(cell) else {
        return lines;
    };
    let said = |word: &str, text: &str| {
        let text = clean(text, SAID);
        let told = wrap(&format!("{word}: {text}"), WIDTH);
        told.into_iter()
            .map(|line| paint.faint(format!("    {line}")))
    };
    lines.extend(said("prompt", &evidence.prompt));
    match &evidence.answer {
        Some(answer) => lines.extend(said("answer", answer)),
        None => lines.extend(said("answer", "none")),
    }
    let telling = evidence.telling.as_ref().or(evidence.exchanges.first());
    if let Some(exchange) = telling {
        let command = format!("squall explain {}", clean(exchange, 40));
        lines.push(format!("    {}", paint.name(command)));
    }
    lines
}

/// The invocation that the cell failed in.
fn guilty(cell: &CellRecord) -> Option<&EvidenceRecord> {
    let failed = |one: &&EvidenceRecord| one.state == Some(CellState::Failed);
    cell.evidence
        .iter()
        .find(failed)
        .or_else(|| cell.evidence.first())
}

fn head(cell: &CellRecord, paint: Paint) -> String {
    format!(
        "  {} under {} ({})",
        paint.name(clean(&cell.invariant, WIDTH)),
        clean(&cell.scenario, WIDTH),
        cell.severity
    )
}

fn indented(text: &str) -> Vec<String> {
    let lines = wrap(&clean(text, SAID), WIDTH);
    let lines = lines.into_iter().filter(|line| !line.is_empty());
    lines.map(|line| format!("    {line}")).collect()
}
