//! What stands apart from single cells: recoveries, repeats, an earlier run, and where all this comes from.

use squall_journal::run::{CellChange, CellState, RecoveryRecord, RunRecord};

use super::{headings, scrolled, tag};
use crate::report::markup::Markup;
use crate::report::shown::cut;
use crate::report::story::Wire;
use crate::report::{Report, words};

/// Most changes listed of a kind, and most invariants, scenarios and rules of one.
const MOST: usize = 100;

/// Most characters of what an invariant demands, and of a rule.
const MOST_TEXT: usize = 4000;

pub(super) fn has_recovery(run: &RunRecord) -> bool {
    !run.recoveries.is_empty() || run.stability.is_some()
}

pub(super) fn recovery(section: &mut Markup, report: &Report, _: &Wire<'_>) {
    let run = &report.run;
    if !run.recoveries.is_empty() {
        recoveries(section, &run.recoveries);
    }
    let Some(stability) = &run.stability else {
        return;
    };
    let pass_k = match stability.pass_k {
        Some(rate) => format!(" ({} %)", words::score(rate)),
        None => String::new(),
    };
    let said = format!(
        "Everything was done {} times. Of {} that could be judged every time, {} passed every time{pass_k}; {} passed \
         at times and failed at others.",
        stability.repeats,
        words::counted(
            stability.judged,
            "prompt in a scenario",
            "prompts in a scenario"
        ),
        stability.always_passed,
        stability.flaky
    );
    section.with_text("p", &said);
}

fn recoveries(section: &mut Markup, recoveries: &[RecoveryRecord]) {
    scrolled(section, "Recovery by family of faults", |region| {
        region.element("table").holding(|table| {
            let about = "Invocations under a fault family in which every invariant passed, with the 95 % Wilson interval.";
            table.with_text("caption", about);
            headings(table, &["Family", "Recovered", "Rate", "Interval", "0 to 100 %"]);
            table.element("tbody").holding(|tbody| {
                for one in recoveries {
                    tbody.element("tr").holding(|row| {
                        row.element("th").with("scope", "row").text(&one.family);
                        let number = |row: &mut Markup, text: String| {
                            row.element("td").with("class", "number").text(&text);
                        };
                        number(row, format!("{} of {}", one.passed, one.judged));
                        number(row, format!("{} %", words::score(one.rate)));
                        number(row, format!("{}–{} %", words::score(one.low), words::score(one.high)));
                        row.element("td").holding(|td| range(td, one));
                    });
                }
            });
        });
    });
}

/// The interval as a picture; its numbers stand beside it.
fn range(td: &mut Markup, one: &RecoveryRecord) {
    let at = |share: f64| 4.0 + share.clamp(0.0, 100.0) * 1.92;
    let svg = td
        .element("svg")
        .with("class", "range")
        .with("viewBox", "0 0 200 12");
    svg.with("preserveAspectRatio", "none")
        .with("aria-hidden", "true")
        .holding(|svg| {
            let track = svg
                .element("rect")
                .with("class", "track")
                .with("x", "4")
                .with("y", "4");
            track.with("width", "192").with("height", "4").empty();
            let line = svg
                .element("line")
                .with("class", "whisker")
                .number("x1", at(one.low));
            line.number("x2", at(one.high))
                .with("y1", "6")
                .with("y2", "6")
                .empty();
            let dot = svg
                .element("rect")
                .with("class", "dot")
                .number("x", at(one.rate) - 2.0);
            dot.with("y", "1")
                .with("width", "4")
                .with("height", "10")
                .empty();
        });
}

/// What each invariant demands, and the rules of each scenario with the texts that they inject.
pub(super) fn demands(section: &mut Markup, report: &Report, _: &Wire<'_>) {
    let (run, text) = (&report.run, |text| cut(text, MOST_TEXT).0.to_owned());
    let left_out = |section: &mut Markup, left: usize, what: &str| {
        if left > 0 {
            let more = format!("{left} more {what} in the JSON form of this report.");
            section.element("p").with("class", "soft").text(&more);
        }
    };
    scrolled(section, "Invariants", |region| {
        region.element("table").holding(|table| {
            headings(table, &["Invariant", "Type", "Severity", "Parameters"]);
            table.element("tbody").holding(|tbody| {
                for one in run.demands.iter().take(MOST) {
                    tbody.element("tr").holding(|row| {
                        row.element("th").with("scope", "row").text(&one.invariant);
                        for value in [&one.r#type, &one.severity, &text(&one.parameters)] {
                            row.with_text("td", value);
                        }
                    });
                }
            });
        });
    });
    left_out(
        section,
        run.demands.len().saturating_sub(MOST),
        "invariants",
    );
    scrolled(section, "Scenarios", |region| {
        region.element("table").holding(|table| {
            headings(table, &["Scenario", "Rules"]);
            table.element("tbody").holding(|tbody| {
                for one in run.scenarios.iter().take(MOST) {
                    tbody.element("tr").holding(|row| {
                        row.element("th").with("scope", "row").text(&one.name);
                        row.element("td").holding(|td| {
                            if one.rules.is_empty() {
                                td.text("none");
                            }
                            for rule in one.rules.iter().take(MOST) {
                                td.with_text("p", &text(rule));
                            }
                            left_out(td, one.rules.len().saturating_sub(MOST), "rules");
                        });
                    });
                }
            });
        });
    });
    left_out(
        section,
        run.scenarios.len().saturating_sub(MOST),
        "scenarios",
    );
}

pub(super) fn comparison(section: &mut Markup, report: &Report, _: &Wire<'_>) {
    let Some(comparison) = &report.run.comparison else {
        return;
    };
    section.element("p").holding(|p| {
        p.text("Run ");
        p.with_text("code", &comparison.baseline);
        let before = words::score_or_none(comparison.score_before);
        let now = words::score_or_none(report.run.score);
        p.text(&format!(": the score was {before} and is {now}."));
    });
    let lists = [
        ("Newly failing", &comparison.newly_failing),
        ("Fixed", &comparison.fixed),
        ("Changed otherwise", &comparison.changed),
    ];
    if lists.iter().all(|(_, changes)| changes.is_empty()) {
        section.with_text("p", "No cell changed its state.");
    }
    for (heading, changes) in lists {
        if changes.is_empty() {
            continue;
        }
        section.with_text("h3", &format!("{heading} ({})", changes.len()));
        section
            .element("ul")
            .with("class", "plain")
            .holding(|list| {
                for change in changes.iter().take(MOST) {
                    list.element("li").holding(|item| changed(item, change));
                }
            });
    }
}

fn changed(item: &mut Markup, change: &CellChange) {
    item.text(&format!("{} in {}: ", change.invariant, change.scenario));
    state(item, change.before);
    item.text(" → ");
    state(item, change.after);
}

fn state(item: &mut Markup, found: Option<CellState>) {
    match found {
        Some(CellState::Failed) => tag(item, "failed", "failed", ""),
        Some(CellState::Passed) => tag(item, "passed", "passed", ""),
        Some(CellState::Error) => tag(item, "error", "error", ""),
        Some(other @ (CellState::NotExercised | CellState::NotApplicable)) => {
            tag(item, "", words::state(other), "");
        }
        None => tag(item, "", "not there", ""),
    }
}

pub(super) fn origin(section: &mut Markup, report: &Report, _: &Wire<'_>) {
    let run = &report.run;
    section.element("dl").holding(|list| {
        let mut row = |name: &str, value: &str| {
            list.with_text("dt", name);
            list.with_text("dd", value);
        };
        row("Run", &run.id);
        row("Agent", run.agent.as_deref().unwrap_or("not named"));
        row("Seed", &run.seed.to_string());
        row("Asked for", &run.created_at);
        row("Began", run.started_at.as_deref().unwrap_or("–"));
        row("Over", run.finished_at.as_deref().unwrap_or("–"));
        if report.exchanges_left_out > 0 {
            let left = report.exchanges_left_out;
            let named = "that the evidence names: over the bound of a report, or not held any more";
            row("Exchanges left out", &format!("{left} {named}"));
        }
    });
    if run.documents.is_empty() {
        return;
    }
    scrolled(section, "Documents of the run", |region| {
        region.element("table").holding(|table| {
            headings(table, &["Document", "Name", "Version", "SHA-256"]);
            table.element("tbody").holding(|tbody| {
                for document in &run.documents {
                    tbody.element("tr").holding(|row| {
                        row.with_text("td", &document.kind);
                        row.element("th").with("scope", "row").text(&document.name);
                        let version = document.told_version();
                        row.with_text("td", &version.unwrap_or_else(|| "–".to_owned()));
                        row.element("td")
                            .holding(|td| td.with_text("code", &document.digest));
                    });
                }
            });
        });
    });
}
