//! What became of single cells: those that failed, those in error, and those that prove nothing.

use squall_journal::run::{CellRecord, CellState, RunRecord};

use super::{invocations, scrolled, tag};
use crate::report::advice::advice;
use crate::report::markup::Markup;
use crate::report::story::{Story, Wire};
use crate::report::{Report, exercised, telling, words};

/// Most cells told in one part of the page.
const MOST: usize = 100;

/// Cells with their number in the run.
pub(super) type Cells<'r> = Vec<(usize, &'r CellRecord)>;

/// Failed, and not without chaos: the gravest first.
pub(super) fn failed(run: &RunRecord) -> Cells<'_> {
    let mut failed = of(run, CellState::Failed);
    failed.retain(|(_, cell)| !cell.baseline_failed);
    failed.sort_by_key(|(_, cell)| {
        ["critical", "high", "medium", "low"]
            .iter()
            .position(|known| cell.severity == *known)
    });
    failed
}

/// Failed, and without chaos too.
pub(super) fn of_the_baseline(run: &RunRecord) -> Cells<'_> {
    let mut failed = of(run, CellState::Failed);
    failed.retain(|(_, cell)| cell.baseline_failed);
    failed
}

/// Those that could not be judged.
pub(super) fn in_error(run: &RunRecord) -> Cells<'_> {
    of(run, CellState::Error)
}

/// Those of invariants that were exercised in no scenario.
pub(super) fn not_exercised(run: &RunRecord) -> Cells<'_> {
    let mut idle = of(run, CellState::NotExercised);
    let exercised = exercised(run);
    idle.retain(|(_, cell)| !exercised.contains(cell.invariant.as_str()));
    idle
}

fn of(run: &RunRecord, state: CellState) -> Cells<'_> {
    let cells = run.cells.iter().enumerate();
    cells.filter(|(_, cell)| cell.state == state).collect()
}

/// Whether the page tells more of a cell, at the anchor of its number.
pub(super) fn is_told(report: &Report, number: usize) -> bool {
    let run = &report.run;
    let cell = &run.cells[number];
    let group = match cell.state {
        CellState::Passed | CellState::NotApplicable => return false,
        CellState::Failed if cell.baseline_failed => of_the_baseline(run),
        CellState::Failed => failed(run),
        CellState::Error => in_error(run),
        CellState::NotExercised => not_exercised(run),
    };
    group.iter().take(MOST).any(|(told, _)| *told == number)
}

/// The class of a cell's state.
pub(super) fn class(cell: &CellRecord) -> &'static str {
    match cell.state {
        CellState::Passed => "passed",
        CellState::Failed if cell.baseline_failed => "base",
        CellState::Failed => "failed",
        CellState::NotExercised => "not_exercised",
        CellState::NotApplicable => "not_applicable",
        CellState::Error => "error",
    }
}

pub(super) fn failures(section: &mut Markup, report: &Report, wire: &Wire<'_>) {
    articles(section, &failed(&report.run), wire);
}

pub(super) fn errors(section: &mut Markup, report: &Report, wire: &Wire<'_>) {
    articles(section, &in_error(&report.run), wire);
}

pub(super) fn baseline(section: &mut Markup, report: &Report, wire: &Wire<'_>) {
    let about = "The agent fails these without chaos too. Contract compliance counts these cells; chaos resilience \
                 leaves them out.";
    section.element("p").with("class", "soft").text(about);
    articles(section, &of_the_baseline(&report.run), wire);
}

fn articles(section: &mut Markup, cells: &Cells<'_>, wire: &Wire<'_>) {
    for (number, cell) in cells.iter().take(MOST) {
        article(section, *number, cell, wire);
    }
    left_out(section, cells.len());
}

fn left_out(section: &mut Markup, cells: usize) {
    if let Some(left @ 1..) = cells.checked_sub(MOST) {
        let left = words::counted(left as u64, "cell", "cells");
        let more = format!("{left} more in the JSON form of this report.");
        section.element("p").with("class", "soft").text(&more);
    }
}

fn article(section: &mut Markup, number: usize, cell: &CellRecord, wire: &Wire<'_>) {
    let id = format!("cell-{number}");
    let heading = format!("{id}-name");
    let article = section
        .element("article")
        .with("id", &id)
        .with("class", class(cell));
    article
        .with("tabindex", "-1")
        .with("aria-labelledby", &heading)
        .holding(|article| {
            article
                .element("div")
                .with("class", "head")
                .holding(|head| {
                    head.element("h3")
                        .with("id", &heading)
                        .text(&words::cell(cell));
                    let state = if cell.baseline_failed {
                        "failed, without chaos too"
                    } else {
                        words::state(cell.state)
                    };
                    tag(head, class(cell), state, "");
                    tag(head, "", &cell.severity, "");
                });
            if let Some(reason) = &cell.reason {
                article.element("p").with("class", "reason").prose(reason);
            }
            let told: Vec<_> = telling(cell).collect();
            let stories: Vec<_> = told
                .iter()
                .map(|invocation| wire.story(invocation))
                .collect();
            to_do(article, wire, cell, &stories);
            invocations::write(article, &id, &told, &stories, cell);
        });
}

fn to_do(inner: &mut Markup, wire: &Wire<'_>, cell: &CellRecord, stories: &[Story<'_>]) {
    if let Some(advice) = advice(wire, cell, stories) {
        inner.element("p").with("class", "do").holding(|p| {
            p.with_text("strong", "To do");
            p.prose(&advice);
        });
    }
}

/// Cells that prove nothing: why, and what to do about it.
pub(super) fn unproved(section: &mut Markup, report: &Report, wire: &Wire<'_>) {
    let about =
        "Invariants that were exercised in no scenario. They do not count towards the score.";
    section.element("p").with("class", "soft").text(about);
    let cells = not_exercised(&report.run);
    scrolled(section, "Cells that were not exercised", |region| {
        region.element("table").holding(|table| {
            super::headings(table, &["Cell", "Why", "To do"]);
            table.element("tbody").holding(|tbody| {
                for (number, cell) in cells.iter().take(MOST) {
                    let row = tbody.element("tr").with("id", format!("cell-{number}"));
                    row.holding(|row| {
                        let stories: Vec<_> = telling(cell)
                            .map(|invocation| wire.story(invocation))
                            .collect();
                        row.element("th")
                            .with("scope", "row")
                            .text(&words::cell(cell));
                        row.element("td")
                            .prose(cell.reason.as_deref().unwrap_or_default());
                        row.element("td")
                            .prose(&advice(wire, cell, &stories).unwrap_or_default());
                    });
                }
            });
        });
    });
    left_out(section, cells.len());
}
