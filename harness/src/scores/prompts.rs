//! Chaos resilience: exercised prompts of which all invariants hold, by exercised prompts.

use std::collections::BTreeSet;

use super::share::score_of;
use crate::invariants::{Judgement, Verdict};

/// What all invariants said of one prompt under chaos.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptSample {
    /// Whether it counts under chaos.
    pub exercised: bool,
    /// The families of the rules that were.
    pub families: BTreeSet<String>,
    /// Each invariant's judgement, and whether it fails without chaos too.
    pub judgements: Vec<(Judgement, Option<bool>)>,
}

/// What a prompt counts as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PromptState {
    /// All that could be judged holds.
    Passed,
    /// Something fails that holds without chaos.
    Failed,
    /// What fails, fails without chaos too.
    BaselineFailed,
    /// Something could not be judged, and nothing failed.
    Error,
    /// No planned fault was applied, or nothing could be shown.
    NotExercised,
}

/// What a prompt counts as.
pub fn prompt_state(sample: &PromptSample) -> PromptState {
    if !sample.exercised {
        return PromptState::NotExercised;
    }
    let verdicts = || {
        sample
            .judgements
            .iter()
            .filter_map(|(judgement, clean)| match judgement {
                Judgement::Judged(verdict) => Some((verdict, *clean)),
                Judgement::NotApplicable(_) => None,
            })
    };
    let fails = |verdict: &Verdict| matches!(verdict, Verdict::Fails(_));
    if verdicts().any(|(verdict, clean)| fails(verdict) && clean != Some(true)) {
        return PromptState::Failed;
    }
    if verdicts().any(|(verdict, _)| fails(verdict)) {
        return PromptState::BaselineFailed;
    }
    if verdicts().any(|(verdict, _)| matches!(verdict, Verdict::Error(_))) {
        return PromptState::Error;
    }
    if verdicts().any(|(verdict, _)| matches!(verdict, Verdict::Holds(_))) {
        return PromptState::Passed;
    }
    PromptState::NotExercised
}

impl PromptSample {
    /// Whether all that could be judged holds, whatever chaos there was; `None`: nothing could be judged, or
    /// not all.
    pub fn passed(&self) -> Option<bool> {
        let verdicts = || {
            self.judgements.iter().filter_map(|(one, _)| match one {
                Judgement::Judged(verdict) => Some(verdict),
                Judgement::NotApplicable(_) => None,
            })
        };
        if verdicts().any(|verdict| matches!(verdict, Verdict::Fails(_))) {
            return Some(false);
        }
        if verdicts().any(|verdict| matches!(verdict, Verdict::Error(_))) {
            return None;
        }
        verdicts()
            .any(|verdict| matches!(verdict, Verdict::Holds(_)))
            .then_some(true)
    }
}

/// The score; `None`: no prompt was exercised that could be judged.
pub fn chaos_resilience<'a>(samples: impl IntoIterator<Item = &'a PromptSample>) -> Option<f64> {
    let (mut passed, mut failed) = (0, 0);
    for sample in samples {
        match prompt_state(sample) {
            PromptState::Passed => passed += 1,
            PromptState::Failed => failed += 1,
            PromptState::BaselineFailed | PromptState::Error | PromptState::NotExercised => {}
        }
    }
    score_of(passed, passed + failed)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::testing::prompt;
    use super::PromptState::*;
    use super::*;

    #[test]
    fn a_prompt_passes_when_all_that_is_judged_holds() {
        for (faults, verdicts, expected) in [
            (1, &["holds", "holds"][..], Passed),
            (1, &["holds", "n/a", "unproven"], Passed),
            (1, &["holds", "fails"], Failed),
            (1, &["fails always", "fails"], Failed),
            (1, &["fails always", "holds"], BaselineFailed),
            (1, &["error", "fails"], Failed),
            (1, &["error", "holds"], Error),
            (0, &["fails"], NotExercised),
            (0, &["gives up"], Failed),
            (1, &["unproven"], NotExercised),
            (1, &[], NotExercised),
        ] {
            assert_eq!(
                prompt_state(&prompt(faults, verdicts)),
                expected,
                "{verdicts:?}"
            );
        }
    }

    #[test]
    fn what_chaos_is_not_to_blame_for_is_left_out() {
        let samples = [
            prompt(1, &["holds"]),
            prompt(1, &["fails"]),
            prompt(1, &["fails always"]),
            prompt(0, &["fails"]),
            prompt(1, &["error"]),
        ];
        assert_eq!(chaos_resilience(&samples), Some(50.0));
        assert_eq!(chaos_resilience(&samples[2..]), None);
    }

    proptest! {
        #[test]
        fn the_score_is_one_and_the_order_does_not_count(
            verdicts in proptest::collection::vec(
                (0..3_u64, proptest::sample::select(vec!["holds", "fails", "fails always", "unproven", "error"])),
                0..20,
            ),
        ) {
            let mut samples: Vec<_> = verdicts.iter().map(|(faults, verdict)| prompt(*faults, &[verdict])).collect();
            let score = chaos_resilience(&samples);
            prop_assert!(score.is_none_or(|score| (0.0..=100.0).contains(&score)));
            samples.reverse();
            prop_assert_eq!(chaos_resilience(&samples), score);
        }
    }
}
