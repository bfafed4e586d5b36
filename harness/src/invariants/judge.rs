//! Subjects of invariants, and verdicts.

use super::measures::Measured;
use super::{Active, Invariant, Prices};
use crate::answer::{AgentAnswer, AgentConversation};
use crate::outside::Replies;
use crate::prompt::Prompt;
use crate::run::CellState;
use crate::trace::{Attempt, Trace};

/// One invocation of an agent, as invariants see it.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// The prompt.
    pub prompt: &'a Prompt,
    /// The agent's answer.
    pub answer: &'a AgentAnswer,
    /// The traffic of the invocation.
    pub trace: &'a Trace,
    /// The same prompt without chaos; `None`: there is no clean run.
    pub baseline: Option<Baseline<'a>>,
    /// The chaos in force.
    pub active: Active,
    /// Prices of model tokens.
    pub prices: &'a Prices,
    /// Replies of models, embeddings and programs.
    pub replies: &'a Replies,
    /// The numbers of all repeats of the invocation, this one included; empty in the clean run.
    pub repeats: &'a [Measured],
    /// All conversations of the invocation; empty if there is only one.
    pub conversations: &'a [AgentConversation],
}

/// The agent's behaviour without chaos.
#[derive(Debug, Clone, Copy)]
pub struct Baseline<'a> {
    /// The clean answer.
    pub answer: &'a AgentAnswer,
    /// The clean traffic; `None` if the baseline is a text in the suite.
    pub trace: Option<&'a Trace>,
}

/// The verdict of an invariant on one invocation.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// `NotExercised`: the evidence is insufficient; `NotApplicable`: excluded by `when` or `prompt_filter`.
    pub state: CellState,
    /// The reason for the verdict.
    pub reason: String,
    /// Id of the decisive exchange.
    pub exchange: Option<String>,
    /// How far a passed invariant is from failing, 0 to 1; `None`: its kind has no number.
    pub margin: Option<f64>,
}

impl Verdict {
    fn new(state: CellState, reason: impl Into<String>) -> Self {
        Self {
            state,
            reason: reason.into(),
            exchange: None,
            margin: None,
        }
    }

    /// The invariant holds.
    pub fn holds(reason: impl Into<String>) -> Self {
        Self::new(CellState::Passed, reason)
    }

    /// The invariant does not hold.
    pub fn fails(reason: impl Into<String>) -> Self {
        Self::new(CellState::Failed, reason)
    }

    /// Whether the invariant holds, with the same reason either way.
    pub fn of(holds: bool, reason: impl Into<String>) -> Self {
        if holds {
            Self::holds(reason)
        } else {
            Self::fails(reason)
        }
    }

    /// The evidence is insufficient.
    pub fn insufficient(reason: impl Into<String>) -> Self {
        Self::new(CellState::NotExercised, reason)
    }

    /// The invariant does not apply.
    pub(crate) fn not_applicable(reason: impl Into<String>) -> Self {
        Self::new(CellState::NotApplicable, reason)
    }

    /// The invariant could not be judged.
    pub fn error(reason: impl Into<String>) -> Self {
        Self::new(CellState::Error, reason)
    }

    /// The margin of a passed invariant: what is left of the `whole` distance to its limit.
    pub(crate) fn with_margin(self, left: f64, whole: f64) -> Self {
        let margin = if whole > 0.0 { left / whole } else { 0.0 };
        let is_passed = self.state == CellState::Passed;
        Self {
            margin: is_passed.then(|| margin.clamp(0.0, 1.0)),
            ..self
        }
    }

    /// The margin of a passed limit on a count.
    pub(crate) fn with_margin_of(self, used: u64, most: u64) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "a share")]
        let (left, most) = (most.saturating_sub(used) as f64, most as f64);
        self.with_margin(left, most)
    }

    /// Adds the decisive exchange.
    pub(crate) fn at(self, attempt: &Attempt) -> Self {
        Self {
            exchange: Some(attempt.id.clone()),
            ..self
        }
    }

    /// The opposite verdict; insufficient evidence stays insufficient.
    fn negated(self) -> Self {
        let state = match self.state {
            CellState::Passed => CellState::Failed,
            CellState::Failed => CellState::Passed,
            CellState::NotExercised | CellState::NotApplicable | CellState::Error => return self,
        };
        Self {
            state,
            reason: format!("negated: {}", self.reason),
            margin: None,
            ..self
        }
    }
}

impl Invariant {
    /// Judges one invocation, applying `when`, `prompt_filter`, `baseline` and `negate`.
    pub fn judge(&self, subject: &Subject<'_>) -> Verdict {
        if let Some(why) = self.excluded(subject) {
            return Verdict::new(CellState::NotApplicable, why);
        }
        let own = self.baseline.as_ref().map(|answer| Baseline {
            answer,
            trace: None,
        });
        let subject = Subject {
            baseline: own.or(subject.baseline),
            ..*subject
        };
        if self.check.needs_baseline && subject.baseline.is_none() {
            return Verdict::error("there is no clean run of this prompt to compare with");
        }
        let verdict = (self.check.judge)(&subject);
        if self.negate {
            verdict.negated()
        } else {
            verdict
        }
    }

    /// The clean run of a prompt as a subject, judged as under chaos. The suite's own clean answer replaces the
    /// agent's, unless the invariant compares both.
    pub fn on_the_clean_run<'s>(&'s self, clean: &Subject<'s>) -> Subject<'s> {
        let own = self.baseline.as_ref();
        let own = own.filter(|_| !self.check.needs_baseline);
        Subject {
            answer: own.unwrap_or(clean.answer),
            ..*clean
        }
    }

    /// Why the invariant excludes this chaos or this prompt.
    fn excluded(&self, subject: &Subject<'_>) -> Option<String> {
        if !self.when.applies(subject.active) {
            let when = self.when.as_str();
            return Some(format!("the scenario does not fit `when: {when}`"));
        }
        let filter = self.prompt_filter.as_ref();
        let unwanted =
            filter.is_some_and(|filter| self.probes.is_empty() && !filter.wants(subject.prompt));
        unwanted.then(|| "`prompt_filter` leaves the prompt out".to_owned())
    }
}
