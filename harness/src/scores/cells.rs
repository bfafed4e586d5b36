//! Aggregates the verdicts of one invariant in one scenario.

use crate::run::{CellRecord, CellState, EvidenceRecord};

/// The verdict of an invariant on one invocation.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// The invocation, with the state and reason of the verdict.
    pub evidence: EvidenceRecord,
    /// Whether the invariant also fails without chaos.
    pub fails_without_chaos: bool,
    /// The margin of the verdict.
    pub margin: Option<f64>,
}

impl Sample {
    /// The state of the verdict.
    pub fn state(&self) -> CellState {
        self.evidence.state.unwrap_or(CellState::NotExercised)
    }
}

/// The worst state of all prompts is the state of the cell: failed, then error, then passed, then not exercised.
fn weight(state: CellState) -> u8 {
    match state {
        CellState::Failed => 4,
        CellState::Error => 3,
        CellState::Passed => 2,
        CellState::NotExercised => 1,
        CellState::NotApplicable => 0,
    }
}

/// The cell of an invariant in a scenario. Its evidence starts with the samples that have the state of the cell.
pub fn cell(invariant: String, severity: &str, scenario: &str, samples: &[Sample]) -> CellRecord {
    let states = samples.iter().map(Sample::state);
    let state = states.max_by_key(|state| weight(*state));
    let state = state.unwrap_or(CellState::NotExercised);
    let (telling, others): (Vec<_>, Vec<_>) =
        samples.iter().partition(|sample| sample.state() == state);
    let reason = match telling.first() {
        Some(first) => first.evidence.reason.clone(),
        None => Some("the agent was not called".to_owned()),
    };
    let all = telling.iter().chain(&others).map(|sample| &sample.evidence);
    CellRecord {
        invariant,
        scenario: scenario.to_owned(),
        severity: severity.to_owned(),
        state,
        reason,
        faults_applied: all.clone().map(|one| one.faults_applied).sum(),
        mutation: None,
        baseline_failed: state == CellState::Failed
            && telling.iter().all(|sample| sample.fails_without_chaos),
        evidence: all.cloned().collect(),
    }
}

#[cfg(test)]
mod tests {
    use crate::run::CellState::*;

    use super::super::testing::sample;
    use super::*;

    fn of(samples: &[Sample]) -> CellRecord {
        cell("i".to_owned(), "high", "s", samples)
    }

    #[test]
    fn the_worst_that_was_exercised_decides() {
        for (verdicts, expected) in [
            (&["holds", "fails"][..], Failed),
            (&["error", "fails"], Failed),
            (&["error", "holds"], Error),
            (&["unproven"], NotExercised),
            (&["unproven", "holds"], Passed),
            (&["n/a"], NotApplicable),
            (&["n/a", "unproven"], NotExercised),
            (&[], NotExercised),
        ] {
            let samples: Vec<_> = verdicts.iter().map(|one| sample(one, 1)).collect();
            let cell = of(&samples);
            assert_eq!(cell.state, expected, "{verdicts:?}");
            assert!(cell.reason.is_some_and(|reason| !reason.is_empty()));
        }
    }

    #[test]
    fn the_evidence_for_the_state_comes_first_and_gives_the_reason() {
        let cell = of(&[sample("holds", 1), sample("fails", 2)]);
        assert_eq!(cell.reason.as_deref(), Some("fails"));
        let prompts: Vec<_> = cell.evidence.iter().map(|one| &*one.prompt).collect();
        assert_eq!((prompts, cell.faults_applied), (vec!["fails", "holds"], 3));
    }

    #[test]
    fn g46_what_fails_without_chaos_is_told_apart() {
        for (verdicts, expected) in [
            (&["fails always"][..], true),
            (&["fails always", "holds"], true),
            (&["fails always", "fails"], false),
            (&["holds"], false),
        ] {
            let samples: Vec<_> = verdicts.iter().map(|one| sample(one, 1)).collect();
            assert_eq!(of(&samples).baseline_failed, expected, "{verdicts:?}");
        }
    }
}
