//! Scores: what many judgements come to.
//!
//! ```text
//! judgements of one invariant, prompt by prompt ──▶ cell ──▶ matrix ──▶ contract compliance ─┐
//! judgements of one prompt, invariant by invariant ──▶ chaos resilience ─────────────────────┼─▶ overall
//! mutated prompts, by weight ──▶ robustness        replayed sessions ──▶ regression ─────────┘
//! ```
//!
//! All scores are 0 to 100. What proves nothing is in no score: without anything left to judge there is
//! none, and the verdict is inconclusive.

mod cells;
mod comparison;
mod matrix;
mod prompts;
mod recovery;
mod stability;
mod wilson;

use squall_journal::run::ScoresRecord;

pub use self::cells::{Sample, cell};
pub use self::comparison::comparison;
pub use self::matrix::{Bar, Column, Matrix, Outcome};
pub use self::prompts::{PromptSample, PromptState, chaos_resilience, prompt_state};
pub use self::recovery::{Recovery, recoveries};
pub use self::stability::{Stability, stability};
pub use self::wilson::{Interval, interval};
use crate::suite::Scoring;

/// `passed` of `judged` as a score; `None` of nothing.
pub fn share(passed: u64, judged: u64) -> Option<f64> {
    #[expect(clippy::cast_precision_loss, reason = "counts of a run")]
    let share = passed as f64 / judged as f64 * 100.0;
    (judged > 0).then_some(share)
}

/// Robustness: the weight of what passed by the weight of what was judged.
pub fn robustness(judged: impl IntoIterator<Item = (f64, bool)>) -> Option<f64> {
    let (mut passed, mut all) = (0.0, 0.0);
    for (weight, holds) in judged {
        all += weight;
        passed += if holds { weight } else { 0.0 };
    }
    (all > 0.0).then(|| passed / all * 100.0)
}

/// The weighted mean of the components that ran; `None` where none did, or none of them counts.
pub fn overall(scores: &ScoresRecord, weights: &Scoring) -> Option<f64> {
    let components = [
        (scores.mutation_robustness, weights.mutation),
        (scores.chaos_resilience, weights.chaos),
        (scores.contract_compliance, weights.contract),
        (scores.replay_regression, weights.replay),
    ];
    let (mut sum, mut counted) = (0.0, 0.0);
    for (score, weight) in components {
        if let Some(score) = score {
            sum += score * weight;
            counted += weight;
        }
    }
    (counted > 0.0).then(|| (sum / counted).clamp(0.0, 100.0))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_what_ran_counts() {
        let weights = Scoring::default();
        let scores = |mutation_robustness, chaos_resilience, contract_compliance| ScoresRecord {
            mutation_robustness,
            chaos_resilience,
            contract_compliance,
            ..ScoresRecord::default()
        };
        for (scores, expected) in [
            (scores(None, None, None), None),
            (scores(None, Some(80.0), None), Some(80.0)),
            (scores(None, Some(80.0), Some(100.0)), Some(90.0)),
            (
                scores(Some(100.0), Some(0.0), None),
                Some(100.0 * 0.20 / 0.55),
            ),
        ] {
            match (overall(&scores, &weights), expected) {
                (Some(found), Some(expected)) => {
                    assert!((found - expected).abs() < 1e-9, "{found}");
                }
                (found, expected) => assert_eq!(found, expected),
            }
        }
        let none = Scoring {
            chaos: 0.0,
            ..weights
        };
        assert_eq!(overall(&scores(None, Some(80.0), None), &none), None);
    }

    #[test]
    fn weights_of_mutations_count() {
        assert_eq!(robustness([]), None);
        assert_eq!(robustness([(0.0, true)]), None);
        let found = robustness([(3.0, true), (1.0, false)]).expect("judged");
        assert!((found - 75.0).abs() < 1e-9);
        assert_eq!(share(0, 0), None);
        assert_eq!(share(1, 4), Some(25.0));
    }

    proptest! {
        #[test]
        fn the_whole_lies_between_its_parts(parts in proptest::collection::vec(proptest::option::of(0.0..=100.0_f64), 4)) {
            let scores = ScoresRecord {
                mutation_robustness: parts[0],
                chaos_resilience: parts[1],
                contract_compliance: parts[2],
                replay_regression: parts[3],
                overall: None,
            };
            let ran: Vec<f64> = parts.into_iter().flatten().collect();
            match overall(&scores, &Scoring::default()) {
                None => prop_assert!(ran.is_empty()),
                Some(found) => {
                    let least = ran.iter().copied().fold(f64::MAX, f64::min);
                    let most = ran.iter().copied().fold(f64::MIN, f64::max);
                    prop_assert!(least - 1e-9 <= found && found <= most + 1e-9);
                }
            }
        }
    }
}
