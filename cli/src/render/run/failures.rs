//! The failures of a run, the worst first.

use squall_harness::count::count;
use squall_harness::report::{exercised, severity_rank};
use squall_harness::run::{CellRecord, CellState, EvidenceRecord, RunRecord};

use crate::render::clean;
use crate::render::paint::Paint;
use crate::render::table::wrap;

/// Most cells of each kind that are shown.
const MOST_CELLS: usize = 5;

/// Longest line.
const WIDTH: usize = 96;

/// Most characters of a prompt or an answer.
const MOST_TEXT: usize = 300;

/// Failed cells, cells that also fail without chaos, cells that could not be judged, and cells of invariants that were
/// exercised in no scenario.
pub(super) fn render(run: &RunRecord, paint: Paint) -> Vec<String> {
    let of = |state: CellState, fails_without_chaos: bool| {
        let is_of =
            |cell: &&CellRecord| cell.state == state && cell.baseline_failed == fails_without_chaos;
        let mut found: Vec<_> = run.cells.iter().filter(is_of).collect();
        found.sort_by_key(|cell| severity_rank(cell).unwrap_or(usize::MAX));
        found
    };
    let mut lines = Vec::new();
    let mut part =
        |what: &str, found: &[&CellRecord], show: fn(&CellRecord, Paint) -> Vec<String>| {
            if found.is_empty() {
                return;
            }
            let more = found.len().saturating_sub(MOST_CELLS);
            let rest = match more {
                0 => String::new(),
                more => format!("; the worst {MOST_CELLS}, {more} more in the report"),
            };
            let heading = format!("{} {what}{rest}:", count(found.len(), "cell"));
            lines.extend([String::new(), paint.strong(heading)]);
            lines.extend(
                found[..found.len() - more]
                    .iter()
                    .flat_map(|cell| show(cell, paint)),
            );
        };
    part("failed", &of(CellState::Failed, false), at_length);
    part(
        "failing without chaos too (✗*)",
        &of(CellState::Failed, true),
        at_length,
    );
    let mut errors = of(CellState::Error, false);
    errors.extend(of(CellState::Error, true));
    part("could not be judged", &errors, briefly);
    let mut idle = of(CellState::NotExercised, false);
    let exercised = exercised(run);
    idle.retain(|cell| !exercised.contains(cell.invariant.as_str()));
    part(
        "not exercised, of invariants that were exercised in no scenario",
        &idle,
        briefly,
    );
    lines
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
    let answer = evidence.answer.as_deref().unwrap_or("none");
    for (word, text) in [("prompt", &*evidence.prompt), ("answer", answer)] {
        let text = wrap(&format!("{word}: {}", clean(text, MOST_TEXT)), WIDTH);
        let text = text.into_iter();
        lines.extend(text.map(|line| paint.faint(format!("    {line}"))));
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
    let lines = wrap(&clean(text, MOST_TEXT), WIDTH);
    let lines = lines.into_iter().filter(|line| !line.is_empty());
    lines.map(|line| format!("    {line}")).collect()
}
