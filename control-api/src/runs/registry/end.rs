//! The end of a run that was judged.

use squall_harness::run::RunState;
use squall_harness::runner::RunResult;

/// The final state of a run, and the reason. `lost` of its exchanges reached neither the journal nor the store:
/// they could have changed the verdict.
pub(super) fn ending(result: &RunResult, lost: u64) -> (RunState, Option<String>) {
    let state = match result.passed {
        _ if lost > 0 => RunState::Inconclusive,
        Some(false) => RunState::Failed,
        Some(true) => RunState::Passed,
        None => RunState::Inconclusive,
    };
    let missing = format!("{lost} of its exchanges did not get into the journal or the store");
    let missing = (lost > 0).then_some(missing);
    // The reason of a passed run does not explain an inconclusive one.
    let reason = result
        .reason
        .clone()
        .filter(|_| result.passed != Some(true));
    let reasons: Vec<_> = reason.into_iter().chain(missing).collect();
    (state, (!reasons.is_empty()).then(|| reasons.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[rustfmt::skip]
    fn a_run_that_lost_exchanges_is_inconclusive_and_names_how_many() {
        const LOST: &str = "3 of its exchanges did not get into the journal or the store";
        let and_lost = |reason: &str| Some(format!("{reason}; {LOST}"));
        for (passed, reason, lost, state, told) in [
            (Some(true), Some("good"), 0, RunState::Passed, None),
            (Some(true), Some("good"), 3, RunState::Inconclusive, Some(LOST.to_owned())),
            (None, Some("idle"), 0, RunState::Inconclusive, Some("idle".to_owned())),
            (None, Some("idle"), 3, RunState::Inconclusive, and_lost("idle")),
            (Some(false), Some("bad"), 0, RunState::Failed, Some("bad".to_owned())),
            (Some(false), None, 3, RunState::Inconclusive, Some(LOST.to_owned())),
            (Some(false), Some("bad"), 3, RunState::Inconclusive, and_lost("bad")),
        ] {
            let result = RunResult {
                passed,
                reason: reason.map(str::to_owned),
                ..RunResult::default()
            };
            let what = format!("{passed:?}, {reason:?}, {lost} lost");
            assert_eq!(ending(&result, lost), (state, told), "{what}");
        }
    }
}
