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
mod share;
mod stability;
mod wilson;

use squall_journal::run::ScoresRecord;

pub(crate) use self::cells::NO_FAULT;
pub use self::cells::{Sample, cell};
pub use self::comparison::comparison;
pub use self::matrix::{Bar, Column, Matrix, Outcome};
pub use self::prompts::{PromptSample, PromptState, chaos_resilience, prompt_state};
pub use self::recovery::{Recovery, recoveries};
pub use self::share::{Share, least_of, told_beside};
pub use self::stability::{Stability, stability};
pub use self::wilson::{Interval, interval};
use crate::suite::Scoring;

/// Robustness: the weight of what passed by the weight of what was judged, in thousandths.
pub fn robustness(judged: impl IntoIterator<Item = (f64, bool)>) -> Option<Share> {
    let (mut passed, mut all) = (0, 0);
    for (weight, holds) in judged {
        let weight = thousandths(weight);
        all += weight;
        passed += if holds { weight } else { 0 };
    }
    Share::of(passed, all)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "weights are not negative, and small"
)]
fn thousandths(weight: f64) -> u64 {
    (weight * 1000.0).round() as u64
}

/// What each component comes to; `None` where it did not run, or there was nothing to judge.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Components {
    /// Mutation robustness.
    pub mutation: Option<Share>,
    /// Chaos resilience.
    pub chaos: Option<Share>,
    /// Contract compliance.
    pub contract: Option<Share>,
    /// Replay regression.
    pub replay: Option<Share>,
}

impl Components {
    /// The weighted mean of the components that ran; `None` where none did, or none of them counts.
    pub fn overall(&self, weights: &Scoring) -> Option<Share> {
        let components = [
            (self.mutation, weights.mutation),
            (self.chaos, weights.chaos),
            (self.contract, weights.contract),
            (self.replay, weights.replay),
        ];
        let ran = components.into_iter();
        Share::mean(ran.filter_map(|(share, weight)| Some((share?, weight))))
    }

    /// As scores, 0 to 100.
    pub fn record(&self, weights: &Scoring) -> ScoresRecord {
        let score = |share: Option<Share>| share.map(Share::score);
        ScoresRecord {
            mutation_robustness: score(self.mutation),
            chaos_resilience: score(self.chaos),
            contract_compliance: score(self.contract),
            replay_regression: score(self.replay),
            overall: score(self.overall(weights)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_ran_counts_and_nothing_is_lost_by_weighing() {
        let weights = Scoring::default();
        let all = Components::default();
        let share = |part, whole| Share::of(part, whole);
        for (components, expected) in [
            (all, None),
            (
                Components {
                    chaos: share(8, 10),
                    ..all
                },
                Some(80.0),
            ),
            (
                Components {
                    contract: share(29, 50),
                    ..all
                },
                Some(58.0),
            ),
            (
                Components {
                    contract: share(57, 100),
                    ..all
                },
                Some(57.0),
            ),
            (
                Components {
                    chaos: share(8, 10),
                    contract: share(1, 1),
                    ..all
                },
                Some(90.0),
            ),
            (
                Components {
                    chaos: share(3, 5),
                    contract: share(3, 5),
                    mutation: share(3, 5),
                    replay: share(3, 5),
                },
                Some(60.0),
            ),
            (
                Components {
                    mutation: share(1, 1),
                    chaos: share(0, 4),
                    ..all
                },
                Some(400.0 / 11.0),
            ),
        ] {
            assert_eq!(
                components.record(&weights).overall,
                expected,
                "{components:?}"
            );
        }
        for counted in 1..=100 {
            let one = Components {
                contract: share(counted, 100),
                ..all
            };
            let expected = f64::from(u32::try_from(counted).expect("small"));
            assert_eq!(one.record(&weights).overall, Some(expected));
        }
        let none = Scoring {
            chaos: 0.0,
            ..weights
        };
        let chaos = Components {
            chaos: share(8, 10),
            ..all
        };
        assert_eq!(chaos.overall(&none), None);
    }

    #[test]
    fn weights_of_mutations_count() {
        assert_eq!(robustness([]), None);
        assert_eq!(robustness([(0.0, true)]), None);
        assert_eq!(robustness([(3.0, true), (1.0, false)]), Share::of(3, 4));
    }
}
