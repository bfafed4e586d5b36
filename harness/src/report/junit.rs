//! `JUnit` XML for Jenkins, GitLab, GitHub Actions and others.
//!
//! Each scenario is a test suite, and each cell a test case. A failed cell is a `failure`, a cell in error an
//! `error`. A cell that was not exercised or not applicable is `skipped`. The state of the run itself is another
//! test case if its cells do not show it: errored, cancelled or inconclusive. The time of a case is that of its
//! invocations, which cases of a suite share; the total is the duration of the run. Readers limit the file size (GitLab: 30 MB). Texts are therefore cut, and after a total
//! limit, cases contain only their reason. Format: the schema of Jenkins' xUnit plug-in, `junit-10.xsd`.

use std::borrow::Cow;

use maud::{Markup, PreEscaped, html};
use squall_journal::timestamp;

use super::advice::advice;
use super::shown::cut;
use super::story::{InjectedFault, Wire};
use super::{Report, axes, next_step, words};
use crate::count::{count, times};
use crate::run::{CellRecord, CellState, RunRecord, RunState};

/// Name of the suite for the run itself.
const THE_RUN: &str = "run";

/// Longest text, in characters.
const MOST_TEXT: usize = 4_000;

/// Longest message, which is shown in lists, in characters.
const MOST_MESSAGE: usize = 1_000;

/// Maximum number of invocations in a case.
const MOST_INVOCATIONS: usize = 5;

/// Maximum number of failure groups among the properties of a suite.
const MOST_GROUPS: usize = 20;

/// Maximum size of the texts of all cases, before escaping, in bytes.
const MOST_TOLD: usize = 3 << 20;

/// The report as `JUnit` XML.
pub(super) fn document(report: &Report) -> String {
    let run = &report.run;
    let wire = Wire::of(report);
    let (scenarios, _) = axes(&run.cells);
    let of_run = result_of_the_run(run.state);
    let states: Vec<_> = run.cells.iter().map(|cell| cell.state).collect();
    let [tests, failures, errors, _] = counts(states.into_iter().chain(of_run));
    let mut room = MOST_TOLD;
    let xml = html! {
        (PreEscaped("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"))
        testsuites name=(run.name) tests=(tests) failures=(failures) errors=(errors) time=(words::seconds(wall(run))) {
            @if let Some(state) = of_run {
                (suite(report, THE_RUN, counts(of_run.into_iter()), &the_run(run, state)))
            }
            @for scenario in scenarios {
                @let cells: Vec<_> = run.cells.iter().filter(|cell| cell.scenario == scenario).collect();
                @let counts = counts(cells.iter().map(|cell| cell.state));
                (suite(report, scenario, counts, &cases(&cells, &wire, &mut room)))
            }
        }
    };
    xml.into_string() + "\n"
}

/// The number of tests, failures, errors and skipped tests among these results.
fn counts(states: impl Iterator<Item = CellState>) -> [u64; 4] {
    let mut counts = [0; 4];
    for state in states {
        counts[0] += 1;
        match state {
            CellState::Passed => {}
            CellState::Failed => counts[1] += 1,
            CellState::Error => counts[2] += 1,
            CellState::NotExercised | CellState::NotApplicable => counts[3] += 1,
        }
    }
    counts
}

/// The result of the run itself, if its cells do not show it.
fn result_of_the_run(state: RunState) -> Option<CellState> {
    match state {
        RunState::Passed | RunState::Failed => None,
        // The agent has not failed, but the run must not appear as passed.
        RunState::Inconclusive | RunState::Errored => Some(CellState::Error),
        RunState::Cancelled | RunState::Queued | RunState::AwaitingApproval | RunState::Running => {
            Some(CellState::NotExercised)
        }
    }
}

fn the_run(run: &RunRecord, state: CellState) -> Markup {
    let step = next_step(run).map(|step| format!(" {step}"));
    let why = words::why(run) + &step.unwrap_or_default();
    html! {
        testcase classname=(THE_RUN) name=(run.kind.as_str()) time=(words::seconds(0.0)) {
            @if state == CellState::Error {
                error type=(words::verdict(run)) message=(why) {}
            } @else {
                skipped message=(why) {}
            }
        }
    }
}

fn suite(report: &Report, name: &str, counts: [u64; 4], cases: &Markup) -> Markup {
    let run = &report.run;
    let [tests, failures, errors, skipped] = counts;
    let properties = [
        ("squall.version", report.squall_version.clone()),
        ("squall.run", run.id.clone()),
        ("squall.state", run.state.as_str().to_owned()),
        ("squall.score", words::score_or_none(run.score)),
        ("squall.coverage", words::coverage(run)),
        ("squall.seed", run.seed.to_string()),
    ];
    let properties = properties.map(|(name, value)| (name.to_owned(), value));
    let groups = report.failure_groups.iter().take(MOST_GROUPS);
    let groups = groups.zip(1..).map(|(group, number)| {
        let value = format!(
            "{} × {}: {}",
            group.invocations,
            group.invariant,
            group.cause()
        );
        (format!("squall.failure_group.{number}"), value)
    });
    let shrunk = words::shrunk(run).into_iter().zip(1..);
    let shrunk = shrunk.map(|(line, number)| (format!("squall.shrunk.{number}"), line));
    let properties = properties.into_iter().chain(groups).chain(shrunk);
    let began = moment(run.started_at.as_ref().unwrap_or(&run.created_at));
    html! {
        testsuite name=(name) package=(run.name) id=(run.id) tests=(tests) failures=(failures)
            errors=(errors) skipped=(skipped) timestamp=(began) {
            properties { @for (name, value) in properties { property name=(name) value=(value) {} } }
            (cases)
        }
    }
}

/// `room` is the remaining number of bytes for texts of cases.
fn cases(cells: &[&CellRecord], wire: &Wire<'_>, room: &mut usize) -> Markup {
    html! {
        @for cell in cells {
            testcase name=(case_name(cell)) classname=(cell.scenario) time=(words::seconds(ms(cell))) {
                (result(cell, wire, room))
            }
        }
    }
}

fn result(cell: &CellRecord, wire: &Wire<'_>, room: &mut usize) -> Markup {
    let reason = short(cell.reason.as_deref().unwrap_or_default(), MOST_MESSAGE);
    let kind = if cell.baseline_failed {
        format!("{}, without chaos too", cell.severity)
    } else {
        cell.severity.clone()
    };
    let mut happened = || {
        let story = story(cell, wire);
        match room.checked_sub(story.len()) {
            Some(left) => {
                *room = left;
                story
            }
            None => "Details are left out here: the JSON form has them.".to_owned(),
        }
    };
    match cell.state {
        CellState::Passed => Markup::default(),
        CellState::Failed => {
            html! { failure type=(kind) message=(reason) { (happened()) } }
        }
        CellState::Error => html! { error type=(kind) message=(reason) { (happened()) } },
        CellState::NotExercised | CellState::NotApplicable => {
            html! { skipped message={ (words::state(cell.state)) ": " (reason) } {} }
        }
    }
}

fn case_name(cell: &CellRecord) -> String {
    let mutation = cell.mutation.as_ref();
    let mutation = mutation.map_or_else(String::new, |kind| format!(" ({kind})"));
    format!("{}{mutation}", cell.invariant)
}

/// The invocations of a cell, as lines.
fn story(cell: &CellRecord, wire: &Wire<'_>) -> String {
    let stories = wire.stories(cell);
    let mut lines = Vec::new();
    for story in stories.iter().take(MOST_INVOCATIONS) {
        let invocation = story.invocation;
        lines.extend(invocation.repeat.map(|repeat| format!("repeat: {repeat}")));
        lines.push(format!("prompt: {}", short(&invocation.prompt, MOST_TEXT)));
        let made = words::mutation_of(invocation).into_iter();
        lines.extend(made.map(|made| short(&made, MOST_TEXT).into_owned()));
        lines.push(match &invocation.answer {
            Some(answer) => format!("answer: {}", short(answer, MOST_TEXT)),
            None => "no answer".to_owned(),
        });
        if let Some(reason) = &invocation.reason {
            lines.push(format!("reason: {}", short(reason, MOST_TEXT)));
        }
        lines.extend(story.injections().iter().map(|one| injected(one, cell)));
        lines.push(String::new());
    }
    let left = stories.len().saturating_sub(MOST_INVOCATIONS);
    if left > 0 {
        lines.push(format!(
            "{} in the JSON form",
            count(left, "more invocation")
        ));
    }
    lines.extend(advice(wire, cell, &stories).map(|advice| format!("to do: {advice}")));
    lines.join("\n")
}

/// A text, shortened to this length.
fn short(text: &str, most: usize) -> Cow<'_, str> {
    match cut(text, most) {
        (_, 0) => Cow::Borrowed(text),
        (kept, left) => Cow::Owned(format!("{kept}… {left} bytes more in the JSON form")),
    }
}

fn injected(injection: &InjectedFault<'_>, cell: &CellRecord) -> String {
    let rule = injection.rule;
    format!(
        "injected: {} ({}, {} of {}) into {}, {}",
        rule.rule,
        rule.mode,
        rule.family,
        words::origin(rule, cell),
        injection.on,
        times(injection.times)
    )
}

/// The duration of the run, in milliseconds.
fn wall(run: &RunRecord) -> f64 {
    let moment = |at: &Option<String>| at.as_deref().and_then(|at| timestamp::parse(at).ok());
    let took = moment(&run.started_at).zip(moment(&run.finished_at));
    #[expect(clippy::cast_precision_loss, reason = "milliseconds of a run")]
    took.map_or(0.0, |(from, to)| to.saturating_sub(from) as f64)
}

/// The total time of a cell's invocations, in milliseconds.
fn ms(cell: &CellRecord) -> f64 {
    cell.evidence
        .iter()
        .map(|invocation| invocation.latency_ms)
        .sum()
}

/// `xs:dateTime` without fractions, which some readers require.
fn moment(rfc3339: &str) -> String {
    let ms = timestamp::parse(rfc3339).unwrap_or(0);
    timestamp::rfc3339(ms)
        .chars()
        .take("2026-11-22T12:00:00".len())
        .collect()
}
