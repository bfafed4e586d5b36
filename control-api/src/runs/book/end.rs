//! How a run ends, by what came of carrying it out.

use super::super::life::Ending;
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
    pub(super) ending: Ending,
    pub(super) verdict: Option<Box<Verdict>>,
    pub(super) error: Option<String>,
    pub(super) reason: Option<String>,
}

impl End {
    pub(super) fn of(outcome: Outcome, stopped: Option<&Stop>, lost: u64) -> Self {
        let errored = |error: String| Self {
            ending: Ending::Errored,
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
                ending: Ending::Cancelled,
                verdict: None,
                error: None,
                reason: stopped.map(|stopped| stopped.why().to_owned()),
            },
            Outcome::Judged(verdict) => {
                let ending = match verdict.passed {
                    Some(false) => Ending::Failed,
                    Some(true) if lost == 0 => Ending::Passed,
                    Some(true) | None => Ending::Inconclusive,
                };
                let missing =
                    || format!("{lost} of its exchanges did not get into the journal or the store");
                let reason = match ending {
                    Ending::Inconclusive if verdict.passed.is_some() => Some(missing()),
                    Ending::Passed => None,
                    _ => verdict.reason.clone(),
                };
                Self {
                    ending,
                    error: None,
                    reason,
                    verdict: Some(verdict),
                }
            }
        }
    }
}
