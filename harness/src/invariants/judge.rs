//! What is judged, and the verdict on it.

use super::Invariant;
use crate::answer::Answer;
use crate::outside::Replies;
use crate::run::CellState;
use crate::suite::{Active, Prices, Prompt};
use crate::trace::{Attempt, Trace};

/// One invocation of an agent, as invariants see it.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// What the agent was sent.
    pub prompt: &'a Prompt,
    /// What it answered.
    pub answer: &'a Answer,
    /// What went over the wire meanwhile.
    pub trace: &'a Trace,
    /// The same prompt without chaos; `None`: there was no such run.
    pub baseline: Option<Baseline<'a>>,
    /// Which chaos was in force.
    pub active: Active,
    /// What models' tokens cost.
    pub prices: &'a Prices,
    /// Replies of models and programs.
    pub replies: &'a Replies,
}

/// What an agent does with a prompt when nothing is wrong.
#[derive(Debug, Clone, Copy)]
pub struct Baseline<'a> {
    /// What it answers.
    pub answer: &'a Answer,
    /// What goes over the wire; `None` where the baseline is a text of the suite.
    pub trace: Option<&'a Trace>,
}

/// What an invariant says of one invocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// `NotExercised`: what was seen proves neither; `NotApplicable`: `when` or `prompt_filter` exclude it.
    pub state: CellState,
    /// Why.
    pub reason: String,
    /// Id of the exchange that shows it.
    pub exchange: Option<String>,
}

impl Verdict {
    fn new(state: CellState, reason: impl Into<String>) -> Self {
        Self {
            state,
            reason: reason.into(),
            exchange: None,
        }
    }

    /// It holds.
    pub fn holds(reason: impl Into<String>) -> Self {
        Self::new(CellState::Passed, reason)
    }

    /// It does not hold.
    pub fn fails(reason: impl Into<String>) -> Self {
        Self::new(CellState::Failed, reason)
    }

    /// What was seen proves neither.
    pub fn insufficient(reason: impl Into<String>) -> Self {
        Self::new(CellState::NotExercised, reason)
    }

    /// It could not be judged.
    pub fn error(reason: impl Into<String>) -> Self {
        Self::new(CellState::Error, reason)
    }

    /// The same, shown by this exchange.
    pub(crate) fn at(self, attempt: &Attempt) -> Self {
        Self {
            exchange: Some(attempt.id.clone()),
            ..self
        }
    }

    /// The opposite; insufficient evidence stays so.
    fn negated(self) -> Self {
        let state = match self.state {
            CellState::Passed => CellState::Failed,
            CellState::Failed => CellState::Passed,
            CellState::NotExercised | CellState::NotApplicable | CellState::Error => return self,
        };
        Self {
            state,
            reason: format!("negated: {}", self.reason),
            ..self
        }
    }
}

impl Invariant {
    /// Judges one invocation: `when`, `prompt_filter`, `baseline` and `negate` are honoured.
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
        if self.check.needs_baseline() && subject.baseline.is_none() {
            return Verdict::error("there is no clean run of this prompt to compare with");
        }
        let verdict = self.check.judge(&subject);
        if self.negate {
            verdict.negated()
        } else {
            verdict
        }
    }

    /// The clean run of a prompt, to be judged as if it were one under chaos. The suite's own clean answer takes the
    /// place of the agent's, unless the two are compared.
    pub fn on_the_clean_run<'s>(&'s self, clean: &Subject<'s>) -> Subject<'s> {
        let own = self.baseline.as_ref();
        let own = own.filter(|_| !self.check.needs_baseline());
        Subject {
            answer: own.unwrap_or(clean.answer),
            ..*clean
        }
    }

    /// Why it is not for this chaos, or not for this prompt.
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
