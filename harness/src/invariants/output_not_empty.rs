//! `output_not_empty`: the answer is not empty.

use super::{Check, Kind, Subject, Verdict};

/// The answer has more than white space, and no error.
pub(super) const OUTPUT_NOT_EMPTY: Kind =
    Kind::answer("output_not_empty", |_| Some(Box::new(NotEmpty)));

#[derive(Debug)]
struct NotEmpty;

impl Check for NotEmpty {
    fn judge(&self, subject: &Subject<'_>) -> Verdict {
        if let Some(error) = &subject.answer.error {
            return Verdict::fails(format!("the agent gave no answer: {error}"));
        }
        if subject.answer.is_blank() {
            return Verdict::fails("the answer is empty");
        }
        Verdict::holds("the answer is not empty")
    }
}

#[cfg(test)]
mod tests {
    use crate::answer::Answer;
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
        let error = Answer {
            error: Some("status 500".into()),
            ..Answer::of("oops")
        };
        assert_eq!(judged_answer("{type: output_not_empty}", &error), Fails);
    }
}
