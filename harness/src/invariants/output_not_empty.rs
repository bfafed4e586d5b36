//! `output_not_empty`: the answer is not empty.

use super::{Check, InvariantKind, Verdict};

/// The answer has more than white space, and no error.
pub(super) const OUTPUT_NOT_EMPTY: InvariantKind =
    InvariantKind::answer("output_not_empty", |_| {
        Some(Check::new(|subject| match &subject.answer.error {
            Some(error) => Verdict::fails(format!("the agent gave no answer: {error}")),
            None if subject.answer.is_blank() => Verdict::fails("the answer is empty"),
            None => Verdict::holds("the answer is not empty"),
        }))
    });

#[cfg(test)]
mod tests {
    use crate::answer::AgentAnswer;
    use crate::invariants::testing::{Outcome::*, judged, judged_answer};

    #[test]
    fn something_that_can_be_seen_must_be_said() {
        for (answer, expected) in [
            ("x", Holds),
            ("", Fails),
            (" \n\t", Fails),
            ("\u{200b}", Fails),
        ] {
            assert_eq!(
                judged("{type: output_not_empty}", answer),
                expected,
                "{answer:?}"
            );
        }
        let error = AgentAnswer {
            error: Some("status 500".into()),
            ..AgentAnswer::of("oops")
        };
        assert_eq!(judged_answer("{type: output_not_empty}", &error), Fails);
    }
}
