//! The figures of a run: scores, coverage, recoveries, repeats, and the comparison with a baseline.

use squall_harness::report::{self, components, coverage, repeats, score};
use squall_harness::run::{CellChange, CellState, ComparisonRecord, RunRecord};

use crate::render::clean;
use crate::render::paint::Paint;
use crate::render::table::{Table, wrap};

/// Longest line.
const WIDTH: usize = 100;

/// Most cells in the comparison.
const MOST_CELLS: usize = 5;

/// Most rows of distributions.
const MOST_ROWS: usize = 24;

/// Most characters of a name.
const NAME: usize = 60;

pub(super) fn render(run: &RunRecord, paint: Paint) -> Vec<String> {
    let mut lines = vec![result(run, paint)];
    let mut parts = components(&run.scores);
    parts.retain(|(name, _)| *name != "overall");
    if parts.len() > 1 {
        let parts = parts.into_iter();
        let parts: Vec<_> = parts
            .map(|(name, found)| format!("{name} {}", score(found)))
            .collect();
        lines.push(format!("  {}", parts.join(", ")));
    }
    lines.extend(repeats(run).into_iter().map(|line| format!("  {line}")));
    lines.extend(table(report::DISTRIBUTION, &report::distributions(run)));
    lines.extend(table(report::CREW, &report::crew(run)));
    if let Some(comparison) = &run.comparison {
        lines.extend(compared(comparison, run.score, paint));
    }
    for warning in &run.warnings {
        lines.push(format!(
            "{} {}",
            paint.notable("warning:"),
            clean(warning, 400)
        ));
    }
    lines
}

/// The levels of a load run, and where the agent breaks.
pub(super) fn load(run: &RunRecord) -> Vec<String> {
    let lines = report::load_lines(run);
    let lines = lines.iter().flat_map(|line| wrap(line, WIDTH));
    table(report::LOAD, &report::load_levels(run))
        .into_iter()
        .chain(lines)
        .collect()
}

fn result(run: &RunRecord, paint: Paint) -> String {
    let scored = run.score.map_or_else(
        || "no score".to_owned(),
        |found| format!("score {} of 100", paint.strong(score(found))),
    );
    let minimum = run.min_score.map_or_else(String::new, |minimum| {
        format!(" (minimum {})", score(minimum))
    });
    format!("{scored}{minimum}: {}", coverage(run))
}

/// A table of texts, indented.
fn table<const N: usize>(columns: [&str; N], rows: &[[String; N]]) -> Vec<String> {
    if rows.is_empty() {
        return Vec::new();
    }
    let mut table = Table::new(columns.map(str::to_uppercase));
    for row in rows.iter().take(MOST_ROWS) {
        table.row(row.each_ref().map(|cell| clean(cell, NAME)));
    }
    let left_out = rows.len().saturating_sub(MOST_ROWS);
    let left_out = (left_out > 0).then(|| format!("  {left_out} more in the report"));
    let table = table.render();
    let lines = table.lines().map(|line| format!("  {line}"));
    lines.chain(left_out).collect()
}

/// A comparison with an earlier run; `now` is the later score.
pub(crate) fn compared(
    comparison: &ComparisonRecord,
    now: Option<f64>,
    paint: Paint,
) -> Vec<String> {
    let before = comparison.score_before;
    let head = format!(
        "compared with run {} (score {}): {} newly failing, {} fixed, {} other changes",
        clean(&comparison.baseline, 40),
        before.map_or_else(|| "none".to_owned(), score),
        comparison.newly_failing.len(),
        comparison.fixed.len(),
        comparison.changed.len(),
    );
    let is_regression = comparison.is_regression(now);
    let head = if is_regression { paint.bad(head) } else { head };
    let newly = comparison.newly_failing.iter().take(MOST_CELLS);
    let newly = newly.map(|change| format!("  {}", changed(change)));
    let lines = std::iter::once(head).chain(newly);
    let lines = lines.chain(table(report::SHIFT, &report::shifts(comparison)));
    let tests = report::tests(comparison).map(|tests| format!("  {tests}"));
    lines.chain(tests).collect()
}

fn changed(change: &CellChange) -> String {
    let word = |state: Option<CellState>| match state {
        None => "did not exist",
        Some(CellState::Passed) => "passed",
        Some(CellState::Failed) => "failed",
        Some(CellState::NotExercised) => "was not exercised",
        Some(CellState::NotApplicable) => "did not apply",
        Some(CellState::Error) => "could not be judged",
    };
    format!(
        "{} under {} {} before",
        clean(&change.invariant, NAME),
        clean(&change.scenario, NAME),
        word(change.before)
    )
}
