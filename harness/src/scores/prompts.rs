//! Scores of golden prompts under chaos: chaos resilience, recovery rates, stability of repeats.

use std::collections::{BTreeMap, BTreeSet};

use super::share::{interval, score_of};
use crate::run::{CellState, RecoveryRecord, StabilityRecord};

/// The verdicts of all invariants on one prompt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PromptSample {
    /// The families of the applied rules.
    pub families: BTreeSet<String>,
    /// The state of each verdict, and whether the invariant also fails without chaos.
    pub states: Vec<(CellState, bool)>,
}

impl PromptSample {
    fn has(&self, state: CellState) -> bool {
        self.states.iter().any(|(found, _)| *found == state)
    }

    /// Whether the prompt passed; `None`: it was not exercised, or a verdict is an error.
    pub fn passed(&self) -> Option<bool> {
        if self.has(CellState::Failed) {
            return Some(false);
        }
        (self.has(CellState::Passed) && !self.has(CellState::Error)).then_some(true)
    }

    /// Whether all failing invariants also fail without chaos.
    pub fn fails_in_baseline_only(&self) -> bool {
        let mut states = self.states.iter();
        self.has(CellState::Failed)
            && states.all(|(state, baseline)| *state != CellState::Failed || *baseline)
    }

    /// Whether the agent passed the prompt under chaos; `None` if it only fails as without chaos.
    fn resists(&self) -> Option<bool> {
        self.passed().filter(|_| !self.fails_in_baseline_only())
    }
}

/// Exercised prompts with no failed invariant, divided by exercised prompts; `None`: none could be judged.
pub fn chaos_resilience<'a>(samples: impl IntoIterator<Item = &'a PromptSample>) -> Option<f64> {
    let judged = samples.into_iter().filter_map(PromptSample::resists);
    let judged: Vec<_> = judged.collect();
    let passed = judged.iter().filter(|passed| **passed).count();
    score_of(passed as u64, judged.len() as u64)
}

/// The weight of passed mutants divided by that of judged ones, × 100; `None`: none could be judged.
pub fn robustness<'a>(samples: impl Iterator<Item = (f64, &'a PromptSample)>) -> Option<f64> {
    let judged = samples.filter_map(|(weight, sample)| Some((weight, sample.resists()?)));
    let (passed, all) = judged.fold((0.0, 0.0), |(passed, all), (weight, holds)| {
        (passed + if holds { weight } else { 0.0 }, all + weight)
    });
    (all > 0.0).then(|| passed / all * 100.0)
}

/// The recovery rate for every family that was applied and judged, by name. A prompt with several families counts
/// for each of them.
pub fn recoveries<'a>(samples: impl IntoIterator<Item = &'a PromptSample>) -> Vec<RecoveryRecord> {
    let mut counts: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for sample in samples {
        let Some(passed) = sample.resists() else {
            continue;
        };
        for family in &sample.families {
            let (all_passed, judged) = counts.entry(family).or_default();
            *all_passed += u64::from(passed);
            *judged += 1;
        }
    }
    let counts = counts.into_iter();
    let recovery = |(family, (passed, judged))| recovery(family, passed, judged);
    counts.filter_map(recovery).collect()
}

/// The recovery rate for one family; `None`: nothing was judged.
pub(crate) fn recovery(family: &str, passed: u64, judged: u64) -> Option<RecoveryRecord> {
    let (low, high) = interval(passed, judged)?;
    Some(RecoveryRecord {
        family: family.to_owned(),
        passed,
        judged,
        rate: score_of(passed, judged)?,
        low,
        high,
    })
}

/// The stability of repeats. `invocations` has, for every invocation, whether each of its repeats passed; `None`: it
/// could not be judged. An invocation that failed once does not pass.
pub fn stability<'a>(
    repeats: u64,
    invocations: impl IntoIterator<Item = &'a [Option<bool>]>,
) -> StabilityRecord {
    let (mut judged, mut always_passed, mut flaky) = (0, 0, 0);
    for repeats in invocations {
        let fails = repeats.contains(&Some(false));
        if repeats.contains(&None) && !fails {
            continue;
        }
        judged += 1;
        always_passed += u64::from(!fails);
        flaky += u64::from(fails && repeats.contains(&Some(true)));
    }
    StabilityRecord {
        repeats,
        judged,
        always_passed,
        flaky,
        pass_k: score_of(always_passed, judged),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::testing::prompt;
    use super::*;

    #[test]
    fn a_prompt_passes_when_all_that_is_judged_holds() {
        for (verdicts, expected) in [
            (&["holds", "holds"][..], Some(true)),
            (&["holds", "n/a", "unproven"], Some(true)),
            (&["holds", "fails"], Some(false)),
            (&["fails always", "fails"], Some(false)),
            (&["fails always", "holds"], None),
            (&["error", "fails"], Some(false)),
            (&["error", "holds"], None),
            (&["unproven"], None),
            (&[], None),
        ] {
            assert_eq!(prompt(verdicts).resists(), expected, "{verdicts:?}");
        }
    }

    #[test]
    fn what_chaos_is_not_to_blame_for_is_left_out() {
        let samples = [
            prompt(&["holds"]),
            prompt(&["fails"]),
            prompt(&["fails always"]),
            prompt(&["unproven"]),
            prompt(&["error"]),
        ];
        assert_eq!(chaos_resilience(&samples), Some(50.0));
        assert_eq!(chaos_resilience(&samples[2..]), None);
    }

    #[test]
    fn mutants_count_by_the_weight_of_their_type() {
        let samples = [
            (2.0, prompt(&["holds"])),
            (1.0, prompt(&["fails"])),
            (1.0, prompt(&["holds", "fails"])),
            (9.0, prompt(&["fails always"])),
            (9.0, prompt(&["unproven"])),
        ];
        let all = samples.iter().map(|(weight, sample)| (*weight, sample));
        assert_eq!(robustness(all.clone()), Some(50.0));
        assert_eq!(robustness(all.skip(3)), None);
    }

    #[test]
    fn each_family_is_counted_by_itself() {
        let under = |families: &[&str], verdicts: &[&str]| PromptSample {
            families: families.iter().map(|family| (*family).to_owned()).collect(),
            ..prompt(verdicts)
        };
        let samples = [
            under(&["tool_faults"], &["holds"]),
            under(&["tool_faults", "llm_faults"], &["fails"]),
            under(&["tool_faults"], &["fails always"]),
            under(&["llm_faults"], &["holds"]),
            under(&["network_faults"], &["unproven"]),
        ];
        let found: Vec<_> = recoveries(&samples)
            .into_iter()
            .map(|one| (one.family, one.passed, one.judged))
            .collect();
        let expected = [("llm_faults", 1, 2), ("tool_faults", 1, 2)];
        assert_eq!(
            found,
            expected.map(|(family, passed, judged)| (family.to_owned(), passed, judged))
        );
        let all = recoveries(&samples);
        assert!(
            all.iter()
                .all(|one| one.low <= one.rate && one.rate <= one.high)
        );
    }

    #[test]
    fn what_passes_at_times_is_flaky_and_what_may_have_passed_every_time_counts_nowhere() {
        let (yes, no, nobody) = (Some(true), Some(false), None);
        let invocations: [&[Option<bool>]; 8] = [
            &[no, nobody, no],
            &[nobody, no, yes],
            &[nobody, nobody, nobody],
            &[yes, yes, yes],
            &[yes, no, yes],
            &[no, no, no],
            &[yes, nobody, yes],
            &[yes, yes, yes],
        ];
        let found = stability(3, invocations);
        assert_eq!((found.judged, found.always_passed, found.flaky), (6, 2, 2));
        assert_eq!(found.pass_k, Some(100.0 / 3.0));
        let nothing: [&[Option<bool>]; 1] = [&[nobody]];
        assert_eq!(stability(1, nothing).pass_k, None);
    }

    proptest! {
        #[test]
        fn the_score_is_one_and_the_order_does_not_count(
            verdicts in proptest::collection::vec(
                proptest::sample::select(vec!["holds", "fails", "fails always", "unproven", "error"]), 0..20,
            ),
        ) {
            let mut samples: Vec<_> = verdicts.iter().map(|verdict| prompt(&[verdict])).collect();
            let score = chaos_resilience(&samples);
            prop_assert!(score.is_none_or(|score| (0.0..=100.0).contains(&score)));
            samples.reverse();
            prop_assert_eq!(chaos_resilience(&samples), score);
        }
    }
}
