//! `latency`: the maximum time of an invocation.

use std::time::Duration;

use super::{Check, InvariantKind, Verdict};

/// `max_ms`, at least 1: from the first byte of the prompt to the last byte of the answer.
pub(super) const LATENCY: InvariantKind = InvariantKind::answer("latency", |fields| {
    let about = "The longest time, milliseconds.";
    let most = fields.whole("max_ms", about, 1..=86_400_000, " milliseconds");
    fields.require("max_ms", "the longest time in milliseconds");
    let most = Duration::from_millis(most?);
    Some(Check::new(move |subject| {
        let took = subject.answer.latency;
        let (ms, most_ms) = (took.as_millis(), most.as_millis());
        if took <= most {
            let verdict = Verdict::holds(format!("it took {ms} ms of at most {most_ms}"));
            verdict.with_margin(most.as_secs_f64() - took.as_secs_f64(), most.as_secs_f64())
        } else {
            Verdict::fails(format!("it took {ms} ms; the limit is {most_ms}"))
        }
    }))
});

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::answer::AgentAnswer;
    use crate::invariants::testing::{Outcome::*, judged_answer};

    #[test]
    fn the_bound_itself_is_allowed() {
        for (ms, expected) in [(0, Holds), (500, Holds), (501, Fails)] {
            let answer = AgentAnswer {
                latency: Duration::from_millis(ms),
                ..AgentAnswer::of("x")
            };
            let found = judged_answer("{type: latency, max_ms: 500}", &answer);
            assert_eq!(found, expected, "{ms}");
        }
    }
}
