//! How agents recover from each family of faults.

use std::collections::BTreeMap;

use super::prompts::{PromptSample, PromptState, prompt_state};
use super::share::Share;
use super::wilson::{Interval, interval};

/// Prompts on which a family of faults was applied.
#[derive(Debug, Clone, PartialEq)]
pub struct Recovery {
    /// `network_faults`, `tool_faults`, `llm_faults` or `context_attacks`.
    pub family: String,
    /// Those of which all invariants hold.
    pub passed: u64,
    /// Those that could be judged.
    pub judged: u64,
    /// `passed` of `judged`, 0 to 100.
    pub share: f64,
    /// How far that can be trusted.
    pub interval: Interval,
}

/// Of every family that was applied and judged, by name. A prompt on which several were applied counts
/// for each of them.
pub fn recoveries<'a>(samples: impl IntoIterator<Item = &'a PromptSample>) -> Vec<Recovery> {
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
        Some(Recovery {
            family: family.to_owned(),
            passed,
            judged,
            share: Share::of(passed, judged)?.score(),
            interval: interval(passed, judged)?,
        })
    };
    counts.into_iter().filter_map(recovery).collect()
}

#[cfg(test)]
mod tests {
    use super::super::prompts::tests::prompt;
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
                .all(|one| one.interval.low <= one.share && one.share <= one.interval.high)
        );
    }
}
