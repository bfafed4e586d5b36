//! Groups attempts into logical calls.
//!
//! Attempts are linked, in this order, by `amz-sdk-invocation-id`; by `Idempotency-Key`; by method, URL and
//! canonical body. The last applies only if the earlier attempt failed and had ended before the later one began.
//! Two equal requests are two calls if the first one succeeded. They are also two calls if they have different ids
//! and the first one's id occurs again, since that call is then retried separately. An id that differs in each
//! attempt does not separate calls.

use std::time::Duration;

use super::attempt::{Attempt, FailureClass};

/// The attempts at one call in order, at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogicalCall {
    pub(super) attempts: Vec<usize>,
}

impl LogicalCall {
    /// The number of retries.
    pub fn retries(&self) -> usize {
        self.attempts.len() - 1
    }

    /// Whether the attempt at this index belongs to it.
    pub(crate) fn has_attempt(&self, place: usize) -> bool {
        self.attempts.contains(&place)
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
        // The most recent attempt: among equal ones, that is the one just tried.
        let found = calls.iter_mut().rev().find(same);
        match found {
            Some(call) => call.attempts.push(place),
            None => calls.push(LogicalCall {
                attempts: vec![place],
            }),
        }
    }
    calls
}

/// Whether `later` is a retry of the call of `earlier`. `to_come` are the attempts after both.
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
    is_the_same_again(earlier, later)
}

/// Whether a call is retried under its own id.
fn goes_on(call: &Attempt, to_come: &[Attempt]) -> bool {
    to_come.iter().any(|attempt| {
        let by_invocation = call.invocation.is_some() && call.invocation == attempt.invocation;
        by_invocation || (call.key.is_some() && call.key == attempt.key)
    })
}

/// Whether an attempt repeats the request of an earlier one that had failed and ended.
fn is_the_same_again(earlier: &Attempt, later: &Attempt) -> bool {
    let failed = earlier
        .failure
        .as_ref()
        .is_some_and(|failure| failure.class != FailureClass::Reported);
    // Fingerprints ignore generated ids.
    let is_equal = earlier.identity.is_some()
        && earlier.identity == later.identity
        && earlier.continues() == later.continues();
    failed && had_ended(earlier, later) && (is_equal || earlier.is_restored_by(later))
}

/// Squall may notice a closed connection this much later than the agent closed it.
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

/// The time from the end of an attempt to the start of the next.
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
        ] {
            assert_eq!(trace(&sent).calls().len(), calls, "{sent:#?}");
        }
    }

    #[test]
    #[rustfmt::skip]
    fn a_turn_is_tried_again_by_the_same_continuation_or_by_the_whole_conversation() {
        let one = r#""previous_response_id":"resp_0a1b2c3d4e5f60718293""#;
        let other = r#""previous_response_id":"resp_f9e8d7c6b5a493827160""#;
        let next = r#"{"role":"user","content":"go on"},{"type":"function_call_output","call_id":"c1","output":"7"}"#;
        let before = r#"{"role":"user","content":"add"},{"type":"function_call","call_id":"c1","name":"add","arguments":"{}"}"#;
        let turn = |fields: String| Sent::responses(&fields, "resp_1", "");
        let new = |previous: &str| turn(format!(r#"{previous},"input":[{next}]"#));
        for (again, calls) in [
            (new(one), 1),
            (new(other), 2),
            (turn(format!(r#""input":[{before},{next}]"#)), 1),
            (turn(format!(r#""input":[{next},{before}]"#)), 2),
            (turn(format!(r#"{other},"input":[{before},{next}]"#)), 2),
            (turn(format!(r#""input":[{before}]"#)), 2),
        ] {
            let sent = [new(one).status(503), again];
            assert_eq!(trace(&sent).calls().len(), calls, "{sent:#?}");
        }
    }
}
