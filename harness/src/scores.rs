//! Scores: what many judgements come to.
//!
//! ```text
//! judgements of one invariant, prompt by prompt ──▶ cell ──▶ matrix ──▶ contract compliance ─┬─▶ overall
//! judgements of one prompt, invariant by invariant ──▶ chaos resilience ─────────────────────┘
//! ```
//!
//! All scores are 0 to 100. What proves nothing is in no score: without anything left to judge there is
//! none, and the verdict is inconclusive.

mod cells;
mod comparison;
mod matrix;
mod prompts;
mod recovery;
mod share;
mod stability;
#[cfg(test)]
mod testing;
mod wilson;

pub(crate) use self::cells::NO_FAULT;
pub use self::cells::{Sample, cell};
pub use self::comparison::comparison;
pub use self::matrix::{Bar, Column, Matrix, Outcome};
pub use self::prompts::{PromptSample, PromptState, chaos_resilience, prompt_state};
pub use self::recovery::recoveries;
use self::share::mean;
pub use self::share::{least_of, score_of, told_beside};
pub use self::stability::stability;
use crate::run::ScoresRecord;
use crate::suite::Scoring;

/// What each component comes to; `None` where it did not run, or there was nothing to judge.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Components {
    /// Chaos resilience.
    pub chaos: Option<f64>,
    /// Contract compliance.
    pub contract: Option<f64>,
}

impl Components {
    /// The weighted mean of the components that ran; `None` where none did, or none of them counts.
    pub fn overall(&self, weights: &Scoring) -> Option<f64> {
        let components = [
            (self.chaos, weights.chaos),
            (self.contract, weights.contract),
        ];
        let ran = components.into_iter();
        mean(ran.filter_map(|(score, weight)| Some((score?, weight))))
    }

    /// As a run has them.
    pub fn record(&self, weights: &Scoring) -> ScoresRecord {
        ScoresRecord {
            mutation_robustness: None,
            chaos_resilience: self.chaos,
            contract_compliance: self.contract,
            replay_regression: None,
            overall: self.overall(weights),
        }
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
            let components = Components { chaos, contract };
            let found = components.record(&weights).overall;
            assert_eq!(found, expected, "{components:?}");
        }
        let none = Scoring {
            chaos: 0.0,
            ..weights
        };
        let chaos = Components {
            chaos: Some(80.0),
            contract: None,
        };
        assert_eq!(chaos.overall(&none), None);
    }
}
