//! Sections that do not concern single cells: recovery, repeats, comparison, and sources.

use maud::{Markup, html};

use super::{headings, left_out, prose, scrolled, tag};
use crate::report::shown::cut;
use crate::report::{LOAD, Report, load_levels, load_lines, words};
use crate::run::{CellChange, CellState, ComparisonRecord, RunRecord};

/// Maximum number of changes of one kind, of invariants, of scenarios, and of rules.
const MOST: usize = 100;

/// Longest settings of an invariant, and longest rule, in characters.
const MOST_TEXT: usize = 4000;

/// Recovery by family of faults, and stability over repeats.
pub(super) fn recovery(run: &RunRecord) -> Option<Markup> {
    let lines = words::repeats(run);
    (!lines.is_empty()).then(|| html! { ul class="plain" { @for line in lines { li { (line) } } } })
}

/// The distributions over repeats.
pub(super) fn distributions(run: &RunRecord) -> Option<Markup> {
    let rows = words::distributions(run);
    (!rows.is_empty()).then(|| table("Distributions", &words::DISTRIBUTION, &rows))
}

/// The levels of a load run.
pub(super) fn load(run: &RunRecord) -> Option<Markup> {
    run.load.as_ref()?;
    Some(html! {
        @for line in load_lines(run) { p { (prose(&line)) } }
        (table("Load", &LOAD, &load_levels(run)))
    })
}

/// A table of texts; the first column has the headings of the rows.
pub(super) fn table<const N: usize>(
    label: &str,
    columns: &[&str; N],
    rows: &[[String; N]],
) -> Markup {
    let table = html! {
        table {
            (headings(columns))
            tbody {
                @for row in rows.iter().take(MOST) {
                    tr {
                        @for (place, cell) in row.iter().enumerate() {
                            @if place == 0 { th scope="row" { (cell) } } @else { td { (cell) } }
                        }
                    }
                }
            }
        }
    };
    html! {
        (scrolled(label, &table))
        (left_out(rows.len(), MOST, "rows"))
    }
}

/// The settings of invariants, and the rules of scenarios with their injected texts.
pub(super) fn demands(run: &RunRecord) -> Option<Markup> {
    let text = |text| cut(text, MOST_TEXT).0;
    let invariants = html! {
        table {
            (headings(&["Invariant", "Type", "Severity", "Parameters"]))
            tbody {
                @for one in run.demands.iter().take(MOST) {
                    tr {
                        th scope="row" { (one.invariant) }
                        td { (one.r#type) }
                        td { (one.severity) }
                        td { (text(&one.parameters)) }
                    }
                }
            }
        }
    };
    let scenarios = html! {
        table {
            (headings(&["Scenario", "Rules"]))
            tbody {
                @for one in run.scenarios.iter().take(MOST) {
                    tr {
                        th scope="row" { (one.name) }
                        td {
                            @if one.rules.is_empty() { "none" }
                            @for rule in one.rules.iter().take(MOST) { p { (text(rule)) } }
                            (left_out(one.rules.len(), MOST, "rules"))
                        }
                    }
                }
            }
        }
    };
    let is_there = !run.demands.is_empty() || run.scenarios.iter().any(|one| !one.rules.is_empty());
    is_there.then(|| {
        html! {
            (scrolled("Invariants", &invariants))
            (left_out(run.demands.len(), MOST, "invariants"))
            (scrolled("Scenarios", &scenarios))
            (left_out(run.scenarios.len(), MOST, "scenarios"))
        }
    })
}

pub(super) fn comparison(run: &RunRecord) -> Option<Markup> {
    let comparison: &ComparisonRecord = run.comparison.as_ref()?;
    let lists = [
        ("Newly failing", &comparison.newly_failing),
        ("Fixed", &comparison.fixed),
        ("Changed otherwise", &comparison.changed),
    ];
    let shifts = words::shifts(comparison);
    Some(html! {
        p {
            "Run " code { (comparison.baseline) } ": the score was " (words::score_or_none(comparison.score_before))
            " and is " (words::score_or_none(run.score)) "."
        }
        @if let Some(tests) = words::tests(comparison) { p { (tests) "." } }
        @if !shifts.is_empty() { (table("Differences beyond chance", &words::SHIFT, &shifts)) }
        @if lists.iter().all(|(_, changes)| changes.is_empty()) { p { "No cell changed its state." } }
        @for (heading, changes) in lists {
            @if !changes.is_empty() {
                h3 { (heading) " (" (changes.len()) ")" }
                ul class="plain" { @for change in changes.iter().take(MOST) { li { (changed(change)) } } }
            }
        }
    })
}

fn changed(change: &CellChange) -> Markup {
    html! {
        (change.invariant) " in " (change.scenario) ": "
        (state(change.before)) " → " (state(change.after))
    }
}

fn state(found: Option<CellState>) -> Markup {
    match found {
        Some(CellState::Failed) => tag("failed", "failed", ""),
        Some(CellState::Passed) => tag("passed", "passed", ""),
        Some(CellState::Error) => tag("error", "error", ""),
        Some(other @ (CellState::NotExercised | CellState::NotApplicable)) => {
            tag("", &words::state(other), "")
        }
        None => tag("", "not there", ""),
    }
}

pub(super) fn origin(report: &Report) -> Markup {
    let run = &report.run;
    let seed = run.seed.to_string();
    let facts = [
        ("Run", run.id.as_str()),
        ("Agent", run.agent.as_deref().unwrap_or("not named")),
        ("Seed", &seed),
        ("Requested", &run.created_at),
        ("Began", run.started_at.as_deref().unwrap_or("–")),
        ("Over", run.finished_at.as_deref().unwrap_or("–")),
    ];
    let documents = html! {
        table {
            (headings(&["Document", "Name", "Version", "SHA-256"]))
            tbody {
                @for document in &run.documents {
                    tr {
                        td { (document.kind) }
                        th scope="row" { (document.name) }
                        td { (document.shown_version().unwrap_or_else(|| "–".to_owned())) }
                        td { code { (document.digest) } }
                    }
                }
            }
        }
    };
    html! {
        dl {
            @for (name, value) in facts { dt { (name) } dd { (value) } }
            @if report.exchanges_left_out > 0 {
                dt { "Exchanges left out" }
                dd {
                    (report.exchanges_left_out)
                    " that the evidence names: over the bound of a report, or not held any more"
                }
            }
        }
        @if !run.documents.is_empty() { (scrolled("Documents of the run", &documents)) }
    }
}
