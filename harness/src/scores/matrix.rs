//! The matrix of invariants × scenarios: the score of a contract, its coverage, and the outcome of a run.

use super::share::{score_beside, score_of};
use crate::count::count;
use crate::run::{CellRecord, CellState, CoverageRecord, ScenarioRecord};

/// A scenario of a matrix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// The record of the scenario.
    pub scenario: ScenarioRecord,
    /// Why no planned fault was applied in it, if known.
    pub idle: Option<String>,
}

/// The cells of a part of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Matrix {
    /// The scenarios.
    pub columns: Vec<Column>,
    /// The cells, in any order.
    pub cells: Vec<CellRecord>,
}

/// The pass criteria of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct PassCriteria {
    /// Minimum score, 0 to 100. `None`: a contract passes unless a critical invariant failed; other runs pass
    /// unless their score is 0.
    pub min_score: Option<f64>,
    /// Whether a single cell that was not exercised makes the run inconclusive.
    pub strict: bool,
}

/// The outcome of a run, with the reason in a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunOutcome {
    /// The agent did not meet the pass criteria.
    Failed(String),
    /// The run proves nothing.
    Inconclusive(String),
    /// The agent met the pass criteria.
    Passed(String),
}

/// The outcome of a run with these parts: the matrix of each, its score, and whether a critical failure fails it.
/// `score` is the overall score. Without a minimum score, a score of 0 fails the run if `fails_at_zero`.
pub fn outcome<'m>(
    parts: impl IntoIterator<Item = (&'m Matrix, Option<f64>, bool)>,
    score: Option<f64>,
    criteria: PassCriteria,
    fails_at_zero: bool,
) -> RunOutcome {
    let parts = parts.into_iter().flat_map(|(matrix, score, is_contract)| {
        let critical = matrix.critical().filter(|_| is_contract);
        let inconclusive = matrix.inconclusive(score, criteria.strict);
        let inconclusive = inconclusive.map(RunOutcome::Inconclusive);
        critical.into_iter().chain(inconclusive)
    });
    worst(parts.chain([criteria.reached(score, fails_at_zero)]))
}

/// The first of the worst outcomes.
pub fn worst(outcomes: impl IntoIterator<Item = RunOutcome>) -> RunOutcome {
    let worst = outcomes.into_iter().min_by_key(|outcome| match outcome {
        RunOutcome::Failed(_) => 0,
        RunOutcome::Inconclusive(_) => 1,
        RunOutcome::Passed(_) => 2,
    });
    worst.unwrap_or_else(|| RunOutcome::Inconclusive("nothing was tried".to_owned()))
}

/// The beginning of the reason of a run with a scenario that was not exercised. The cause follows.
pub(crate) fn unexercised(scenario: &str) -> String {
    format!("in scenario `{scenario}` no planned fault was ever applied: ")
}

impl PassCriteria {
    fn reached(self, score: Option<f64>, fails_at_zero: bool) -> RunOutcome {
        match (score, self.min_score) {
            (None, _) => RunOutcome::Inconclusive("nothing was left to judge".to_owned()),
            (Some(score), Some(least)) if score < least => RunOutcome::Failed(format!(
                "the score is {}, required is {least}",
                score_beside(score, least)
            )),
            (Some(score), None) if fails_at_zero && score <= 0.0 => {
                RunOutcome::Failed("the score is 0".to_owned())
            }
            (Some(score), None) if !fails_at_zero && score < 100.0 => RunOutcome::Passed(format!(
                "the score is {score:.1}; no critical invariant failed, and no minimum score is set"
            )),
            (Some(score), _) => RunOutcome::Passed(format!("the score is {score:.1}")),
        }
    }
}

impl Matrix {
    /// Passed weight divided by passed and failed weight; `None`: nothing was judged.
    pub fn score(&self) -> Option<f64> {
        let weigh = |state| {
            let cells = self.cells.iter().filter(move |cell| cell.state == state);
            cells.map(|cell| weight(&cell.severity)).sum::<u64>()
        };
        let (passed, failed) = (weigh(CellState::Passed), weigh(CellState::Failed));
        score_of(passed, passed + failed)
    }

    /// Whether all invariants hold that could be judged; `None`: none could be judged.
    pub fn holds(&self) -> Option<bool> {
        let any = |state| self.cells.iter().any(|cell| cell.state == state);
        let failed = any(CellState::Failed);
        (failed || any(CellState::Passed)).then_some(!failed)
    }

    /// What was executed.
    pub fn coverage(&self) -> CoverageRecord {
        // Cells excluded by `when` are not counted.
        let under_chaos = |cell: &&CellRecord| {
            cell.state != CellState::NotApplicable && self.is_under_chaos(&cell.scenario)
        };
        let exercised = |cell: &&CellRecord| {
            under_chaos(cell)
                && cell.faults_applied > 0
                && matches!(
                    cell.state,
                    CellState::Passed | CellState::Failed | CellState::Error
                )
        };
        let count = |number: usize| number as u64;
        let scenarios = || self.columns.iter().map(|column| &column.scenario);
        CoverageRecord {
            cells: count(self.cells.len()),
            chaos_cells: count(self.cells.iter().filter(under_chaos).count()),
            exercised: count(self.cells.iter().filter(exercised).count()),
            rules_applied: scenarios().map(|one| one.rules_applied).sum(),
            agent_invocations: scenarios().map(|one| one.invocations).sum(),
        }
    }

    fn critical(&self) -> Option<RunOutcome> {
        let is_critical =
            |cell: &&CellRecord| cell.state == CellState::Failed && cell.severity == "critical";
        let invariant = &self.cells.iter().find(is_critical)?.invariant;
        let failed = self.cells.iter().filter(is_critical);
        let failed = failed.filter(|cell| cell.invariant == *invariant);
        let scenarios: Vec<_> = failed.map(|cell| format!("`{}`", cell.scenario)).collect();
        let plural = if scenarios.len() == 1 { "" } else { "s" };
        let others = self.cells.iter().filter(is_critical).count() - scenarios.len();
        let more = match others {
            0 => String::new(),
            others => format!("; {} failed too", count(others, "other critical cell")),
        };
        Some(RunOutcome::Failed(format!(
            "critical invariant `{invariant}` failed in scenario{plural} {}{more}",
            scenarios.join(", ")
        )))
    }

    /// Why the run is inconclusive: a chaos scenario was never exercised, or cells could not be judged. `None`: it
    /// is conclusive.
    fn inconclusive(&self, score: Option<f64>, strict: bool) -> Option<String> {
        let mut columns = self.columns.iter();
        let unexercised =
            |column: &&Column| column.scenario.under_chaos && column.scenario.rules_applied == 0;
        if let Some(column) = columns.find(unexercised) {
            let why = column.idle.as_deref();
            return Some(format!(
                "{}{}",
                self::unexercised(&column.scenario.name),
                why.unwrap_or("the agent could not be called")
            ));
        }
        if score.is_none() {
            return Some("nothing was left to judge".to_owned());
        }
        if let Some(cell) = self.unjudged(strict) {
            return Some(format!(
                "invariant `{}` could not be judged in scenario `{}`: {}",
                cell.invariant,
                cell.scenario,
                cell.reason.as_deref().unwrap_or("no reason is recorded")
            ));
        }
        let mut cells = self.cells.iter();
        let idle = cells.find(|cell| {
            cell.state == CellState::NotExercised && self.is_under_chaos(&cell.scenario)
        });
        let idle = idle.filter(|_| strict)?;
        Some(format!(
            "invariant `{}` was not exercised in scenario `{}`: {}",
            idle.invariant,
            idle.scenario,
            idle.reason.as_deref().unwrap_or("no reason is recorded")
        ))
    }

    /// A cell in error that makes the run inconclusive. It belongs to a critical invariant, or to a scenario in
    /// which nothing could be judged. If `strict`, any cell in error counts.
    fn unjudged(&self, strict: bool) -> Option<&CellRecord> {
        let none_judged = |scenario: &str| {
            let judged = [
                CellState::Passed,
                CellState::Failed,
                CellState::NotExercised,
            ];
            let mut cells = self.cells.iter();
            !cells.any(|cell| cell.scenario == scenario && judged.contains(&cell.state))
        };
        let mut cells = self.cells.iter();
        cells.find(|cell| {
            cell.state == CellState::Error
                && (strict || cell.severity == "critical" || none_judged(&cell.scenario))
        })
    }

    fn is_under_chaos(&self, name: &str) -> bool {
        let mut scenarios = self.columns.iter().map(|column| &column.scenario);
        scenarios.any(|scenario| scenario.name == name && scenario.under_chaos)
    }
}

fn weight(severity: &str) -> u64 {
    match severity {
        "critical" => 3,
        "high" => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use crate::run::CellState::*;
    use proptest::prelude::*;

    use super::*;
    use crate::invariants::InvariantSeverity;

    fn cell(scenario: &str, severity: &str, state: CellState) -> CellRecord {
        CellRecord {
            invariant: "i".into(),
            scenario: scenario.into(),
            severity: severity.into(),
            state,
            reason: None,
            faults_applied: u64::from(state != NotExercised),
            mutation: None,
            baseline_failed: false,
            evidence: Vec::new(),
        }
    }

    fn matrix(cells: Vec<CellRecord>) -> Matrix {
        let column = |name: &str, under_chaos, rules_applied| Column {
            scenario: ScenarioRecord {
                name: name.into(),
                under_chaos,
                rules_applied,
                invocations: 3,
                passed: 0,
                judged: 0,
                rules: Vec::new(),
                daemon: None,
            },
            idle: None,
        };
        Matrix {
            columns: vec![column("clean", false, 0), column("chaos", true, 5)],
            cells,
        }
    }

    /// The outcome of a contract, or of a contract in `ci`.
    fn outcome_of(matrix: &Matrix, criteria: PassCriteria, in_ci: bool) -> &'static str {
        let score = matrix.score();
        match outcome([(matrix, score, true)], score, criteria, in_ci) {
            RunOutcome::Passed(_) => "passed",
            RunOutcome::Failed(_) => "failed",
            RunOutcome::Inconclusive(_) => "inconclusive",
        }
    }

    fn least(min_score: Option<f64>) -> PassCriteria {
        PassCriteria {
            min_score,
            strict: false,
        }
    }

    #[test]
    fn severity_weighs() {
        let names = InvariantSeverity::NAMES.iter();
        let weights: Vec<_> = names.map(|(name, _)| weight(name)).collect();
        assert_eq!(weights, [3, 2, 1, 1]);
        let cells = vec![
            cell("clean", "critical", Passed),
            cell("chaos", "low", Failed),
            cell("chaos", "high", NotExercised),
            cell("chaos", "high", NotApplicable),
            cell("chaos", "high", Error),
        ];
        assert_eq!(matrix(cells).score(), Some(75.0));
        assert_eq!(matrix(vec![cell("chaos", "high", Error)]).score(), None);
    }

    #[test]
    #[rustfmt::skip]
    fn a_verdict_is_never_better_than_what_was_proved() {
        let bar = |min_score, strict| PassCriteria { min_score, strict };
        let passed = || cell("chaos", "high", Passed);
        for (cells, bar, expected) in [
            (vec![passed()], bar(None, false), "passed"),
            (vec![passed(), cell("chaos", "high", Failed)], bar(None, false), "passed"),
            (vec![passed(), cell("chaos", "critical", Failed)], bar(None, false), "failed"),
            (vec![passed(), cell("chaos", "high", Failed)], bar(Some(60.0), false), "failed"),
            (vec![passed(), cell("chaos", "high", Failed)], bar(Some(50.0), false), "passed"),
            (vec![passed(), cell("chaos", "high", NotExercised)], bar(None, false), "passed"),
            (vec![passed(), cell("chaos", "high", NotExercised)], bar(None, true), "inconclusive"),
            (vec![passed(), cell("clean", "high", NotExercised)], bar(None, true), "passed"),
            (vec![cell("chaos", "high", Error)], bar(None, false), "inconclusive"),
            (vec![passed(), cell("chaos", "high", Error)], bar(None, false), "passed"),
            (vec![passed(), cell("chaos", "high", Error)], bar(None, true), "inconclusive"),
            (vec![passed(), cell("chaos", "critical", Error)], bar(None, false), "inconclusive"),
            (vec![passed(), cell("clean", "high", Error)], bar(None, false), "inconclusive"),
            (vec![], bar(None, false), "inconclusive"),
        ] {
            let told = format!("{cells:?} {bar:?}");
            let outcome = outcome_of(&matrix(cells), bar, false);
            assert_eq!(outcome, expected, "{told}");
        }
    }

    #[test]
    fn a_score_at_the_bar_reaches_it() {
        for passed in 0..=100_u32 {
            let states = (0..100).map(|number| if number < passed { Passed } else { Failed });
            let cells = states.map(|state| cell("chaos", "high", state)).collect();
            let matrix = matrix(cells);
            let passed = f64::from(passed);
            for (score, expected) in [(passed, "passed"), (passed + 0.01, "failed")] {
                let found = outcome_of(&matrix, least(Some(score)), false);
                assert_eq!(found, expected, "{passed} of 100 for {score}");
            }
        }
    }

    #[test]
    fn a_contract_of_which_nothing_holds_fails_in_ci_only() {
        for (severity, state, min_score, expected) in [
            ("high", Failed, None, ["passed", "failed"]),
            ("high", Failed, Some(0.0), ["passed", "passed"]),
            ("high", Passed, None, ["passed", "passed"]),
            ("critical", Failed, Some(0.0), ["failed", "failed"]),
        ] {
            let matrix = matrix(vec![cell("chaos", severity, state)]);
            let found = [false, true].map(|in_ci| outcome_of(&matrix, least(min_score), in_ci));
            assert_eq!(found, expected, "{severity} {state:?} {min_score:?}");
        }
    }

    #[test]
    fn a_scenario_without_a_fault_proves_nothing_unless_something_failed() {
        let mut idle = matrix(vec![
            cell("clean", "high", Passed),
            cell("chaos", "high", NotExercised),
        ]);
        idle.columns[1].scenario.rules_applied = 0;
        assert_eq!(outcome_of(&idle, least(None), false), "inconclusive");
        idle.cells.push(cell("clean", "critical", Failed));
        assert_eq!(outcome_of(&idle, least(None), false), "failed");
    }

    #[test]
    fn coverage_stands_beside_the_score() {
        let cells = vec![
            cell("clean", "high", Passed),
            cell("chaos", "high", Failed),
            cell("chaos", "high", NotExercised),
            cell("chaos", "high", NotApplicable),
        ];
        let expected = CoverageRecord {
            cells: 4,
            chaos_cells: 2,
            exercised: 1,
            rules_applied: 5,
            agent_invocations: 6,
        };
        assert_eq!(matrix(cells).coverage(), expected);
    }

    fn any_cell() -> impl Strategy<Value = CellRecord> {
        let states = [Passed, Failed, NotExercised, NotApplicable, Error];
        let severities = ["critical", "high", "medium", "low"];
        (0..2_usize, 0..4_usize, 0..5_usize).prop_map(move |(scenario, severity, state)| {
            cell(
                ["clean", "chaos"][scenario],
                severities[severity],
                states[state],
            )
        })
    }

    proptest! {
        #[test]
        fn one_more_pass_never_lowers_the_score_and_one_more_failure_never_raises_it(
            cells in proptest::collection::vec(any_cell(), 0..30),
            severity in 0..4_usize,
        ) {
            let severity = ["critical", "high", "medium", "low"][severity];
            let score = |more: Option<CellState>| {
                let more = more.map(|state| cell("chaos", severity, state));
                matrix(cells.iter().cloned().chain(more).collect()).score()
            };
            let before = score(None);
            prop_assert!(before.is_none_or(|score| (0.0..=100.0).contains(&score)));
            if let Some(before) = before {
                prop_assert!(score(Some(Passed)).is_some_and(|after| after >= before - 1e-9));
                prop_assert!(score(Some(Failed)).is_some_and(|after| after <= before + 1e-9));
            }
            for neither in [NotExercised, NotApplicable, Error] {
                prop_assert_eq!(score(Some(neither)), before);
            }
        }

        #[test]
        fn coverage_adds_up(cells in proptest::collection::vec(any_cell(), 0..30)) {
            let coverage = matrix(cells).coverage();
            prop_assert!(coverage.exercised <= coverage.chaos_cells);
            prop_assert!(coverage.chaos_cells <= coverage.cells);
        }
    }
}
