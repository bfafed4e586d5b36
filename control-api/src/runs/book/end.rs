//! How a run ends, by what came of carrying it out.

use squall_harness::run::RunState;

use super::super::runner::{RunError, Verdict};
use super::super::stop::Stop;

/// What came of carrying a run out.
pub(super) enum Outcome {
    Judged(Box<Verdict>),
    Failed(RunError),
    Panicked,
    Stopped,
}

/// How a run ends, and what is said of it.
pub(super) struct End {
    pub(super) state: RunState,
    pub(super) verdict: Option<Box<Verdict>>,
    pub(super) error: Option<String>,
    pub(super) reason: Option<String>,
}

impl End {
    pub(super) fn of(outcome: Outcome, stopped: Option<&Stop>, lost: u64) -> Self {
        let errored = |error: String| Self {
            state: RunState::Errored,
            verdict: None,
            error: Some(error),
            reason: None,
        };
        match outcome {
            Outcome::Failed(error) => errored(error.to_string()),
            Outcome::Panicked => {
                errored("Squall failed in the middle of it; the log says how".to_owned())
            }
            Outcome::Stopped => Self {
                state: RunState::Cancelled,
                verdict: None,
                error: None,
                reason: stopped.map(|stopped| stopped.why().to_owned()),
            },
            Outcome::Judged(verdict) => {
                let state = match verdict.passed {
                    // What is missing may have told otherwise.
                    _ if lost > 0 => RunState::Inconclusive,
                    Some(false) => RunState::Failed,
                    Some(true) => RunState::Passed,
                    None => RunState::Inconclusive,
                };
                let reason = match state {
                    RunState::Passed => None,
                    // What speaks for it is no reason why it is inconclusive.
                    _ if verdict.passed == Some(true) => with_lost(None, lost),
                    _ => with_lost(verdict.reason.clone(), lost),
                };
                Self {
                    state,
                    error: None,
                    reason,
                    verdict: Some(verdict),
                }
            }
        }
    }
}

/// Why it did not pass, and that exchanges were lost of it, where any were.
fn with_lost(reason: Option<String>, lost: u64) -> Option<String> {
    if lost == 0 {
        return reason;
    }
    let missing = format!("{lost} of its exchanges did not get into the journal or the store");
    Some(match reason {
        Some(reason) => format!("{reason}; {missing}"),
        None => missing,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_lost_exchanges_is_inconclusive_and_names_how_many() {
        const LOST: &str = "3 of its exchanges did not get into the journal or the store";
        for (passed, reason, lost, state, told) in [
            (Some(true), None, 0, RunState::Passed, None),
            (
                Some(true),
                None,
                3,
                RunState::Inconclusive,
                Some(LOST.to_owned()),
            ),
            (
                None,
                Some("idle"),
                0,
                RunState::Inconclusive,
                Some("idle".to_owned()),
            ),
            (
                None,
                Some("idle"),
                3,
                RunState::Inconclusive,
                Some(format!("idle; {LOST}")),
            ),
            (
                Some(false),
                Some("bad"),
                0,
                RunState::Failed,
                Some("bad".to_owned()),
            ),
            (
                Some(false),
                None,
                3,
                RunState::Inconclusive,
                Some(LOST.to_owned()),
            ),
            (
                Some(false),
                Some("bad"),
                3,
                RunState::Inconclusive,
                Some(format!("bad; {LOST}")),
            ),
        ] {
            let verdict = Verdict {
                passed,
                reason: reason.map(str::to_owned),
                ..Verdict::default()
            };
            let end = End::of(Outcome::Judged(Box::new(verdict)), None, lost);
            let what = format!("{passed:?}, {reason:?}, {lost} lost");
            assert_eq!((end.state, end.reason), (state, told), "{what}");
        }
    }
}
