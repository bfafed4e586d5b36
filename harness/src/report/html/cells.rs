//! The details of cells: failed, in error, and inconclusive ones.

use maud::{Markup, html};

use super::{headings, invocations, left_out, prose, scrolled, soft, tag};
use crate::report::advice::advice;
use crate::report::story::Wire;
use crate::report::{exercised, severity_rank, words};
use crate::run::{CellRecord, CellState, RunRecord};

/// Maximum number of cells in one section.
const MOST: usize = 100;

/// Cells with their index in the run.
type Cells<'r> = Vec<(usize, &'r CellRecord)>;

/// Cells that failed only under chaos, highest severity first.
fn failed(run: &RunRecord) -> Cells<'_> {
    let mut failed = of(run, CellState::Failed);
    failed.retain(|(_, cell)| !cell.baseline_failed);
    failed.sort_by_key(|(_, cell)| severity_rank(cell));
    failed
}

/// Cells that also failed without chaos.
fn of_the_baseline(run: &RunRecord) -> Cells<'_> {
    let mut failed = of(run, CellState::Failed);
    failed.retain(|(_, cell)| cell.baseline_failed);
    failed
}

/// Cells of invariants that were exercised in no scenario.
fn not_exercised(run: &RunRecord) -> Cells<'_> {
    let mut idle = of(run, CellState::NotExercised);
    let exercised = exercised(run);
    idle.retain(|(_, cell)| !exercised.contains(cell.invariant.as_str()));
    idle
}

fn of(run: &RunRecord, state: CellState) -> Cells<'_> {
    let cells = run.cells.iter().enumerate();
    cells.filter(|(_, cell)| cell.state == state).collect()
}

/// Whether the page has details of a cell, at the anchor with its index.
pub(super) fn is_told(run: &RunRecord, number: usize) -> bool {
    let cell = &run.cells[number];
    let group = match cell.state {
        CellState::Passed | CellState::NotApplicable => return false,
        CellState::Failed if cell.baseline_failed => of_the_baseline(run),
        CellState::Failed => failed(run),
        CellState::Error => of(run, CellState::Error),
        CellState::NotExercised => not_exercised(run),
    };
    group.iter().take(MOST).any(|(told, _)| *told == number)
}

/// The CSS class of a cell's state.
pub(super) fn class(cell: &CellRecord) -> &'static str {
    if cell.baseline_failed {
        "base"
    } else {
        cell.state.as_str()
    }
}

/// A cell's state as text.
pub(super) fn state(cell: &CellRecord) -> String {
    if cell.baseline_failed {
        "failed, without chaos too".to_owned()
    } else {
        words::state(cell.state)
    }
}

pub(super) fn failures(run: &RunRecord, wire: &Wire<'_>) -> Option<Markup> {
    articles(&failed(run), wire)
}

pub(super) fn errors(run: &RunRecord, wire: &Wire<'_>) -> Option<Markup> {
    articles(&of(run, CellState::Error), wire)
}

pub(super) fn baseline(run: &RunRecord, wire: &Wire<'_>) -> Option<Markup> {
    let about = "The agent fails these without chaos too. Contract compliance counts these cells; chaos resilience \
                 leaves them out.";
    let articles = articles(&of_the_baseline(run), wire)?;
    Some(html! { (soft(about)) (articles) })
}

fn articles(cells: &Cells<'_>, wire: &Wire<'_>) -> Option<Markup> {
    (!cells.is_empty()).then(|| {
        html! {
            @for (number, cell) in cells.iter().take(MOST) { (article(*number, cell, wire)) }
            (left_out(cells.len(), MOST, "cells"))
        }
    })
}

fn article(number: usize, cell: &CellRecord, wire: &Wire<'_>) -> Markup {
    let id = format!("cell-{number}");
    let stories = wire.stories(cell);
    html! {
        article id=(id) class=(class(cell)) tabindex="-1" aria-labelledby={ (id) "-name" } {
            div class="head" {
                h3 id={ (id) "-name" } { (words::cell(cell)) }
                (tag(class(cell), &state(cell), ""))
                (tag("", &cell.severity, ""))
            }
            @if let Some(reason) = &cell.reason { p class="reason" { (prose(reason)) } }
            @if let Some(advice) = advice(wire, cell, &stories) {
                p class="do" { strong { "To do" } (prose(&advice)) }
            }
            (invocations::part(&stories, cell))
        }
    }
}

/// Inconclusive cells, with reasons and advice.
pub(super) fn unproved(run: &RunRecord, wire: &Wire<'_>) -> Option<Markup> {
    let about =
        "Invariants that were exercised in no scenario. They do not count towards the score.";
    let cells = not_exercised(run);
    let to_do = |cell| advice(wire, cell, &wire.stories(cell)).unwrap_or_default();
    let table = html! {
        table {
            (headings(&["Cell", "Why", "To do"]))
            tbody {
                @for (number, cell) in cells.iter().take(MOST) {
                    tr id={ "cell-" (number) } {
                        th scope="row" { (words::cell(cell)) }
                        td { (prose(cell.reason.as_deref().unwrap_or_default())) }
                        td { (prose(&to_do(cell))) }
                    }
                }
            }
        }
    };
    (!cells.is_empty()).then(|| {
        html! {
            (soft(about))
            (scrolled("Cells that were not exercised", &table))
            (left_out(cells.len(), MOST, "cells"))
        }
    })
}
