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
mod chance;
mod comparison;
mod distributions;
mod matrix;
mod prompts;
mod share;
#[cfg(test)]
mod testing;

pub use self::cells::{Sample, cell};
pub use self::chance::Executed;
pub use self::comparison::{comparison, of_runs};
pub(crate) use self::distributions::distributions;
pub(crate) use self::matrix::unexercised;
pub use self::matrix::{Column, Matrix, PassCriteria, RunOutcome, outcome, worst};
pub(crate) use self::prompts::recovery;
pub use self::prompts::{PromptSample, chaos_resilience, recoveries, robustness, stability};
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

/// The weighted mean of the scores of a run's parts that ran and had something to judge.
pub fn overall(parts: &ScoresRecord, weights: &Scoring) -> Option<f64> {
    let components = [
        (parts.mutation_robustness, weights.mutation),
        (parts.chaos_resilience, weights.chaos),
        (parts.contract_compliance, weights.contract),
        (parts.replay_regression, weights.replay),
    ];
    let ran = components.into_iter();
    mean(ran.filter_map(|(score, weight)| Some((score?, weight))))
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
            let parts = ScoresRecord {
                chaos_resilience: chaos,
                contract_compliance: contract,
                ..ScoresRecord::default()
            };
            let found = overall(&parts, &weights);
            assert_eq!(found, expected, "{chaos:?} {contract:?}");
        }
        let none = Scoring {
            chaos: 0.0,
            ..weights
        };
        let parts = ScoresRecord {
            chaos_resilience: Some(80.0),
            ..ScoresRecord::default()
        };
        assert_eq!(overall(&parts, &none), None);
    }
}
