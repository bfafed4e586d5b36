//! The details of cells: failed, in error, and inconclusive ones.

use std::collections::BTreeSet;

use maud::{Markup, html};

use super::{invocations, left_out, prose, soft, tag};
use crate::report::advice::advice;
use crate::report::story::Wire;
use crate::report::{exercised, severity_rank, words};
use crate::run::{CellRecord, CellState, RunRecord};

/// Maximum number of cells in one section.
const MOST: usize = 100;

/// Cells with their index in the run.
pub(super) type Cells<'r> = Vec<(usize, &'r CellRecord)>;

/// Cells with details: anchor and heading of their section, a remark, and the cells.
pub(super) fn sections(
    run: &RunRecord,
) -> [(&'static str, &'static str, &'static str, Cells<'_>); 4] {
    let exercised = exercised(run);
    let of = |wanted: &dyn Fn(&CellRecord) -> bool| -> Cells<'_> {
        let cells = run.cells.iter().enumerate();
        cells.filter(|(_, cell)| wanted(cell)).collect()
    };
    let mut failed = of(&|cell| cell.state == CellState::Failed && !cell.baseline_failed);
    failed.sort_by_key(|(_, cell)| severity_rank(&cell.severity));
    [
        ("failures", "What failed", "", failed),
        (
            "errors",
            "Errors",
            "",
            of(&|cell| cell.state == CellState::Error),
        ),
        (
            "baseline",
            "Failed without chaos too",
            "The agent fails these without chaos too. Contract compliance counts these cells; chaos resilience leaves \
             them out.",
            of(&|cell| cell.state == CellState::Failed && cell.baseline_failed),
        ),
        (
            "unproved",
            "Not exercised",
            "Invariants that were exercised in no scenario. They do not count towards the score.",
            of(&|cell| {
                cell.state == CellState::NotExercised && !exercised.contains(&*cell.invariant)
            }),
        ),
    ]
}

/// The cells that have details on the page, at the anchors with their indexes.
pub(super) fn shown(run: &RunRecord) -> BTreeSet<usize> {
    let sections = sections(run).into_iter();
    let cells = sections.flat_map(|(_, _, _, cells)| cells.into_iter().take(MOST));
    cells.map(|(number, _)| number).collect()
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

/// The details of cells; `None`: there are none.
pub(super) fn articles(about: &str, cells: &Cells<'_>, wire: &Wire<'_>) -> Option<Markup> {
    (!cells.is_empty()).then(|| {
        html! {
            @if !about.is_empty() { (soft(about)) }
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
            @if let Some(command) = wire.replay_command(cell) {
                p class="soft" { "Replay: " code { (command) } }
            }
            (invocations::part(&stories, cell))
        }
    }
}
