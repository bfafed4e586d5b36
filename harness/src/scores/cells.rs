//! One invariant in one scenario, over all its prompts.

use crate::invariants::{Invariant, Judgement, Verdict};
use crate::run::{CellRecord, CellState, EvidenceRecord};

/// What the reason of a cell begins with that is under chaos and met no fault.
pub(crate) const NO_FAULT: &str = "no planned fault was applied";

/// What an invariant said of one invocation.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// Its judgement.
    pub judgement: Judgement,
    /// How often a planned fault was applied in the invocation.
    pub faults_applied: u64,
    /// Whether it counts under chaos: a fault was applied, or the agent gave no answer where it gives one
    /// without chaos.
    pub exercised: bool,
    /// Why none was, where that is known.
    pub idle: Option<String>,
    /// Whether it does not hold without chaos either; `None`: nobody knows.
    pub fails_without_chaos: Option<bool>,
    /// What it was judged by.
    pub evidence: EvidenceRecord,
}

/// What became of one sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Of {
    NotApplicable,
    NotExercised,
    Passed,
    Error,
    Failed,
}

impl Of {
    fn state(self) -> CellState {
        match self {
            Self::NotApplicable => CellState::NotApplicable,
            Self::NotExercised => CellState::NotExercised,
            Self::Passed => CellState::Passed,
            Self::Error => CellState::Error,
            Self::Failed => CellState::Failed,
        }
    }
}

impl Sample {
    fn of(&self, under_chaos: bool) -> Of {
        let exercised = !under_chaos || self.exercised;
        match &self.judgement {
            Judgement::NotApplicable(_) => Of::NotApplicable,
            Judgement::Judged(Verdict::Error(_)) => Of::Error,
            Judgement::Judged(_) if !exercised => Of::NotExercised,
            Judgement::Judged(Verdict::Insufficient(_)) => Of::NotExercised,
            Judgement::Judged(Verdict::Holds(_)) => Of::Passed,
            Judgement::Judged(Verdict::Fails(_)) => Of::Failed,
        }
    }

    /// The evidence, and what it comes to by itself.
    fn judged(&self, under_chaos: bool) -> EvidenceRecord {
        EvidenceRecord {
            state: Some(self.of(under_chaos).state()),
            reason: Some(self.reason(under_chaos)),
            ..self.evidence.clone()
        }
    }

    fn reason(&self, under_chaos: bool) -> String {
        match &self.judgement {
            Judgement::NotApplicable(reason) | Judgement::Judged(Verdict::Insufficient(reason)) => {
                reason.clone()
            }
            Judgement::Judged(_) if self.of(under_chaos) == Of::NotExercised => {
                let why = self.idle.iter().map(|why| format!(": {why}"));
                format!("{NO_FAULT}{}", why.collect::<String>())
            }
            Judgement::Judged(verdict) => verdict.reason().to_owned(),
        }
    }
}

/// The cell of an invariant in a scenario: failed if any exercised prompt failed, else in error if any
/// could not be judged, else passed if any was exercised, else not exercised. A scenario without chaos
/// needs no fault. Samples with the state of the cell come first in its evidence.
pub fn cell(
    invariant: &Invariant,
    scenario: &str,
    under_chaos: bool,
    samples: &[Sample],
) -> CellRecord {
    let worst = samples.iter().map(|sample| sample.of(under_chaos)).max();
    let worst = worst.unwrap_or(Of::NotExercised);
    let (telling, others): (Vec<_>, Vec<_>) = samples
        .iter()
        .partition(|sample| sample.of(under_chaos) == worst);
    let reason = match telling.first() {
        Some(first) => first.reason(under_chaos),
        None => "the agent was not called".to_owned(),
    };
    let without_chaos = |sample: &&Sample| sample.fails_without_chaos == Some(true);
    CellRecord {
        invariant: invariant.id.clone(),
        scenario: scenario.to_owned(),
        severity: invariant.severity.as_str().to_owned(),
        state: worst.state(),
        reason: Some(reason),
        faults_applied: samples.iter().map(|sample| sample.faults_applied).sum(),
        mutation: None,
        baseline_failed: worst == Of::Failed && telling.iter().all(without_chaos),
        evidence: telling
            .into_iter()
            .chain(others)
            .map(|sample| sample.judged(under_chaos))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use crate::run::CellState::*;

    use super::super::testing::sample;
    use super::*;
    use crate::invariants::testing::invariant;

    #[test]
    fn the_worst_that_was_exercised_decides() {
        let one = invariant("{type: completes, severity: high}");
        for (samples, under_chaos, expected) in [
            (vec![("holds", 1), ("fails", 1)], true, Failed),
            (vec![("holds", 1), ("fails", 0)], true, Passed),
            (vec![("error", 0), ("fails", 1)], true, Failed),
            (vec![("error", 1), ("holds", 1)], true, Error),
            (vec![("holds", 0), ("fails", 0)], true, NotExercised),
            (vec![("holds", 0)], false, Passed),
            (vec![("fails", 0)], false, Failed),
            (vec![("holds", 1), ("gives up", 0)], true, Failed),
            (vec![("unproven", 3)], true, NotExercised),
            (vec![("unproven", 3), ("holds", 1)], true, Passed),
            (vec![("n/a", 1)], true, NotApplicable),
            (vec![("n/a", 1), ("holds", 0)], true, NotExercised),
            (vec![], true, NotExercised),
        ] {
            let told = format!("{samples:?}");
            let samples: Vec<_> = samples.into_iter().map(|(v, f)| sample(v, f)).collect();
            let cell = cell(&one, "s", under_chaos, &samples);
            assert_eq!(cell.state, expected, "{told}");
            assert_eq!(cell.severity, "high");
            assert!(cell.reason.is_some_and(|reason| !reason.is_empty()));
        }
    }

    #[test]
    fn the_telling_evidence_comes_first_and_gives_the_reason() {
        let one = invariant("{type: completes}");
        let samples = [sample("holds", 1), sample("fails", 2)];
        let cell = cell(&one, "s", true, &samples);
        assert_eq!(cell.reason.as_deref(), Some("fails"));
        assert_eq!(cell.evidence[0].prompt, "fails");
        assert_eq!((cell.evidence.len(), cell.faults_applied), (2, 3));
        let states: Vec<_> = cell.evidence.iter().map(|one| one.state).collect();
        assert_eq!(states, [Some(Failed), Some(Passed)]);
        assert_eq!(cell.evidence[1].reason.as_deref(), Some("holds"));
    }

    #[test]
    fn g46_what_fails_without_chaos_is_told_apart() {
        let one = invariant("{type: completes}");
        for (samples, expected) in [
            (vec![sample("fails always", 1)], true),
            (vec![sample("fails always", 1), sample("holds", 1)], true),
            (vec![sample("fails always", 1), sample("fails", 1)], false),
            (vec![sample("holds", 1)], false),
        ] {
            assert_eq!(cell(&one, "s", true, &samples).baseline_failed, expected);
        }
    }
}
