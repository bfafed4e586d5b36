//! The matrix: what is demanded, under which chaos, and what became of it.

use squall_journal::run::{CellRecord, CellState};

use crate::render::clean;
use crate::render::paint::Paint;
use crate::render::table::{Table, shown};

/// Widest matrix whose scenarios head their columns; above it they are numbered.
const WIDTH: usize = 100;

/// Most characters of a name.
const NAME: usize = 40;

/// A line for each invariant, a column for each scenario, both in the order they come in.
pub(super) fn render(cells: &[CellRecord], paint: Paint) -> String {
    let scenarios = scenarios(cells);
    let whole = table(cells, &scenarios, &scenarios, paint);
    let widest = whole.lines().map(shown).max().unwrap_or(0);
    if widest <= WIDTH {
        return whole;
    }
    let numbers: Vec<_> = (1..=scenarios.len())
        .map(|number| number.to_string())
        .collect();
    let legend = numbers
        .iter()
        .zip(&scenarios)
        .map(|(number, scenario)| format!("{number:>4}  {}\n", clean(scenario, WIDTH)));
    let legend: String = legend.collect();
    format!("{legend}\n{}", table(cells, &scenarios, &numbers, paint))
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

fn table(cells: &[CellRecord], scenarios: &[String], headings: &[String], paint: Paint) -> String {
    let heading = [String::new(), "SEVERITY".to_owned()];
    let columns = headings.iter().map(|heading| clean(heading, NAME));
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
            found.map_or_else(String::new, |cell| word(cell, paint))
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

/// What became of a cell, in a word or two.
pub(super) fn word(cell: &CellRecord, paint: Paint) -> String {
    match cell.state {
        CellState::Passed => paint.good("passed"),
        CellState::Failed if cell.baseline_failed => paint.bad("failed*"),
        CellState::Failed => paint.bad("failed"),
        CellState::NotExercised => paint.notable("not exercised"),
        CellState::NotApplicable => paint.faint("-"),
        CellState::Error => paint.bad("not judged"),
    }
}
