//! What is judged, and what comes of it.

use super::{BaselineFrom, Invariant, LooksAt, kinds};
use crate::answer::Answer;
use crate::suite::{Active, Prices, Prompt};
use crate::trace::Trace;

/// One invocation of an agent, as invariants see it.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// What the agent was asked.
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
}

/// What an agent does with a prompt when nothing is wrong.
#[derive(Debug, Clone, Copy)]
pub struct Baseline<'a> {
    /// What it answers.
    pub answer: &'a Answer,
    /// What goes over the wire; `None` where the baseline is a text of the suite.
    pub trace: Option<&'a Trace>,
}

/// What a check found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It holds, because.
    Holds(String),
    /// It does not hold, because.
    Fails(String),
    /// What was seen proves neither.
    Insufficient(String),
    /// It could not be judged.
    Error(String),
}

impl Verdict {
    /// The opposite; what proves nothing still proves nothing.
    fn negated(self) -> Self {
        match self {
            Self::Holds(reason) => Self::Fails(format!("negated: {reason}")),
            Self::Fails(reason) => Self::Holds(format!("negated: {reason}")),
            neither => neither,
        }
    }

    /// Why.
    pub fn reason(&self) -> &str {
        match self {
            Self::Holds(reason)
            | Self::Fails(reason)
            | Self::Insufficient(reason)
            | Self::Error(reason) => reason,
        }
    }
}

/// What an invariant says of one invocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Judgement {
    /// It is not for this chaos, or not for this prompt.
    NotApplicable(String),
    /// It was judged.
    Judged(Verdict),
}

impl Invariant {
    /// Judges one invocation: `when`, `prompt_filter` and `negate` are honoured.
    pub fn judge(&self, subject: &Subject<'_>) -> Judgement {
        if !self.when.applies(subject.active) {
            let when = self.when.as_str();
            return Judgement::NotApplicable(format!("the scenario does not fit `when: {when}`"));
        }
        let unwanted = self
            .prompt_filter
            .as_ref()
            .is_some_and(|filter| self.probes.is_empty() && !filter.wants(subject.prompt));
        if unwanted {
            return Judgement::NotApplicable("`prompt_filter` leaves the prompt out".to_owned());
        }
        Judgement::Judged(self.verdict(subject))
    }

    fn verdict(&self, subject: &Subject<'_>) -> Verdict {
        let own = match &self.baseline {
            BaselineFrom::Auto => None,
            BaselineFrom::Text(text) => Some(Answer::of(text.clone())),
        };
        let subject = Subject {
            baseline: own
                .as_ref()
                .map(|answer| Baseline {
                    answer,
                    trace: None,
                })
                .or(subject.baseline),
            ..*subject
        };
        if self.check.needs_baseline() && subject.baseline.is_none() {
            let reason = "there is no clean run of this prompt to compare with".to_owned();
            return Verdict::Error(reason);
        }
        let verdict = self.check.judge(&subject);
        if self.negate {
            verdict.negated()
        } else {
            verdict
        }
    }

    /// Whether it does not hold of the clean answer either, so that no chaos is to blame. `None`:
    /// nobody knows. `clean` is the same prompt's clean run.
    pub fn fails_without_chaos(&self, clean: &Subject<'_>) -> Option<bool> {
        let own = match &self.baseline {
            BaselineFrom::Auto => None,
            BaselineFrom::Text(text) => Some(Answer::of(text.clone())),
        };
        let clean = Subject {
            answer: own.as_ref().unwrap_or(clean.answer),
            ..*clean
        };
        match self.verdict(&clean) {
            Verdict::Holds(_) => Some(false),
            Verdict::Fails(_) => Some(true),
            Verdict::Insufficient(_) | Verdict::Error(_) => None,
        }
    }

    /// Whether it cannot be judged without a clean run of the same prompt.
    pub fn needs_baseline(&self) -> bool {
        self.check.needs_baseline() && self.baseline == BaselineFrom::Auto
    }

    /// Whether it looks at the wire, so that bodies have to be kept.
    pub fn looks_at_the_wire(&self) -> bool {
        let mut kinds = kinds();
        kinds.any(|kind| kind.name == self.kind && kind.looks_at == LooksAt::Wire)
    }
}
