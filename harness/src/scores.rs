//! Scores, computed from verdicts.
//!
//! ```text
//! verdicts of one invariant, prompt by prompt ──▶ cell ──▶ matrix ──▶ contract compliance ─┬─▶ overall
//! verdicts on one prompt, invariant by invariant ──▶ chaos resilience ─────────────────────┘
//! ```
//!
//! All scores are 0 to 100. Inconclusive verdicts do not count in a score. If none is left to judge, there is no
//! score, and the run is inconclusive.

mod cells;
mod comparison;
mod matrix;
mod prompts;
mod share;
#[cfg(test)]
mod testing;

pub use self::cells::{Sample, cell};
pub use self::comparison::comparison;
pub use self::matrix::{Column, Matrix, PassCriteria, RunOutcome, outcome};
pub use self::prompts::{PromptSample, chaos_resilience, recoveries, stability};
use self::share::mean;
pub use self::share::{least_of, score_beside, score_of};
use crate::run::ScoresRecord;

/// The weights of the components in the overall score; their sum is 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scoring {
    /// Mutation robustness. Default 0.20.
    pub mutation: f64,
    /// Chaos resilience. Default 0.35.
    pub chaos: f64,
    /// Contract compliance. Default 0.35.
    pub contract: f64,
    /// Replay regression. Default 0.10.
    pub replay: f64,
}

impl Default for Scoring {
    fn default() -> Self {
        Self {
            mutation: 0.20,
            chaos: 0.35,
            contract: 0.35,
            replay: 0.10,
        }
    }
}

/// The scores of a run's parts with the weighted mean of those that ran. `None` for a part that did not run, or had
/// nothing to judge.
pub fn scores(chaos: Option<f64>, contract: Option<f64>, weights: &Scoring) -> ScoresRecord {
    let components = [(chaos, weights.chaos), (contract, weights.contract)];
    let ran = components.into_iter();
    ScoresRecord {
        mutation_robustness: None,
        chaos_resilience: chaos,
        contract_compliance: contract,
        replay_regression: None,
        overall: mean(ran.filter_map(|(score, weight)| Some((score?, weight)))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_ran_counts_and_nothing_is_lost_by_weighing() {
        let weights = Scoring::default();
        for (chaos, contract, expected) in [
            (None, None, None),
            (Some(80.0), None, Some(80.0)),
            (None, Some(58.0), Some(58.0)),
            (None, Some(100.0 / 3.0), Some(100.0 / 3.0)),
            (Some(80.0), Some(100.0), Some(90.0)),
            (Some(60.0), Some(60.0), Some(60.0)),
        ] {
            let found = scores(chaos, contract, &weights).overall;
            assert_eq!(found, expected, "{chaos:?} {contract:?}");
        }
        let none = Scoring {
            chaos: 0.0,
            ..weights
        };
        assert_eq!(scores(Some(80.0), None, &none).overall, None);
    }
}
