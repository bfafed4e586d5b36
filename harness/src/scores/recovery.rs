//! How agents recover from each family of faults.

use std::collections::BTreeMap;

use super::prompts::{PromptSample, PromptState, prompt_state};
use super::share::score_of;
use super::wilson::interval;
use crate::run::RecoveryRecord;

/// Of every family that was applied and judged, by name. A prompt on which several were applied counts
/// for each of them.
pub fn recoveries<'a>(samples: impl IntoIterator<Item = &'a PromptSample>) -> Vec<RecoveryRecord> {
    let mut counts: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for sample in samples {
        let passed = match prompt_state(sample) {
            PromptState::Passed => 1,
            PromptState::Failed => 0,
            PromptState::BaselineFailed | PromptState::Error | PromptState::NotExercised => {
                continue;
            }
        };
        for family in &sample.families {
            let (all_passed, judged) = counts.entry(family).or_default();
            *all_passed += passed;
            *judged += 1;
        }
    }
    let recovery = |(family, (passed, judged)): (&str, (u64, u64))| {
        let (low, high) = interval(passed, judged)?;
        Some(RecoveryRecord {
            family: family.to_owned(),
            passed,
            judged,
            rate: score_of(passed, judged)?,
            low,
            high,
        })
    };
    counts.into_iter().filter_map(recovery).collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::prompt;
    use super::*;

    #[test]
    fn each_family_is_counted_by_itself() {
        let under = |families: &[&str], verdicts: &[&str]| PromptSample {
            families: families.iter().map(|family| (*family).to_owned()).collect(),
            ..prompt(1, verdicts)
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
}
