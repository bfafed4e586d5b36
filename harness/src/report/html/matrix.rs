//! Invariants × scenarios as a map: colour, word and mark say the same.

use squall_journal::run::{CellRecord, CellState};

use super::{cells, scrolled};
use crate::report::markup::Markup;
use crate::report::story::Wire;
use crate::report::{Report, words};

/// Most scenarios side by side: more are too narrow for paper, and too wide for a screen.
const MOST_COLUMNS: usize = 6;

pub(super) fn write(section: &mut Markup, report: &Report, _: &Wire<'_>) {
    let all = &report.run.cells;
    let (mut columns, mut rows): (Vec<&str>, Vec<(&str, &str)>) = (Vec::new(), Vec::new());
    for cell in all {
        if !columns.contains(&cell.scenario.as_str()) {
            columns.push(&cell.scenario);
        }
        let row = (cell.invariant.as_str(), cell.severity.as_str());
        if !rows.contains(&row) {
            rows.push(row);
        }
    }
    // As few tables as hold them, of about the same width.
    let tables = columns.len().div_ceil(MOST_COLUMNS).max(1);
    let most = columns.len().div_ceil(tables).max(1);
    for (number, shown) in columns.chunks(most).enumerate() {
        let first = number * most + 1;
        let which = match (tables, shown.len()) {
            (1, _) => String::new(),
            (_, 1) => format!(" Scenario {first} of {}.", columns.len()),
            (_, more) => format!(
                " Scenarios {first} to {} of {}.",
                first + more - 1,
                columns.len()
            ),
        };
        part(section, report, shown, &rows, &which);
    }
}

/// A table of some of the scenarios; `which` says of which, where there are more.
fn part(
    section: &mut Markup,
    report: &Report,
    columns: &[&str],
    rows: &[(&str, &str)],
    which: &str,
) {
    let all = &report.run.cells;
    let label = format!("Matrix of invariants and scenarios.{which}");
    scrolled(section, label.trim_end_matches('.'), |region| {
        region
            .element("table")
            .with("class", format!("heat of-{}", columns.len()))
            .holding(|table| {
                table.with_text("caption", &format!("Invariants by scenario.{which}"));
                table.element("thead").holding(|thead| {
                    thead.element("tr").holding(|row| {
                        row.element("th").with("scope", "col").text("Invariant");
                        for column in columns {
                            row.element("th")
                                .with("scope", "col")
                                .holding(|th| scenario(th, report, column));
                        }
                    });
                });
                table.element("tbody").holding(|tbody| {
                    for (invariant, severity) in rows {
                        tbody.element("tr").holding(|row| {
                            row.element("th").with("scope", "row").holding(|th| {
                                th.text(invariant);
                                th.with_text("small", severity);
                            });
                            for column in columns {
                                let here = all.iter().enumerate().filter(|(_, cell)| {
                                    cell.invariant == *invariant
                                        && cell.severity == *severity
                                        && cell.scenario == *column
                                });
                                row.element("td").holding(|td| {
                                    for (number, cell) in here {
                                        one(td, report, number, cell);
                                    }
                                });
                            }
                        });
                    }
                });
            });
    });
}

fn scenario(th: &mut Markup, report: &Report, name: &str) {
    th.text(name);
    let known = report
        .run
        .scenarios
        .iter()
        .find(|scenario| scenario.name == name);
    if let Some(scenario) = known {
        let about = if scenario.under_chaos {
            words::counted(scenario.rules_applied, "fault", "faults")
        } else {
            "no chaos".to_owned()
        };
        th.element("br").empty();
        th.element("span").with("class", "soft").text(&about);
    }
}

fn one(td: &mut Markup, report: &Report, number: usize, cell: &CellRecord) {
    let mark = match cell.state {
        CellState::Passed => "✓",
        CellState::Failed => "✗",
        CellState::Error => "!",
        CellState::NotExercised => "○",
        CellState::NotApplicable => "–",
    };
    let word = if cell.baseline_failed {
        "failed, without chaos too"
    } else {
        words::state(cell.state)
    };
    let mutation = cell.mutation.as_ref();
    let mutation = mutation.map_or_else(String::new, |kind| format!(" · {kind}"));
    let class = format!("cell {}", cells::class(cell));
    let text = format!("{mark} {word}{mutation}");
    if cells::is_told(report, number) {
        let link = td.element("a").with("class", class);
        link.with("href", format!("#cell-{number}")).text(&text);
    } else {
        td.element("span").with("class", class).text(&text);
    }
}
