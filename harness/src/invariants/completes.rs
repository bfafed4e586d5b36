//! `completes`: the agent answered in time and without an error. The answer must not be empty if the clean answer
//! is not.

use super::{Check, InvariantKind, Verdict};

pub(super) const COMPLETES: InvariantKind = InvariantKind::answer("completes", |_| {
    Some(Check::new(|subject| {
        if let Some(error) = &subject.answer.error {
            return Verdict::fails(format!("the agent gave no answer: {error}"));
        }
        let is_always_blank = || {
            let clean = subject.baseline.map(|clean| clean.answer);
            clean.is_some_and(|clean| clean.error.is_none() && clean.is_blank())
        };
        if subject.answer.is_blank() && !is_always_blank() {
            return Verdict::fails("the agent gave an empty answer");
        }
        Verdict::holds("the agent answered")
    }))
});

#[cfg(test)]
mod tests {
    use crate::answer::AgentAnswer;
    use crate::invariants::testing::{Outcome::*, judged, judged_answer, judged_beside};

    #[test]
    fn g22_an_error_is_no_completion_whatever_it_says() {
        assert_eq!(
            judged("{type: completes}", "The data is unavailable."),
            Holds
        );
        let error = AgentAnswer {
            error: Some("no answer within 30 s".into()),
            ..AgentAnswer::of("all is well")
        };
        assert_eq!(judged_answer("{type: completes}", &error), Fails);
        assert_eq!(
            judged_answer("{type: completes, negate: true}", &error),
            Holds
        );
    }

    #[test]
    fn an_empty_answer_is_no_completion_unless_the_clean_one_is_empty_too() {
        let failed = AgentAnswer {
            error: Some("status 500".into()),
            ..AgentAnswer::default()
        };
        for (answer, clean, expected) in [
            ("", AgentAnswer::of("sunny"), Fails),
            (" \n", AgentAnswer::of("sunny"), Fails),
            ("", failed, Fails),
            ("", AgentAnswer::of(" "), Holds),
            ("rainy", AgentAnswer::of("sunny"), Holds),
        ] {
            let found = judged_beside("{type: completes}", answer, &clean);
            assert_eq!(found, expected, "{answer:?} beside {clean:?}");
        }
    }
}
