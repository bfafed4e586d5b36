//! The figures of a run: scores, coverage, recoveries, repeats, and the comparison with a baseline.

use squall_harness::run::{
    CellChange, CellState, ComparisonRecord, RecoveryRecord, RunRecord, StabilityRecord,
};

use super::score;
use crate::render::clean;
use crate::render::paint::Paint;

/// Most cells in the comparison.
const TOLD: usize = 5;

/// Most characters of a name.
const NAME: usize = 60;

pub(super) fn render(run: &RunRecord, paint: Paint) -> Vec<String> {
    let mut lines = vec![result(run, paint)];
    let parts = parts(run);
    if parts.len() > 1 {
        lines.push(format!("  {}", parts.join(", ")));
    }
    lines.extend(run.recoveries.iter().map(recovery));
    lines.extend(run.stability.as_ref().map(stability));
    if let Some(comparison) = &run.comparison {
        lines.extend(compared(comparison, run.score, paint));
    }
    for warning in &run.warnings {
        lines.push(format!(
            "{} {}",
            paint.notable("warning:"),
            clean(warning, 400)
        ));
    }
    lines
}

fn result(run: &RunRecord, paint: Paint) -> String {
    let coverage = &run.coverage;
    let told = match run.score {
        Some(_) => format!("score {} of 100", paint.strong(score(run.score))),
        None => "no score".to_owned(),
    };
    let minimum = run
        .min_score
        .map(|minimum| format!(" (minimum {})", score(Some(minimum))));
    format!(
        "{told}{}: {} of {} chaos cells exercised, {} faults applied in {} invocations",
        minimum.unwrap_or_default(),
        coverage.exercised,
        coverage.chaos_cells,
        coverage.rules_applied,
        coverage.agent_invocations,
    )
}

fn parts(run: &RunRecord) -> Vec<String> {
    let scores = &run.scores;
    let parts = [
        ("mutation robustness", scores.mutation_robustness),
        ("chaos resilience", scores.chaos_resilience),
        ("contract compliance", scores.contract_compliance),
        ("replay regression", scores.replay_regression),
    ];
    let parts = parts.into_iter().filter(|(_, found)| found.is_some());
    parts
        .map(|(name, found)| format!("{name} {}", score(found)))
        .collect()
}

fn recovery(recovery: &RecoveryRecord) -> String {
    let RecoveryRecord {
        family,
        passed,
        judged,
        ..
    } = recovery;
    let [rate, low, high] =
        [recovery.rate, recovery.low, recovery.high].map(|rate| score(Some(rate)));
    format!(
        "  recovers from {}: {passed} of {judged} invocations, {rate} % (95 %: {low} to {high})",
        family.replace('_', " ")
    )
}

fn stability(stability: &StabilityRecord) -> String {
    let StabilityRecord {
        repeats,
        judged,
        always_passed,
        flaky,
        ..
    } = stability;
    format!(
        "  repeated {repeats} times: {always_passed} of {judged} prompts in scenarios passed every time, \
         {flaky} flaky"
    )
}

fn compared(comparison: &ComparisonRecord, now: Option<f64>, paint: Paint) -> Vec<String> {
    let before = match comparison.score_before {
        Some(_) => score(comparison.score_before),
        None => "no score".to_owned(),
    };
    let head = format!(
        "compared with run {} (score {before}): {} newly failing, {} fixed, {} other changes",
        clean(&comparison.baseline, 40),
        comparison.newly_failing.len(),
        comparison.fixed.len(),
        comparison.changed.len(),
    );
    let head = if comparison.is_regression(now) {
        paint.bad(head)
    } else {
        head
    };
    let newly = comparison.newly_failing.iter().take(TOLD);
    std::iter::once(head)
        .chain(newly.map(|change| format!("  {}", changed(change))))
        .collect()
}

fn changed(change: &CellChange) -> String {
    let word = |state: Option<CellState>| match state {
        None => "did not exist",
        Some(CellState::Passed) => "passed",
        Some(CellState::Failed) => "failed",
        Some(CellState::NotExercised) => "was not exercised",
        Some(CellState::NotApplicable) => "did not apply",
        Some(CellState::Error) => "could not be judged",
    };
    format!(
        "{} under {} {} before",
        clean(&change.invariant, NAME),
        clean(&change.scenario, NAME),
        word(change.before)
    )
}
