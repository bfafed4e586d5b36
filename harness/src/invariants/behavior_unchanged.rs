//! `behavior_unchanged`: the answer is similar to the clean one.

use super::similarity::alike;
use super::{Check, InvariantKind, Subject, Verdict};
use crate::run::CellState;

/// `similarity_threshold` 0 to 1, default 0.75. It requires a clean answer.
pub(super) const BEHAVIOR_UNCHANGED: InvariantKind =
    InvariantKind::answer("behavior_unchanged", |fields| {
        let about = "How like it has to be, 0 to 1; default 0.75.";
        let threshold = fields.real("similarity_threshold", about, 0.0..=1.0, "");
        let threshold = threshold.unwrap_or(0.75);
        Some(Check {
            needs_baseline: true,
            ..Check::new(move |subject| unchanged(subject, threshold))
        })
    });

/// A hint for answers that changed under chaos. An answer that reports an outage has changed too, and this type
/// cannot decide whether it is correct.
const OUTAGE: &str = "; if the agent should report the failure, use `when: no_chaos` here and `contains` for \
                      its answer under chaos";

fn unchanged(subject: &Subject<'_>, threshold: f64) -> Verdict {
    let Some(clean) = subject.baseline else {
        return Verdict::error("there is no clean answer to compare with");
    };
    if let Some(error) = &clean.answer.error {
        return Verdict::error(format!("the clean run gave no answer: {error}"));
    }
    if let Some(error) = &subject.answer.error {
        let whose = if clean.trace.is_some() {
            "the clean run gave an answer"
        } else {
            "the `baseline` is an answer"
        };
        return Verdict::fails(format!("{whose}, this is an error: {error}"));
    }
    let mut verdict = alike(subject, &clean.answer.text, threshold);
    if verdict.state == CellState::Failed && subject.active.any() {
        verdict.reason.push_str(OUTAGE);
    }
    verdict
}

#[cfg(test)]
mod tests {
    use crate::answer::AgentAnswer;
    use crate::invariants::testing::{Outcome::*, judged, judged_beside};

    #[test]
    fn the_clean_answer_of_the_same_prompt_is_the_measure() {
        let clean = AgentAnswer::of("Your order 17 ships on Monday.");
        for (answer, expected) in [
            ("Your order 17 ships on Monday!", Holds),
            ("I could not find out anything.", Fails),
        ] {
            let found = judged_beside("{type: behavior_unchanged}", answer, &clean);
            assert_eq!(found, expected, "{answer}");
        }
        assert_eq!(judged("{type: behavior_unchanged}", "x"), Errs);
        let negated = "{type: behavior_unchanged, negate: true}";
        assert_eq!(judged(negated, "x"), Errs);
        let broken = AgentAnswer {
            error: Some("status 500".into()),
            ..AgentAnswer::default()
        };
        assert_eq!(
            judged_beside("{type: behavior_unchanged}", "x", &broken),
            Errs
        );
    }

    #[test]
    fn a_text_of_the_suite_can_be_the_measure() {
        let written = "{type: behavior_unchanged, baseline: All is well}";
        assert_eq!(judged(written, "all is well"), Holds);
        assert_eq!(judged(written, "the house is on fire"), Fails);
    }
}
