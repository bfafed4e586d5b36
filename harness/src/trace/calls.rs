//! Attempts that are one call.
//!
//! They are linked, in this order, by `amz-sdk-invocation-id`; by `Idempotency-Key`; by method, URL
//! and canonical body, where the earlier attempt failed and had ended before the later one began. Two
//! equal requests of which the first went well are two calls, and so are two with names of their own where
//! the first one's comes back: that call goes on by itself. A name that is new for each attempt parts nothing.
//! Where clients count their retries, the second attempt of several equal calls goes to the one that was tried
//! once and has waited longest.

use std::time::Duration;

use super::attempt::{Attempt, FailureClass};

/// The attempts at one call, at least one, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogicalCall {
    pub(super) attempts: Vec<usize>,
}

impl LogicalCall {
    /// How often it was tried again.
    pub fn retries(&self) -> usize {
        self.attempts.len() - 1
    }
}

pub(super) fn of(attempts: &[Attempt]) -> Vec<LogicalCall> {
    let mut calls: Vec<LogicalCall> = Vec::new();
    for (place, attempt) in attempts.iter().enumerate() {
        let last = |call: &LogicalCall| call.attempts.last().map(|last| &attempts[*last]);
        let to_come = &attempts[place + 1..];
        let same = |call: &&mut LogicalCall| {
            last(call).is_some_and(|last| is_retry(last, attempt, to_come))
        };
        let counts = attempt.counted.is_some_and(|count| count > 0);
        let found = if counts {
            calls.iter_mut().find(same)
        } else {
            // The latest: of several alike it is the one that was just tried.
            calls.iter_mut().rev().find(same)
        };
        match found {
            Some(call) => call.attempts.push(place),
            None => calls.push(LogicalCall {
                attempts: vec![place],
            }),
        }
    }
    calls
}

/// Whether the later attempt is the earlier one's call tried again. `to_come` are those after both.
fn is_retry(earlier: &Attempt, later: &Attempt, to_come: &[Attempt]) -> bool {
    if let (Some(one), Some(other)) = (&earlier.invocation, &later.invocation) {
        return one == other || (!goes_on(earlier, to_come) && is_the_same_again(earlier, later));
    }
    if let (Some(one), Some(other)) = (&earlier.key, &later.key) {
        return if one == other {
            earlier.method == later.method && earlier.host == later.host
        } else {
            !goes_on(earlier, to_come) && is_the_same_again(earlier, later)
        };
    }
    if let (Some(one), Some(other)) = (earlier.counted, later.counted) {
        // Counted anew where whoever calls the client tries again, and that client has given up.
        let goes_on = other == one + 1 || (other == 0 && !is_counted_on(earlier, to_come));
        return goes_on && is_the_same_again(earlier, later);
    }
    is_the_same_again(earlier, later)
}

/// Whether the client that counts an attempt tries the same once more.
fn is_counted_on(attempt: &Attempt, to_come: &[Attempt]) -> bool {
    let next = attempt.counted.map(|count| count + 1);
    let mut to_come = to_come.iter();
    to_come.any(|one| one.counted == next && is_the_same_again(attempt, one))
}

/// Whether a call is tried again under the name that it gave itself.
fn goes_on(call: &Attempt, to_come: &[Attempt]) -> bool {
    to_come.iter().any(|attempt| {
        let by_invocation = call.invocation.is_some() && call.invocation == attempt.invocation;
        by_invocation || (call.key.is_some() && call.key == attempt.key)
    })
}

/// Whether an attempt asks what one that had failed and ended asked.
fn is_the_same_again(earlier: &Attempt, later: &Attempt) -> bool {
    let failed = earlier
        .failure
        .as_ref()
        .is_some_and(|failure| failure.class != FailureClass::Reported);
    failed
        && had_ended(earlier, later)
        && earlier.identity.is_some()
        && earlier.identity == later.identity
}

/// How much later than the agent itself Squall may hear that it has hung up.
const HEARD_WITHIN: Duration = Duration::from_millis(100);

fn had_ended(earlier: &Attempt, later: &Attempt) -> bool {
    let late = if earlier.was_hung_up {
        HEARD_WITHIN
    } else {
        Duration::ZERO
    };
    earlier
        .ended
        .is_some_and(|ended| ended <= later.began + late)
}

/// From the end of an attempt to the beginning of the next.
pub(crate) fn gap(earlier: &Attempt, later: &Attempt) -> Duration {
    let ended = earlier.ended.unwrap_or(earlier.began);
    later.began.saturating_sub(ended)
}

#[cfg(test)]
mod tests {
    use squall_journal::record::Outcome;

    use crate::trace::testing::{Sent, trace};

    #[test]
    fn attempts_at_one_call_are_linked() {
        let failed = || Sent::post("https://t.test/a", r#"{"x":1}"#).status(503);
        let other = || Sent::post("https://t.test/b", r#"{"x":1}"#).status(503);
        let known_by_draws = |fingerprint: &str| {
            let mut sent = failed().unread();
            sent.record.fingerprint = Some(fingerprint.into());
            sent
        };
        let given_up = || {
            let mut sent = failed();
            (sent.record.outcome, sent.record.status) = (Outcome::ClientGone, None);
            sent
        };
        let by_sdk = |id: &str| failed().header("amz-sdk-invocation-id", id);
        let keyed = |key: &str| failed().header("Idempotency-Key", key);
        let counted = |count: u64| failed().header("x-stainless-retry-count", &count.to_string());
        for (sent, calls) in [
            (vec![failed(), failed(), failed()], 1),
            (vec![failed(), other(), failed(), other()], 2),
            (vec![failed().status(200), failed()], 2),
            (
                vec![failed(), failed().status(200), failed().status(200)],
                2,
            ),
            (vec![known_by_draws("00ff"), known_by_draws("00ff")], 1),
            (vec![known_by_draws("00ff"), known_by_draws("00fe")], 2),
            (vec![failed().unread(), failed().unread()], 2),
            (vec![by_sdk("a"), by_sdk("b"), by_sdk("a")], 2),
            (vec![by_sdk("a"), by_sdk("a"), by_sdk("b")], 1),
            (vec![keyed("a"), keyed("b"), keyed("c")], 1),
            (vec![keyed("a"), keyed("b"), keyed("a"), keyed("b")], 2),
            (vec![keyed("a").status(200), keyed("b")], 2),
            (vec![failed().at(0).took(500), failed().at(100)], 2),
            (vec![given_up().at(0).took(540), failed().at(500)], 1),
            (vec![given_up().at(0).took(700), failed().at(500)], 2),
            // Three at once, each tried again by its client; one that a client gives up, tried again by who
            // calls it; one whose client never tries again.
            (
                vec![
                    counted(0),
                    counted(0),
                    counted(0),
                    counted(1),
                    counted(1),
                    counted(1),
                ],
                3,
            ),
            (vec![counted(0), counted(1), counted(0), counted(1)], 1),
            (vec![counted(0), counted(0), counted(0)], 1),
            (vec![counted(0), counted(1).status(200), counted(0)], 2),
        ] {
            assert_eq!(trace(&sent).calls().len(), calls, "{sent:#?}");
        }
    }
}
