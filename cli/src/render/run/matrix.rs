//! The matrix: invariants × scenarios.

use squall_harness::report::axes;
use squall_harness::run::{CellRecord, CellState};

use crate::render::clean;
use crate::render::paint::Paint;
use crate::render::table::{Table, shown};

/// Most characters of a name.
const NAME: usize = 28;

/// The meaning of the marks.
const MARKS: [(&str, &str); 6] = [
    ("✓", "passed"),
    ("✗", "failed"),
    ("✗*", "also fails without chaos"),
    ("?", "not judged"),
    ("·", "not exercised"),
    ("–", "not applicable"),
];

/// A line for each invariant and a column for each scenario, in their order, and the meaning of the marks.
/// Scenarios that do not fit into `widest` columns are in a table below.
pub(super) fn render(cells: &[CellRecord], widest: usize, paint: Paint) -> String {
    let (scenarios, rows) = axes(cells);
    let lead = table(cells, &rows, &[], paint).lines().map(shown).max();
    let lead = lead.unwrap_or(0);
    let mut tables: Vec<Vec<&str>> = Vec::new();
    let mut width = usize::MAX;
    for scenario in scenarios {
        let column = 2 + shown(&clean(scenario, NAME)).max(2);
        if width.saturating_add(column) > widest {
            width = lead;
            tables.push(Vec::new());
        }
        width += column;
        if let Some(last) = tables.last_mut() {
            last.push(scenario);
        }
    }
    let mut text = String::new();
    for some in tables {
        text.push_str(&table(cells, &rows, &some, paint));
        text.push('\n');
    }
    let is_used = |(mark, _): &&(&str, &str)| cells.iter().any(|cell| self::mark(cell) == *mark);
    let legend = MARKS.iter().filter(is_used);
    let legend: Vec<_> = legend
        .map(|(mark, word)| format!("{mark} {word}"))
        .collect();
    text.push_str(&paint.faint(legend.join("  ")));
    text.push('\n');
    text
}

fn table(cells: &[CellRecord], rows: &[(&str, &str)], scenarios: &[&str], paint: Paint) -> String {
    let heading = [String::new(), "SEVERITY".to_owned()];
    let columns = scenarios.iter().map(|scenario| clean(scenario, NAME));
    let mut table = Table::new(heading.into_iter().chain(columns));
    for (invariant, severity) in rows {
        let marks = scenarios.iter().map(|scenario| {
            let found = cells.iter().filter(|cell| {
                (&*cell.invariant, &*cell.severity, &*cell.scenario)
                    == (*invariant, *severity, *scenario)
            });
            let marks: Vec<_> = found.map(|cell| painted(cell, paint)).collect();
            marks.join(" ")
        });
        let head = [clean(invariant, NAME), (*severity).to_owned()];
        table.row(head.into_iter().chain(marks));
    }
    table.render()
}

/// The mark of a cell's state.
fn mark(cell: &CellRecord) -> &'static str {
    match cell.state {
        CellState::Passed => "✓",
        CellState::Failed if cell.baseline_failed => "✗*",
        CellState::Failed => "✗",
        CellState::NotExercised => "·",
        CellState::NotApplicable => "–",
        CellState::Error => "?",
    }
}

fn painted(cell: &CellRecord, paint: Paint) -> String {
    let mark = mark(cell);
    match cell.state {
        CellState::Passed => paint.good(mark),
        CellState::Failed | CellState::Error => paint.bad(mark),
        CellState::NotExercised => paint.notable(mark),
        CellState::NotApplicable => paint.faint(mark),
    }
}
