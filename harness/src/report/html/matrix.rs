//! The matrix of invariants × scenarios. Colour, word and symbol have the same meaning.

use std::collections::BTreeSet;

use maud::{Markup, html};

use super::{cells, scrolled};
use crate::count::count;
use crate::report::axes;
use crate::run::{CellRecord, CellState, RunRecord};

/// Maximum number of columns in one table, so that it fits on paper and on the screen.
const MOST_COLUMNS: usize = 6;

/// `linked` are the indexes of cells with details on the page.
pub(super) fn part(run: &RunRecord, linked: &BTreeSet<usize>) -> Option<Markup> {
    let (columns, rows) = axes(&run.cells);
    // The minimum number of tables, with about equal widths.
    let tables = columns.len().div_ceil(MOST_COLUMNS);
    let most = columns.len().div_ceil(tables.max(1)).max(1);
    let all = columns.len();
    let which = |first: usize, some: usize| match (tables, some) {
        (1, _) => String::new(),
        (_, 1) => format!(" Scenario {first} of {all}."),
        (_, more) => format!(" Scenarios {first} to {} of {all}.", first + more - 1),
    };
    // An exploration has a heat map instead: each of its points is a scenario.
    (!run.cells.is_empty() && run.exploration.is_none()).then(|| {
        html! {
            @for (number, some) in columns.chunks(most).enumerate() {
                (table(run, linked, some, &rows, &which(number * most + 1, some.len())))
            }
        }
    })
}

/// A table for some of the scenarios; `which` names them if there are several tables.
fn table(
    run: &RunRecord,
    linked: &BTreeSet<usize>,
    columns: &[&str],
    rows: &[(&str, &str)],
    which: &str,
) -> Markup {
    let label = format!("Matrix of invariants and scenarios.{which}");
    let here = |invariant: &str, severity: &str, column: &str| {
        let cells = run.cells.iter().enumerate();
        let of_it = cells.filter(|(_, cell)| {
            (&*cell.invariant, &*cell.severity, &*cell.scenario) == (invariant, severity, column)
        });
        of_it.collect::<Vec<_>>()
    };
    let table = html! {
        table class={ "heat of-" (columns.len()) } {
            caption { "Invariants by scenario." (which) }
            thead {
                tr {
                    th scope="col" { "Invariant" }
                    @for column in columns { th scope="col" { (scenario(run, column)) } }
                }
            }
            tbody {
                @for (invariant, severity) in rows {
                    tr {
                        th scope="row" { (invariant) small { (severity) } }
                        @for column in columns {
                            td {
                                @for (number, cell) in here(invariant, severity, column) {
                                    (one(linked, number, cell))
                                }
                            }
                        }
                    }
                }
            }
        }
    };
    scrolled(label.trim_end_matches('.'), &table)
}

fn scenario(run: &RunRecord, name: &str) -> Markup {
    let known = run.scenarios.iter().find(|one| one.name == name);
    let about = known.map(|one| {
        if one.under_chaos {
            count(one.rules_applied, "fault")
        } else {
            "no chaos".to_owned()
        }
    });
    html! {
        (name)
        @if let Some(about) = about { br; span class="soft" { (about) } }
    }
}

fn one(linked: &BTreeSet<usize>, number: usize, cell: &CellRecord) -> Markup {
    let mark = match cell.state {
        CellState::Passed => "✓",
        CellState::Failed => "✗",
        CellState::Error => "!",
        CellState::NotExercised => "○",
        CellState::NotApplicable => "–",
    };
    let mutation = cell.mutation.as_ref();
    let mutation = mutation.map_or_else(String::new, |kind| format!(" · {kind}"));
    let class = format!("cell {}", cells::class(cell));
    let text = format!("{mark} {}{mutation}", cells::state(cell));
    html! {
        @if linked.contains(&number) {
            a class=(class) href={ "#cell-" (number) } { (text) }
        } @else {
            span class=(class) { (text) }
        }
    }
}
