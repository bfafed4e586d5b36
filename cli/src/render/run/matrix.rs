//! The matrix: invariants × scenarios.

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
    let scenarios = scenarios(cells);
    let lead = table(cells, &[], paint).lines().map(shown).max();
    let lead = lead.unwrap_or(0);
    let mut tables: Vec<Vec<&str>> = Vec::new();
    let mut width = usize::MAX;
    for scenario in &scenarios {
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
        text.push_str(&table(cells, &some, paint));
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

fn scenarios(cells: &[CellRecord]) -> Vec<String> {
    let mut scenarios: Vec<String> = Vec::new();
    for cell in cells {
        if !scenarios.contains(&cell.scenario) {
            scenarios.push(cell.scenario.clone());
        }
    }
    scenarios
}

fn table(cells: &[CellRecord], scenarios: &[&str], paint: Paint) -> String {
    let heading = [String::new(), "SEVERITY".to_owned()];
    let columns = scenarios.iter().map(|scenario| clean(scenario, NAME));
    let mut table = Table::new(heading.into_iter().chain(columns));
    let mut seen: Vec<(&str, &Option<String>)> = Vec::new();
    for cell in cells {
        let row = (cell.invariant.as_str(), &cell.mutation);
        if seen.contains(&row) {
            continue;
        }
        seen.push(row);
        let of_row: Vec<_> = cells
            .iter()
            .filter(|other| (other.invariant.as_str(), &other.mutation) == row)
            .collect();
        let states = scenarios.iter().map(|scenario| {
            let found = of_row.iter().find(|cell| cell.scenario == *scenario);
            found.map_or_else(String::new, |cell| painted(cell, paint))
        });
        let name = match &cell.mutation {
            Some(mutation) => format!("{} ({mutation})", cell.invariant),
            None => cell.invariant.clone(),
        };
        let head = [clean(&name, NAME), cell.severity.clone()];
        table.row(head.into_iter().chain(states));
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
