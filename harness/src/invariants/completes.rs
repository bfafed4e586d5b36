//! `completes`: the agent answered without an error, within its time.

use super::{Check, Kind, Subject, Verdict};

pub(super) const COMPLETES: Kind = Kind::answer("completes", |_| Some(Box::new(Completes)));

#[derive(Debug)]
struct Completes;

impl Check for Completes {
    fn judge(&self, subject: &Subject<'_>) -> Verdict {
        match &subject.answer.error {
            None => Verdict::Holds("the agent answered".to_owned()),
            Some(error) => Verdict::Fails(format!("the agent gave no answer: {error}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::answer::Answer;
    use crate::invariants::testing::{Outcome::*, judged, judged_answer};

    #[test]
    fn an_error_is_no_completion_whatever_it_says() {
        assert_eq!(
            judged("{type: completes}", "The data is unavailable."),
            Holds
        );
        assert_eq!(judged("{type: completes}", ""), Holds);
        let error = Answer {
            error: Some("no answer within 30 s".into()),
            ..Answer::of("all is well")
        };
        assert_eq!(judged_answer("{type: completes}", &error), Fails);
        assert_eq!(
            judged_answer("{type: completes, negate: true}", &error),
            Holds
        );
    }
}
