//! Numbers and verdicts as text, shared by all formats.

use crate::count::count;
use squall_journal::record::RuleRecord;

use crate::run::{
    CellRecord, CellState, ComparisonRecord, CrewEdge, DistributionRecord, DivergenceState,
    EvidenceRecord, ReplayRecord, RunKind, RunRecord, RunState, ScoresRecord, SearchRecord,
    ShiftRecord, ShrunkRecord,
};
use crate::scores::score_beside;

/// A score or a share with at most one decimal. Never rounded to 100 or 0.
pub fn score(score: f64) -> String {
    let rounded = (score * 10.0).round() / 10.0;
    let honest = match rounded {
        full if full >= 100.0 && score < 100.0 => 99.9,
        none if none <= 0.0 && score > 0.0 => 0.1,
        other => other,
    };
    format!("{honest}")
}

/// A score, or a dash if there is none.
pub(super) fn score_or_none(found: Option<f64>) -> String {
    found.map_or_else(|| "–".to_owned(), score)
}

/// A number of milliseconds.
pub fn milliseconds(ms: f64) -> String {
    match ms {
        short if short < 10.0 => format!("{short:.1} ms"),
        // Whole milliseconds, rounded down, as in the reasons of invariants.
        middle if middle < 10_000.0 => format!("{:.0} ms", middle.floor()),
        long => format!("{:.1} s", long / 1000.0),
    }
}

/// The verdict in words.
pub(super) fn verdict(run: &RunRecord) -> String {
    run.state.as_str().replace('_', " ")
}

/// A state of a cell for people.
pub(super) fn state(state: CellState) -> String {
    state.as_str().replace('_', " ")
}

/// What a run of this kind does.
pub(super) fn kind(kind: RunKind) -> &'static str {
    match kind {
        RunKind::Chaos => "golden prompts under chaos",
        RunKind::Contract => "invariants × scenarios",
        RunKind::Mutation => "mutations of golden prompts",
        RunKind::Replay => "recorded sessions",
        RunKind::Explore => "faults on every call",
        RunKind::Load => "golden prompts under rising concurrency",
        RunKind::Ci => "everything the suite configures",
        RunKind::Verify => "whether a run could be made",
    }
}

/// A text as a sentence with an end mark.
fn sentence(said: &str) -> String {
    let ends = said.ends_with(['.', '?', '!']);
    format!("{}{}", capital(said), if ends { "" } else { "." })
}

/// The reason of the verdict, in one or two sentences.
pub(super) fn why(run: &RunRecord) -> String {
    let mut said = Vec::new();
    if let Some(error) = &run.error {
        said.push(format!("The run failed: {error}."));
    }
    if let Some(reason) = &run.reason {
        said.push(sentence(reason));
    }
    if let Some((score, least)) = run.score.zip(run.min_score) {
        let beside = if score < least { "below" } else { "not below" };
        let score = score_beside(score, least);
        said.push(format!(
            "The score {score} is {beside} the {least} required."
        ));
    }
    let failed = run
        .cells
        .iter()
        .filter(|cell| cell.state == CellState::Failed);
    let is_critical = failed.clone().any(|cell| cell.severity == "critical");
    let failed = failed.count();
    if said.is_empty() {
        said.push(match run.state {
            RunState::Passed if failed > 0 => format!(
                "{} failed. {}, and no minimum score is set.",
                count(failed, "cell"),
                // In a contract's scenarios they fail the run.
                if is_critical {
                    "Critical ones fail a run only in scenarios of a contract"
                } else {
                    "None of them is critical"
                }
            ),
            RunState::Passed => "The agent passed.".to_owned(),
            RunState::Failed => "The agent failed.".to_owned(),
            RunState::Inconclusive => "Inconclusive.".to_owned(),
            RunState::Errored | RunState::Cancelled => "The run did not finish.".to_owned(),
            RunState::Queued | RunState::AwaitingApproval | RunState::Running => {
                "The run is not finished.".to_owned()
            }
        });
    }
    said.join(" ")
}

/// The coverage of the run, in a sentence.
pub fn coverage(run: &RunRecord) -> String {
    let coverage = &run.coverage;
    format!(
        "{} of {} under chaos exercised, {} applied, {} of the agent",
        coverage.exercised,
        count(coverage.chaos_cells, "cell"),
        count(coverage.rules_applied, "fault"),
        count(coverage.agent_invocations, "invocation"),
    )
}

/// What crossed an edge of a crew, in a few words.
pub(super) fn crossed(edge: &CrewEdge) -> String {
    let failed = (edge.failed > 0).then(|| format!("{} failed", edge.failed));
    let faults = (edge.faults > 0).then(|| count(edge.faults, "fault"));
    let more = failed.into_iter().chain(faults);
    let all: Vec<_> = [count(edge.calls, "call")]
        .into_iter()
        .chain(more)
        .collect();
    all.join(", ")
}

/// A replayed session in a line: its result, its calls, and the recorded failure.
pub fn replayed(replay: &ReplayRecord) -> String {
    let counts = DivergenceState::NAMES.iter().map(|(name, state)| {
        let calls = replay.calls.iter().filter(|call| call.state == *state);
        format!("{} {name}", calls.count())
    });
    let counts = counts.collect::<Vec<_>>().join(", ");
    let failure = replay.expected_failure.as_ref();
    let failure = failure.map_or_else(String::new, |why| format!("; recorded failure: {why}"));
    let (served, missed, dialled) = (replay.served, replay.missed, replay.dialled);
    format!(
        "{}: {}; calls: {counts}; responses: {served} recorded, {missed} not on the tape, {dialled} live{failure}",
        replay.session,
        state(replay.state)
    )
}

/// The existing component scores.
pub fn components(scores: &ScoresRecord) -> Vec<(&'static str, f64)> {
    let named = [
        ("mutation robustness", scores.mutation_robustness),
        ("chaos resilience", scores.chaos_resilience),
        ("contract compliance", scores.contract_compliance),
        ("replay regression", scores.replay_regression),
        ("overall", scores.overall),
    ];
    let there = named.into_iter();
    there
        .filter_map(|(name, score)| Some((name, score?)))
        .collect()
}

/// Recovery from each fault family, stability over repeats, and the search for mutants, a line each.
pub fn repeats(run: &RunRecord) -> Vec<String> {
    let mut lines = Vec::new();
    for family in &run.recoveries {
        let [rate, low, high] = [family.rate, family.low, family.high].map(score);
        lines.push(format!(
            "recovers from {}: {} of {}, {rate} % (95 %: {low} to {high})",
            family.family.replace('_', " "),
            family.passed,
            count(family.judged, "invocation"),
        ));
    }
    lines.extend(run.stability.as_ref().map(|stability| {
        format!(
            "repeated {} times: {} of {} prompts in scenarios passed every time, {} flaky",
            stability.repeats, stability.always_passed, stability.judged, stability.flaky
        )
    }));
    lines.extend(run.search.as_ref().map(search));
    lines
}

/// The headings of [`distributions`].
pub const DISTRIBUTION: [&str; 8] = [
    "Scenario", "Measure", "Known", "Least", "Median", "90 %", "95 %", "Greatest",
];

/// The distributions over repeats, a row each; none without repeats.
pub fn distributions(run: &RunRecord) -> Vec<[String; 8]> {
    let repeated = run.distributions.iter().filter(|_| run.stability.is_some());
    let row = |one: &DistributionRecord| {
        let values = [one.min, one.p50, one.p90, one.p95, one.max];
        let [min, p50, p90, p95, max] = values.map(|value| measured(&one.of, value));
        let (scenario, known) = (one.scenario.clone(), one.values.len().to_string());
        [scenario, one.of.clone(), known, min, p50, p90, p95, max]
    };
    repeated.map(row).collect()
}

/// A number of an invocation, with its unit.
fn measured(of: &str, value: f64) -> String {
    match of {
        "latency" => milliseconds(value),
        "cost" => format!("{value:.6} USD"),
        _ => format!("{}", (value * 10.0).round() / 10.0),
    }
}

/// The headings of [`crew`].
pub const CREW: [&str; 5] = ["From", "To", "Calls", "Failed", "Faults"];

/// What crossed the edges of a crew, a row each.
pub fn crew(run: &RunRecord) -> Vec<[String; 5]> {
    let row = |edge: &CrewEdge| {
        let [calls, failed, faults] = [edge.calls, edge.failed, edge.faults].map(|n| n.to_string());
        let (from, to) = (edge.caller().to_owned(), edge.to.clone());
        [from, to, calls, failed, faults]
    };
    run.crew.iter().map(row).collect()
}

/// The headings of [`shifts`].
pub const SHIFT: [&str; 5] = ["Beyond chance", "Scenario", "Before", "Now", "p"];

/// What differs beyond chance, a row each.
pub fn shifts(comparison: &ComparisonRecord) -> Vec<[String; 5]> {
    let row = |one: &ShiftRecord| {
        let what = match (&*one.of, &one.invariant) {
            ("passed", Some(invariant)) => format!("{invariant} passed"),
            ("passed", None) => "all invariants passed".to_owned(),
            (number, _) => format!("median {number}"),
        };
        let mutation = one.mutation.as_ref();
        let mutation = mutation.map_or_else(String::new, |kind| format!(" ({kind})"));
        let both = [
            (one.before, one.values_before),
            (one.after, one.values_after),
        ];
        let [before, now] = both.map(|(value, of)| match &*one.of {
            "passed" => format!("{} % of {of}", score(value)),
            number => format!("{} ({of})", measured(number, value)),
        });
        let scenario = one.scenario.as_deref().unwrap_or("all");
        [
            what + &mutation,
            scenario.to_owned(),
            before,
            now,
            if one.p < 0.0001 {
                "< 0.0001".to_owned()
            } else {
                format!("{:.4}", one.p)
            },
        ]
    };
    comparison.shifts.iter().map(row).collect()
}

/// How many tests found how many differences; `None`: nothing could be tested.
pub fn tests(comparison: &ComparisonRecord) -> Option<String> {
    let ComparisonRecord {
        shifts,
        tests,
        untested,
        ..
    } = comparison;
    if *tests + *untested == 0 {
        return None;
    }
    let untested = if *untested > 0 {
        format!(
            "; {} changed in too few invocations to test (`--repeat`)",
            count(*untested, "cell")
        )
    } else {
        String::new()
    };
    Some(format!(
        "{} beyond chance in {}{untested}",
        count(shifts.len() as u64, "difference"),
        count(*tests, "test"),
    ))
}

/// The search for failing mutants, in a line.
fn search(search: &SearchRecord) -> String {
    let failed = search.failed.iter().enumerate();
    let failed = failed.filter(|(_, failed)| **failed > 0);
    let failed = failed.map(|(number, failed)| format!("{failed} in generation {}", number + 1));
    let failed: Vec<_> = failed.collect();
    let failed = match &*failed {
        [] => "no mutant failed".to_owned(),
        failed => format!("failed mutants: {}", failed.join(", ")),
    };
    let dollars = search.dollars.map(|dollars| format!(", {dollars:.4} USD"));
    format!(
        "searched {} in {}{}: {failed}; {}",
        count(search.generations, "generation"),
        count(search.invocations, "invocation"),
        dollars.unwrap_or_default(),
        search.ended
    )
}

/// The shrunk failures, a line each. Those of an exploration are points of its heat map, or listed below it.
pub fn shrunk(run: &RunRecord) -> Vec<String> {
    let shrunk = run.shrunk.iter().filter(|_| run.exploration.is_none());
    let line =
        |one: &ShrunkRecord| format!("{} in {}: {}", one.invariant, one.scenario, one.result());
    shrunk.map(line).collect()
}

/// A cell's name: invariant, scenario and mutation.
pub(super) fn cell(cell: &CellRecord) -> String {
    let mutation = cell.mutation.as_ref();
    let mutation = mutation.map_or_else(String::new, |kind| format!(" ({kind})"));
    format!("{} in {}{mutation}", cell.invariant, cell.scenario)
}

/// Where an applied rule was written: in a profile, or in the scenario itself.
pub(super) fn origin(rule: &RuleRecord, cell: &CellRecord) -> String {
    if rule.profile == "inline" {
        format!("scenario {}", cell.scenario)
    } else {
        rule.profile.clone()
    }
}

/// The heading above the prompt of an invocation.
pub(super) fn prompt_of(invocation: &EvidenceRecord) -> String {
    invocation.repeat.map_or_else(
        || "Prompt".to_owned(),
        |repeat| format!("Prompt, in repeat {repeat}"),
    )
}

/// How the prompt or the request of an invocation was changed, as lines; none without mutation.
pub(super) fn mutation_of(invocation: &EvidenceRecord) -> Vec<String> {
    let Some(mutant) = &invocation.mutant else {
        return Vec::new();
    };
    let request = mutant.request.as_ref();
    let request = request.map(|change| format!("changed request: {change}"));
    let made = [
        format!("golden prompt: {}", mutant.original.join(" / ")),
        format!("mutation {}: {}", mutant.kind, mutant.lineage.join(", ")),
    ];
    made.into_iter().chain(request).collect()
}

/// Milliseconds as seconds, for machines.
pub(super) fn seconds(ms: f64) -> String {
    format!("{:.3}", ms / 1000.0)
}

fn capital(text: &str) -> String {
    let mut characters = text.chars();
    match characters.next() {
        Some(first) => first.to_uppercase().chain(characters).collect(),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::testing::run;

    #[test]
    fn a_critical_failure_outside_a_contract_is_not_denied() {
        let mut run = run();
        run.state = RunState::Passed;
        (run.error, run.reason, run.score) = (None, None, None);
        for (severity, expected) in [
            ("high", "None of them is critical"),
            ("critical", "Critical ones"),
        ] {
            for cell in &mut run.cells {
                severity.clone_into(&mut cell.severity);
            }
            assert!(why(&run).contains(expected), "{}", why(&run));
        }
    }

    #[test]
    fn a_sentence_ends_once() {
        for (said, expected) in [("is it?", "Is it?"), ("done.", "Done."), ("done", "Done.")] {
            assert_eq!(sentence(said), expected);
        }
    }

    #[test]
    fn a_score_is_never_rounded_to_what_it_is_not() {
        for (given, expected) in [
            (0.0, "0"),
            (0.01, "0.1"),
            (41.666, "41.7"),
            (50.0, "50"),
            (99.99, "99.9"),
            (100.0, "100"),
        ] {
            assert_eq!(score(given), expected);
        }
    }
}
