//! The verdict on a run: scores its parts against the pass criteria and an earlier run.

use super::spec::RunSpec;
use super::{Component, Ran, exploring, loading, replays};
use crate::count::count;
use crate::run::{
    CellState, CheckRecord, ComparisonRecord, CoverageRecord, CrewEdge, DemandRecord,
    DistributionRecord, DocumentVersion, ExplorationRecord, LoadRecord, RecoveryRecord,
    ReplayRecord, RunKind, RunRecord, ScenarioRecord, ScoresRecord, SearchRecord, ShrunkRecord,
    StabilityRecord,
};
use crate::scores::{Executed, RunOutcome, comparison, outcome, overall, worst};

/// The result of a run. Its cells are reported separately, as they are judged.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunResult {
    /// Whether the agent met the pass criteria; `None`: inconclusive.
    pub passed: Option<bool>,
    /// The overall score, 0 to 100; `None`: there was nothing to judge.
    pub score: Option<f64>,
    /// The scores of the run's parts.
    pub scores: ScoresRecord,
    /// The reason for the verdict.
    pub reason: Option<String>,
    /// The record of each scenario.
    pub scenarios: Vec<ScenarioRecord>,
    /// The invariants that were judged.
    pub demands: Vec<DemandRecord>,
    /// The files that the agent is started with.
    pub documents: Vec<DocumentVersion>,
    /// The agent's recovery rate for each family of faults.
    pub recoveries: Vec<RecoveryRecord>,
    /// How consistent the repeats are; `None` without repeats.
    pub stability: Option<StabilityRecord>,
    /// The distributions of the invocations' numbers.
    pub distributions: Vec<DistributionRecord>,
    /// The search for failing mutants; `None`: there was none.
    pub search: Option<SearchRecord>,
    /// The replayed sessions.
    pub replays: Vec<ReplayRecord>,
    /// What crossed the edges of a crew.
    pub crew: Vec<CrewEdge>,
    /// Changes since the baseline run; `None` without a baseline.
    pub comparison: Option<ComparisonRecord>,
    /// Warnings about the run.
    pub warnings: Vec<String>,
    /// The shrunk failures.
    pub shrunk: Vec<ShrunkRecord>,
    /// The exploration over calls; `None`: there was none.
    pub exploration: Option<ExplorationRecord>,
    /// What was measured under rising concurrency; `None`: the run is of another kind.
    pub load: Option<LoadRecord>,
    /// The checks of a run of kind `verify`.
    pub checks: Vec<CheckRecord>,
}

impl RunResult {
    /// Writes the result into the run's record, except `passed` and `reason`.
    pub fn write_into(self, record: &mut RunRecord) {
        record.score = self.score;
        record.scores = self.scores;
        record.scenarios = self.scenarios;
        record.demands = self.demands;
        record.documents.extend(self.documents);
        record.recoveries = self.recoveries;
        record.stability = self.stability;
        record.distributions = self.distributions;
        record.search = self.search;
        record.replays = self.replays;
        record.crew = self.crew;
        record.comparison = self.comparison;
        record.warnings = self.warnings;
        record.shrunk = self.shrunk;
        record.exploration = self.exploration.or(record.exploration.take());
        record.load = self.load.or(record.load.take());
        record.checks = self.checks;
    }
}

/// The result of an executed run.
pub(super) fn result(spec: &RunSpec, ran: Ran) -> RunResult {
    let of = |component| ran.parts.iter().find(|part| part.component == component);
    let chaos = of(Component::Chaos).and_then(|part| part.chaos_resilience);
    let contract = of(Component::Contract).and_then(|part| part.matrix.score());
    let replays = replays::score(spec.expects_failure, &ran.parts);
    // Search selects mutants that fail. Its parts come later and do not count, so scores stay comparable.
    let robustness = of(Component::Mutation).and_then(|part| part.robustness);
    let mut scores = ScoresRecord {
        mutation_robustness: robustness,
        chaos_resilience: chaos,
        contract_compliance: contract,
        replay_regression: replays,
        ..ScoresRecord::default()
    };
    // With one part, the overall score is that part's score.
    let explored = ran.exploration.as_ref();
    let score = match (explored, &ran.load) {
        (Some(record), _) => exploring::score(record),
        (_, Some(load)) => load.lowest(),
        (None, None) => overall(&scores, &spec.suite.scoring),
    };
    scores.overall = score;
    let parts = ran.parts.iter().filter_map(|part| {
        let (score, is_contract) = match part.component {
            Component::Chaos => (chaos, false),
            Component::Contract => (contract, true),
            Component::Mutation => (robustness, false),
            Component::Replay => (replays::score(spec.expects_failure, [part]), false),
            // Their own figures decide.
            Component::Exploration | Component::Load(_) => return None,
        };
        Some((&part.matrix, score, is_contract))
    });
    let fails_at_zero = spec.kind != RunKind::Contract;
    let outcome = match &ran.load {
        Some(load) => loading::outcome(load, spec.criteria.min_score.is_some()),
        None => outcome(parts, score, spec.criteria, fails_at_zero),
    };
    let decides = spec.kind == RunKind::Replay && spec.criteria.min_score.is_none();
    let sessions = replays::outcome(spec.expects_failure, decides, &ran.parts);
    let has_minimum = spec.criteria.min_score.is_some();
    let points = explored.and_then(|record| exploring::outcome(record, has_minimum));
    let outcome = worst(sessions.into_iter().chain(points).chain([outcome]));
    let cells = ran.parts.iter().flat_map(|part| &part.matrix.cells);
    let cells: Vec<_> = cells.collect();
    let columns = ran.parts.iter().flat_map(|part| &part.matrix.columns);
    let scenarios: Vec<_> = columns.map(|column| column.scenario.clone()).collect();
    let executed = Executed {
        cells: &cells,
        scenarios: &scenarios,
        distributions: &ran.distributions,
    };
    let compared = spec.baseline.as_ref();
    let compared = compared.map(|baseline| comparison(baseline, executed));
    let worse = compared
        .as_ref()
        .and_then(|compared| worse(compared, score));
    let (passed, reason) = match (outcome, worse) {
        (RunOutcome::Failed(reason), _) => (Some(false), reason),
        (_, Some(worse)) if spec.fails_if_worse => (Some(false), worse),
        (RunOutcome::Passed(_), _) if let Some(why) = &ran.proves_nothing => (None, why.clone()),
        (RunOutcome::Passed(reason), _) => (Some(true), reason),
        (RunOutcome::Inconclusive(reason), _) => (None, reason),
    };
    // A run whose prompts only passed without chaos has no resilience score.
    let has_score = passed.is_some() || ran.coverage.exercised > 0;
    let mut demands: Vec<DemandRecord> = Vec::new();
    for demand in ran.parts.iter().flat_map(|part| &part.demands) {
        // Sessions share invariants.
        if !demands.contains(demand) {
            demands.push(demand.clone());
        }
    }
    let mut warnings = ran.warnings;
    warnings.extend(unrecorded(spec, &ran.replays));
    warnings.extend(spec.unfetched_sources());
    warnings.extend(spec.warnings.iter().cloned());
    warnings.extend(spec.one_at_a_time());
    warnings.extend(spec.of_another_suite());
    warnings.extend(without_faults(spec, ran.load.as_ref(), &ran.coverage));
    RunResult {
        passed,
        score: score.filter(|_| has_score),
        scores: if has_score {
            scores
        } else {
            ScoresRecord::default()
        },
        reason: Some(reason),
        scenarios,
        demands,
        documents: Vec::new(),
        recoveries: ran.recoveries,
        stability: ran.stability,
        distributions: ran.distributions,
        search: None,
        replays: ran.replays,
        crew: ran.crew,
        comparison: compared,
        warnings,
        shrunk: ran.shrunk,
        exploration: ran.exploration,
        load: ran.load,
        checks: Vec::new(),
    }
}

/// Warnings about failed sessions whose calls had no recorded response.
fn unrecorded(spec: &RunSpec, replays: &[ReplayRecord]) -> Vec<String> {
    let failed = replays.iter();
    let failed = failed.filter(|one| spec.expects_failure && one.state == CellState::Failed);
    let unrecorded = failed.filter(|one| one.missed > 0).map(|one| {
        format!(
            "session `{}` failed, and {} of its calls had no recorded response: it may fail for another reason",
            one.session, one.missed
        )
    });
    unrecorded.collect()
}

/// Describes what is worse than in the baseline.
fn worse(compared: &ComparisonRecord, score: Option<f64>) -> Option<String> {
    if !compared.is_regression(score) {
        return None;
    }
    let broken = compared.broken();
    let cells = (broken > 0).then(|| format!("{} newly failed", count(broken, "cell")));
    let fallen = compared.score_before.zip(score);
    let fallen = fallen.filter(|(before, now)| now < before);
    let fallen = fallen.map(|(before, now)| format!("the score fell from {before:.1} to {now:.1}"));
    let what: Vec<_> = cells.into_iter().chain(fallen).collect();
    Some(format!(
        "worse than run {}: {}",
        compared.baseline,
        what.join(", ")
    ))
}

/// A warning about a load run that injected nothing.
fn without_faults(
    spec: &RunSpec,
    load: Option<&LoadRecord>,
    coverage: &CoverageRecord,
) -> Option<String> {
    let chaos = spec.chaos.as_ref().filter(|chaos| chaos.active.any());
    let name = &chaos
        .filter(|_| load.is_some() && coverage.rules_applied == 0)?
        .name;
    Some(format!(
        "no fault of `{name}` was applied at any level, so these are the figures of the agent without chaos; lower the \
         profile's limits, or raise `--concurrency`"
    ))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::spec::tests::spec;
    use super::*;
    use crate::run::CellRecord;
    use crate::runner::{RanPart, Trial};
    use crate::scores::{Column, Matrix};

    /// A part with one cell, judged under chaos.
    fn part(component: Component, severity: &str, state: CellState) -> RanPart {
        let cell = CellRecord {
            invariant: "i".into(),
            scenario: "down".into(),
            severity: severity.into(),
            state,
            reason: None,
            faults_applied: 1,
            mutation: None,
            baseline_failed: false,
            evidence: Vec::new(),
        };
        let column = Column {
            scenario: ScenarioRecord {
                name: "down".into(),
                under_chaos: true,
                rules_applied: 1,
                invocations: 1,
                passed: 0,
                judged: 0,
                rules: Vec::new(),
                daemon: None,
            },
            idle: None,
        };
        RanPart {
            component,
            matrix: Matrix {
                columns: vec![column],
                cells: vec![cell],
            },
            demands: Vec::new(),
            chaos_resilience: Some(40.0).filter(|_| component == Component::Chaos),
            robustness: None,
        }
    }

    fn ran(parts: Vec<RanPart>) -> Ran {
        Ran {
            parts,
            ..Ran::default()
        }
    }

    #[test]
    fn a_contract_alone_of_which_nothing_holds_fails_in_ci_only() {
        for (kind, passed) in [(RunKind::Ci, Some(false)), (RunKind::Contract, Some(true))] {
            let spec = RunSpec { kind, ..spec("") };
            let nothing = part(Component::Contract, "high", CellState::Failed);
            let result = result(&spec, ran(vec![nothing]));
            assert_eq!(result.passed, passed, "{kind:?}: {result:?}");
        }
    }

    #[test]
    fn a_load_run_that_injected_nothing_says_so() {
        let rule = "chaos: {llm_faults: [{mode: rate_limit, rpm: 60}]}";
        let with_chaos = |spec: RunSpec| {
            let chaos = spec
                .suite
                .chaos
                .as_ref()
                .map(|chaos| Trial::of("limits", chaos));
            RunSpec { chaos, ..spec }
        };
        for (rules_applied, told) in [(0, true), (1, false)] {
            let mut ran = ran(Vec::new());
            ran.load = Some(LoadRecord::default());
            ran.coverage.rules_applied = rules_applied;
            let spec = RunSpec {
                kind: RunKind::Load,
                ..with_chaos(spec(rule))
            };
            let warnings = result(&spec, ran).warnings;
            let is_told = warnings.iter().any(|one| one.contains("no fault of"));
            assert_eq!(is_told, told, "{rules_applied}: {warnings:?}");
        }
    }

    #[test]
    fn a_baseline_of_another_suite_is_told_of() {
        let mut spec = spec("");
        assert_eq!(spec.of_another_suite(), None);
        for (name, told) in [("shop", false), ("desk", true)] {
            spec.baseline = Some(Arc::new(RunRecord::queued("0194", RunKind::Ci, name, 1)));
            let warning = spec.of_another_suite().unwrap_or_default();
            assert_eq!(warning.contains("`desk`"), told, "{name}: {warning}");
        }
    }

    #[test]
    fn g51_the_overall_score_alone_is_held_to_the_bar_and_one_verdict_is_told() {
        // Chaos scores 40, the contract scores 100 or nothing, and both have the same weight.
        for (least, severity, state, score, passed) in [
            (Some(60.0), "high", CellState::Passed, 70.0, true),
            (Some(80.0), "high", CellState::Passed, 70.0, false),
            (None, "high", CellState::Failed, 20.0, true),
            (None, "critical", CellState::Failed, 20.0, false),
        ] {
            let mut spec = spec("");
            spec.criteria.min_score = least;
            let result = result(
                &spec,
                ran(vec![
                    part(Component::Chaos, "medium", CellState::Failed),
                    part(Component::Contract, severity, state),
                ]),
            );
            let told = format!("{least:?} {severity} {state:?}: {result:?}");
            assert_eq!(result.passed, Some(passed), "{told}");
            let overall = result.score.expect("a score");
            assert!((overall - score).abs() < 1e-9, "{told}");
        }
    }
}
