//! Compares a run with an earlier one.

use std::collections::BTreeMap;

use super::chance::{Executed, tested};
use crate::run::{CellChange, CellRecord, CellState, ComparisonRecord, RunRecord};

/// Compares two runs.
pub fn of_runs(before: &RunRecord, now: &RunRecord) -> ComparisonRecord {
    let cells: Vec<_> = now.cells.iter().collect();
    let executed = Executed {
        cells: &cells,
        scenarios: &now.scenarios,
        distributions: &now.distributions,
    };
    comparison(before, executed)
}

/// Compares what was executed with an earlier run. Cells match if invariant, scenario and mutation are equal.
pub fn comparison(before: &RunRecord, now: Executed<'_>) -> ComparisonRecord {
    let cells: Vec<_> = before.cells.iter().collect();
    let executed = Executed {
        cells: &cells,
        scenarios: &before.scenarios,
        distributions: &before.distributions,
    };
    let tested = tested(executed, now);
    let mut earlier: BTreeMap<_, _> = before.cells.iter().map(|cell| (key(cell), cell)).collect();
    let mut comparison = ComparisonRecord {
        baseline: before.id.clone(),
        score_before: before.score,
        newly_failing: Vec::new(),
        fixed: Vec::new(),
        changed: Vec::new(),
        shifts: tested.shifts,
        tests: tested.tests,
        untested: tested.untested,
    };
    for cell in now.cells {
        let was = earlier.remove(&key(cell)).map(|cell| cell.state);
        if was == Some(cell.state) {
            continue;
        }
        let change = CellChange {
            invariant: cell.invariant.clone(),
            scenario: cell.scenario.clone(),
            before: was,
            after: Some(cell.state),
        };
        match (was, cell.state) {
            (_, CellState::Failed) => comparison.newly_failing.push(change),
            (Some(CellState::Failed), CellState::Passed) => comparison.fixed.push(change),
            // A new cell that does not fail is not reported.
            (None, _) => {}
            (Some(_), _) => comparison.changed.push(change),
        }
    }
    let gone = earlier.into_values().map(|cell| CellChange {
        invariant: cell.invariant.clone(),
        scenario: cell.scenario.clone(),
        before: Some(cell.state),
        after: None,
    });
    comparison.changed.extend(gone);
    comparison
}

fn key(cell: &CellRecord) -> (&str, &str, Option<&str>) {
    (&cell.scenario, &cell.invariant, cell.mutation.as_deref())
}

#[cfg(test)]
mod tests {
    use crate::run::CellState::*;
    use crate::run::RunKind;

    use super::*;

    fn cell(invariant: &str, state: CellState) -> CellRecord {
        CellRecord {
            invariant: invariant.to_owned(),
            scenario: "s".to_owned(),
            severity: "high".to_owned(),
            state,
            reason: None,
            faults_applied: 1,
            mutation: None,
            baseline_failed: false,
            evidence: Vec::new(),
        }
    }

    fn run(cells: Vec<CellRecord>) -> RunRecord {
        RunRecord {
            score: Some(90.0),
            cells,
            ..RunRecord::queued("before", RunKind::Contract, "suite", 42)
        }
    }

    fn compared<'c>(
        before: &RunRecord,
        cells: impl IntoIterator<Item = &'c CellRecord>,
    ) -> ComparisonRecord {
        let cells: Vec<_> = cells.into_iter().collect();
        let executed = Executed {
            cells: &cells,
            scenarios: &[],
            distributions: &[],
        };
        comparison(before, executed)
    }

    #[test]
    fn each_cell_is_told_by_what_became_of_it() {
        let before = run(vec![
            cell("same", Passed),
            cell("still", Failed),
            cell("broke", Passed),
            cell("mended", Failed),
            cell("idle", Passed),
            cell("unproved", Failed),
            cell("gone", Failed),
        ]);
        let now = [
            cell("same", Passed),
            cell("still", Failed),
            cell("broke", Failed),
            cell("mended", Passed),
            cell("idle", NotExercised),
            cell("unproved", Error),
            cell("new", Passed),
            cell("new and bad", Failed),
        ];
        let found = compared(&before, &now);
        let names = |changes: &[CellChange]| -> Vec<String> {
            changes.iter().map(|one| one.invariant.clone()).collect()
        };
        assert_eq!(names(&found.newly_failing), ["broke", "new and bad"]);
        assert_eq!(names(&found.fixed), ["mended"]);
        assert_eq!(names(&found.changed), ["idle", "unproved", "gone"]);
        assert!(found.is_regression(Some(90.0)));
        let mended = compared(&before, &before.cells);
        assert!(!mended.is_regression(Some(90.0)) && mended.is_regression(Some(89.0)));
        // A new cell has no earlier state to be worse than.
        let more = compared(&before, before.cells.iter().chain(&now[7..]));
        assert_eq!(names(&more.newly_failing), ["new and bad"]);
        assert!(!more.is_regression(Some(90.0)), "{more:?}");
    }
}
