//! What is judged, and what comes of it.

use super::{BaselineFrom, Invariant, LooksAt, kinds};
use crate::answer::Answer;
use crate::outside::{Question, Told};
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
    /// What was said to the questions of the run's invariants.
    pub told: &'a Told,
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
        match self.excluded(subject) {
            Some(why) => Judgement::NotApplicable(why),
            None => Judgement::Judged(self.verdict(subject)),
        }
    }

    /// What it wants to know before it judges this invocation.
    pub(crate) fn questions(&self, subject: &Subject<'_>) -> Vec<Question> {
        if self.excluded(subject).is_some() {
            return Vec::new();
        }
        self.beside_the_clean_answer(subject, |subject| self.check.asks(subject))
    }

    /// What it wants to know before [`Self::fails_without_chaos`].
    pub(crate) fn questions_without_chaos(&self, clean: &Subject<'_>) -> Vec<Question> {
        if self.excluded(clean).is_some() {
            return Vec::new();
        }
        self.of_the_clean_answer(clean, |clean| {
            self.beside_the_clean_answer(clean, |clean| self.check.asks(clean))
        })
    }

    /// Why it is not for this chaos, or not for this prompt.
    fn excluded(&self, subject: &Subject<'_>) -> Option<String> {
        if !self.when.applies(subject.active) {
            let when = self.when.as_str();
            return Some(format!("the scenario does not fit `when: {when}`"));
        }
        let unwanted = self
            .prompt_filter
            .as_ref()
            .is_some_and(|filter| self.probes.is_empty() && !filter.wants(subject.prompt));
        unwanted.then(|| "`prompt_filter` leaves the prompt out".to_owned())
    }

    /// The clean answer that the suite gives itself.
    fn own_baseline(&self) -> Option<Answer> {
        match &self.baseline {
            BaselineFrom::Auto => None,
            BaselineFrom::Text(text) => Some(Answer::of(text.clone())),
        }
    }

    /// The invocation beside the clean answer that counts.
    fn beside_the_clean_answer<T>(
        &self,
        subject: &Subject<'_>,
        look: impl FnOnce(&Subject<'_>) -> T,
    ) -> T {
        let own = self.own_baseline();
        look(&Subject {
            baseline: own
                .as_ref()
                .map(|answer| Baseline {
                    answer,
                    trace: None,
                })
                .or(subject.baseline),
            ..*subject
        })
    }

    /// The clean answer that counts, as if it were one under chaos: the agent's own where that is compared with
    /// the suite's.
    fn of_the_clean_answer<T>(
        &self,
        clean: &Subject<'_>,
        look: impl FnOnce(&Subject<'_>) -> T,
    ) -> T {
        let own = self.own_baseline().filter(|_| !self.check.needs_baseline());
        look(&Subject {
            answer: own.as_ref().unwrap_or(clean.answer),
            ..*clean
        })
    }

    fn verdict(&self, subject: &Subject<'_>) -> Verdict {
        let verdict = self.beside_the_clean_answer(subject, |subject| {
            if self.check.needs_baseline() && subject.baseline.is_none() {
                let reason = "there is no clean run of this prompt to compare with".to_owned();
                return Verdict::Error(reason);
            }
            self.check.judge(subject)
        });
        if self.negate {
            verdict.negated()
        } else {
            verdict
        }
    }

    /// Whether it does not hold of the clean answer either, so that no chaos is to blame. `None`: nobody knows,
    /// or nobody asks, since its `when` leaves what is without chaos out. `clean` is the same prompt's clean run.
    pub fn fails_without_chaos(&self, clean: &Subject<'_>) -> Option<bool> {
        if self.excluded(clean).is_some() {
            return None;
        }
        match self.of_the_clean_answer(clean, |clean| self.verdict(clean)) {
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
