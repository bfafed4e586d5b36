//! Invariants × scenarios: the score of a contract, its coverage, its verdict.

use super::share::{score_of, told_beside};
use crate::run::{CellRecord, CellState, CoverageRecord};

/// A scenario of a matrix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Whether there is chaos in it.
    pub under_chaos: bool,
    /// How often a planned fault was applied in it, whatever was judged.
    pub rules_applied: u64,
    /// How often the agent was asked in it.
    pub invocations: u64,
    /// Why no planned fault was applied in it, where that is known.
    pub idle: Option<String>,
    /// Its rules, a line each.
    pub rules: Vec<String>,
}

/// The cells of a contract.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Matrix {
    /// The scenarios.
    pub columns: Vec<Column>,
    /// The cells, in any order.
    pub cells: Vec<CellRecord>,
}

/// What a run has to reach.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Bar {
    /// Least score, 0 to 100; `None`: a contract passes unless a critical invariant failed.
    pub least: Option<f64>,
    /// Whether a single cell that was not exercised makes the run inconclusive.
    pub strict: bool,
}

/// The verdict on a run, with the reason in a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The agent did what is demanded.
    Passed(String),
    /// It did not.
    Failed(String),
    /// Nothing is proved.
    Inconclusive(String),
}

impl Bar {
    /// The verdict on a score below it; `None`: it is reached.
    pub fn missed(self, score: f64) -> Option<Outcome> {
        let least = self.least?;
        let told = || told_beside(score, least);
        (score < least)
            .then(|| Outcome::Failed(format!("the score is {}, demanded are {least}", told())))
    }

    /// The verdict on a score of 0 where no bar says how little is enough.
    pub fn missed_by_nothing(self, score: f64) -> Option<Outcome> {
        let is_nothing = self.least.is_none() && score <= 0.0;
        is_nothing.then(|| Outcome::Failed("the score is 0".to_owned()))
    }
}

impl Matrix {
    /// Passed weight by passed and failed weight; `None`: nothing was judged.
    pub fn score(&self) -> Option<f64> {
        let weigh = |state| {
            let cells = self.cells.iter().filter(move |cell| cell.state == state);
            cells.map(|cell| weight(&cell.severity)).sum::<u64>()
        };
        let (passed, failed) = (weigh(CellState::Passed), weigh(CellState::Failed));
        score_of(passed, passed + failed)
    }

    /// What was tried.
    pub fn coverage(&self) -> CoverageRecord {
        // What is outside its `when` is in no total.
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
        CoverageRecord {
            cells: count(self.cells.len()),
            chaos_cells: count(self.cells.iter().filter(under_chaos).count()),
            exercised: count(self.cells.iter().filter(exercised).count()),
            rules_applied: self.columns.iter().map(|column| column.rules_applied).sum(),
            agent_invocations: self.columns.iter().map(|column| column.invocations).sum(),
        }
    }

    /// Any critical failure fails the contract whatever the number; a scenario of chaos that was never
    /// exercised makes it inconclusive unless it failed.
    pub fn outcome(&self, bar: Bar) -> Outcome {
        self.critical()
            .unwrap_or_else(|| self.outcome_of(self.score(), bar))
    }

    /// The verdict on a contract that is all there is to a `ci` run: as any other run, that one fails without a
    /// bar where the score is 0.
    pub fn outcome_in_ci(&self, bar: Bar) -> Outcome {
        self.critical()
            .unwrap_or_else(|| self.outcome_unless_zero(self.score(), bar))
    }

    /// The verdict on golden prompts under chaos, with the score that they come to: without a bar they pass
    /// unless that is 0.
    pub fn outcome_unless_zero(&self, score: Option<f64>, bar: Bar) -> Outcome {
        let zero = score.and_then(|score| bar.missed_by_nothing(score));
        zero.unwrap_or_else(|| self.outcome_of(score, bar))
    }

    fn critical(&self) -> Option<Outcome> {
        let mut cells = self.cells.iter();
        let failed =
            cells.find(|cell| cell.state == CellState::Failed && cell.severity == "critical")?;
        Some(Outcome::Failed(format!(
            "critical invariant `{}` failed in scenario `{}`",
            failed.invariant, failed.scenario
        )))
    }

    /// The verdict by a score alone: below the bar it has failed, and without evidence nothing is proved.
    pub fn outcome_of(&self, score: Option<f64>, bar: Bar) -> Outcome {
        if let Some(missed) = score.and_then(|score| bar.missed(score)) {
            return missed;
        }
        if let Some(column) = self.unexercised() {
            let why = column.idle.as_deref();
            return Outcome::Inconclusive(format!(
                "in scenario `{}` no planned fault was ever applied: {}",
                column.name,
                why.unwrap_or("the agent could not be called")
            ));
        }
        let Some(score) = score else {
            return Outcome::Inconclusive("nothing was left to judge".to_owned());
        };
        if let Some(cell) = self.unjudged(bar) {
            return Outcome::Inconclusive(format!(
                "invariant `{}` could not be judged in scenario `{}`: {}",
                cell.invariant,
                cell.scenario,
                cell.reason.as_deref().unwrap_or("nothing says why")
            ));
        }
        let idle = self.cells.iter().find(|cell| {
            cell.state == CellState::NotExercised && self.is_under_chaos(&cell.scenario)
        });
        if let Some(cell) = idle.filter(|_| bar.strict) {
            return Outcome::Inconclusive(format!(
                "invariant `{}` was not exercised in scenario `{}`",
                cell.invariant, cell.scenario
            ));
        }
        Outcome::Passed(format!("the score is {score:.1}"))
    }

    /// A cell in error without which nothing is proved: of a critical invariant, of a scenario in which nothing
    /// could be judged, or, if the bar is strict, any.
    fn unjudged(&self, bar: Bar) -> Option<&CellRecord> {
        let of = |scenario: &str| {
            let mut cells = self.cells.iter();
            let judged = [
                CellState::Passed,
                CellState::Failed,
                CellState::NotExercised,
            ];
            !cells.any(|cell| cell.scenario == scenario && judged.contains(&cell.state))
        };
        let mut errors = self
            .cells
            .iter()
            .filter(|cell| cell.state == CellState::Error);
        errors.find(|cell| bar.strict || cell.severity == "critical" || of(&cell.scenario))
    }

    /// A scenario of chaos in which no fault was applied.
    fn unexercised(&self) -> Option<&Column> {
        let mut columns = self.columns.iter();
        columns.find(|column| column.under_chaos && column.rules_applied == 0)
    }

    fn is_under_chaos(&self, scenario: &str) -> bool {
        let mut columns = self.columns.iter();
        columns.any(|column| column.name == scenario && column.under_chaos)
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
    use crate::invariants::Severity;

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
            name: name.into(),
            under_chaos,
            rules_applied,
            invocations: 3,
            idle: None,
            rules: Vec::new(),
        };
        Matrix {
            columns: vec![column("clean", false, 0), column("chaos", true, 5)],
            cells,
        }
    }

    #[test]
    fn severity_weighs() {
        for severity in [
            Severity::Critical,
            Severity::High,
            Severity::Medium,
            Severity::Low,
        ] {
            assert_eq!(weight(severity.as_str()), severity.weight());
        }
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
    fn a_verdict_is_never_better_than_what_was_proved() {
        let bar = |least, strict| Bar { least, strict };
        let passed = || cell("chaos", "high", Passed);
        for (cells, bar, expected) in [
            (vec![passed()], bar(None, false), "passed"),
            (
                vec![passed(), cell("chaos", "high", Failed)],
                bar(None, false),
                "passed",
            ),
            (
                vec![passed(), cell("chaos", "critical", Failed)],
                bar(None, false),
                "failed",
            ),
            (
                vec![passed(), cell("chaos", "high", Failed)],
                bar(Some(60.0), false),
                "failed",
            ),
            (
                vec![passed(), cell("chaos", "high", Failed)],
                bar(Some(50.0), false),
                "passed",
            ),
            (
                vec![passed(), cell("chaos", "high", NotExercised)],
                bar(None, false),
                "passed",
            ),
            (
                vec![passed(), cell("chaos", "high", NotExercised)],
                bar(None, true),
                "inconclusive",
            ),
            (
                vec![passed(), cell("clean", "high", NotExercised)],
                bar(None, true),
                "passed",
            ),
            (
                vec![cell("chaos", "high", Error)],
                bar(None, false),
                "inconclusive",
            ),
            (
                vec![passed(), cell("chaos", "high", Error)],
                bar(None, false),
                "passed",
            ),
            (
                vec![passed(), cell("chaos", "high", Error)],
                bar(None, true),
                "inconclusive",
            ),
            (
                vec![passed(), cell("chaos", "critical", Error)],
                bar(None, false),
                "inconclusive",
            ),
            (
                vec![passed(), cell("clean", "high", Error)],
                bar(None, false),
                "inconclusive",
            ),
            (vec![], bar(None, false), "inconclusive"),
        ] {
            let told = format!("{cells:?} {bar:?}");
            let outcome = match matrix(cells).outcome(bar) {
                Outcome::Passed(_) => "passed",
                Outcome::Failed(_) => "failed",
                Outcome::Inconclusive(_) => "inconclusive",
            };
            assert_eq!(outcome, expected, "{told}");
        }
    }

    #[test]
    fn a_score_at_the_bar_reaches_it() {
        for passed in 0..=100_u32 {
            let states = (0..100).map(|number| if number < passed { Passed } else { Failed });
            let cells = states.map(|state| cell("chaos", "high", state)).collect();
            let matrix = matrix(cells);
            for (least, is_reached) in
                [(f64::from(passed), true), (f64::from(passed) + 0.01, false)]
            {
                let bar = Bar {
                    least: Some(least),
                    strict: false,
                };
                let outcome = matrix.outcome(bar);
                let is_passed = matches!(outcome, Outcome::Passed(_));
                assert_eq!(
                    is_passed, is_reached,
                    "{passed} of 100 for {least}: {outcome:?}"
                );
            }
        }
    }

    #[test]
    fn a_contract_of_which_nothing_holds_fails_in_ci_only() {
        for (severity, state, least, expected) in [
            ("high", Failed, None, [true, false]),
            ("high", Failed, Some(0.0), [true, true]),
            ("high", Passed, None, [true, true]),
            ("critical", Failed, Some(0.0), [false, false]),
        ] {
            let matrix = matrix(vec![cell("chaos", severity, state)]);
            let bar = Bar {
                least,
                strict: false,
            };
            let outcomes = [matrix.outcome(bar), matrix.outcome_in_ci(bar)];
            let passed = outcomes
                .each_ref()
                .map(|outcome| matches!(outcome, Outcome::Passed(_)));
            assert_eq!(
                passed, expected,
                "{severity} {state:?} {least:?}: {outcomes:?}"
            );
        }
    }

    #[test]
    fn a_scenario_without_a_fault_proves_nothing_unless_something_failed() {
        let mut idle = matrix(vec![
            cell("clean", "high", Passed),
            cell("chaos", "high", NotExercised),
        ]);
        idle.columns[1].rules_applied = 0;
        assert!(matches!(
            idle.outcome(Bar::default()),
            Outcome::Inconclusive(_)
        ));
        idle.cells.push(cell("clean", "critical", Failed));
        assert!(matches!(idle.outcome(Bar::default()), Outcome::Failed(_)));
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
