//! Judges one invariant of a suite on one answer.

use crate::answer::AgentAnswer;
use crate::dial::Dialler;
use crate::invariants::{Active, Prices};
use crate::invariants::{Baseline, Invariant, Subject, Verdict};
use crate::outside::Replies;
use crate::prompt::Prompt;
use crate::run::CellState;
use crate::suite::{self, Suite};
use crate::trace::Trace;
use squall_documents::Variables;

/// A verdict without its reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Holds,
    Fails,
    Unproven,
    Errs,
    NotApplicable,
}

impl From<&Verdict> for Outcome {
    fn from(verdict: &Verdict) -> Self {
        match verdict.state {
            CellState::NotApplicable => Self::NotApplicable,
            CellState::Passed => Self::Holds,
            CellState::Failed => Self::Fails,
            CellState::NotExercised => Self::Unproven,
            CellState::Error => Self::Errs,
        }
    }
}

fn suite_of(written: &str) -> Result<Suite, Vec<String>> {
    suite_with("", written)
}

/// `head`: other blocks of the suite, as whole lines.
fn suite_with(head: &str, written: &str) -> Result<Suite, Vec<String>> {
    let text = format!(
        "{head}agent: {{endpoint: 'http://agent.test/'}}\ngolden_prompts: [hello]\ninvariants:\n  - {written}\n"
    );
    suite::parse("suite.yaml", &text, Variables::Refused)
        .map_err(|errors| errors.iter().map(ToString::to_string).collect())
}

pub(crate) fn errors_of(written: &str) -> Vec<String> {
    suite_of(written).expect_err("errors")
}

pub(crate) fn invariant(written: &str) -> Invariant {
    let mut suite = suite_of(written).expect("a valid invariant");
    suite.invariants.remove(0)
}

pub(crate) fn judged(written: &str, answer: &str) -> Outcome {
    judged_answer(written, &AgentAnswer::of(answer))
}

/// The reason of the verdict on an answer.
pub(crate) fn reason(written: &str, prompt: &str, answer: &str) -> String {
    let invariant = invariant(written);
    subject(prompt, &AgentAnswer::of(answer), None, |subject| {
        invariant.judge(subject).reason
    })
}

pub(crate) fn judged_answer(written: &str, answer: &AgentAnswer) -> Outcome {
    judgement(written, "hello", answer, None)
}

pub(crate) fn judged_beside(written: &str, answer: &str, clean: &AgentAnswer) -> Outcome {
    judgement(written, "hello", &AgentAnswer::of(answer), Some(clean))
}

pub(crate) fn judgement(
    written: &str,
    prompt: &str,
    answer: &AgentAnswer,
    clean: Option<&AgentAnswer>,
) -> Outcome {
    let invariant = invariant(written);
    subject(prompt, answer, clean, |subject| {
        (&invariant.judge(subject)).into()
    })
}

/// Calls a function with an invocation without traffic and chaos.
pub(crate) fn subject<T>(
    prompt: &str,
    answer: &AgentAnswer,
    clean: Option<&AgentAnswer>,
    judge: impl FnOnce(&Subject<'_>) -> T,
) -> T {
    judge(&Subject {
        prompt: &Prompt::single(prompt),
        answer,
        trace: &Trace::default(),
        baseline: clean.map(|answer| Baseline {
            answer,
            trace: None,
        }),
        active: Active::default(),
        prices: &Prices::default(),
        replies: &Replies::default(),
        repeats: &[],
        conversations: &[],
    })
}

/// Judges an answer after all external questions have replies. Returns the verdict and its reason.
pub(crate) async fn asked_outside(head: &str, written: &str, answer: &str) -> (Outcome, String) {
    let suite = suite_with(head, written).expect("a valid suite");
    let outside = suite.outside(Dialler::default());
    let (prompt, answer, trace) = (
        Prompt::single("hello"),
        AgentAnswer::of(answer),
        Trace::default(),
    );
    let mut replies = Replies::new(&outside);
    let judge = |replies: &Replies| {
        suite.invariants[0].judge(&Subject {
            prompt: &prompt,
            answer: &answer,
            trace: &trace,
            baseline: None,
            active: Active::default(),
            prices: &suite.prices,
            replies,
            repeats: &[],
            conversations: &[],
        })
    };
    judge(&replies);
    let answered = outside.answer(replies.missing()).await;
    replies.add(answered);
    let verdict = judge(&replies);
    ((&verdict).into(), verdict.reason)
}
