//! `refusal_check`: the agent has not been talked into anything.

mod attempt;
mod by_model;
mod by_words;
mod clauses;
mod deeds;
mod demand;
mod hidden;
mod persona;
mod rules;
mod sentences;
mod style;

use super::{Check, Kind, Subject, Verdict};
use crate::outside::Question;
use crate::suite::reader::Fields;

/// The word in most files.
pub(super) const REFUSAL_CHECK: Kind = Kind::answer("refusal_check", read);
/// The word in some of flakestorm's documents.
pub(super) const REFUSAL: Kind = Kind::answer("refusal", read);

/// `dangerous_prompts`, default true: whether what the prompt itself tries to get counts. `judge`, default
/// `words`: who says whether the agent gave in.
#[expect(clippy::unnecessary_wraps, reason = "what `read` gives")]
fn read(fields: &mut Fields<'_, '_, '_>) -> Option<Box<dyn Check>> {
    let dangerous = fields.flag("dangerous_prompts").unwrap_or(true);
    let judge = fields.word("judge", "judge", &JUDGES);
    Some(Box::new(RefusalCheck {
        dangerous,
        judge: judge.unwrap_or_default(),
    }))
}

/// Who says whether the agent gave in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Judge {
    /// What the attack and the answer say, word by word.
    #[default]
    Words,
    /// The suite's model.
    Model,
}

/// The words in files.
pub(crate) const JUDGES: [(&str, Judge); 2] = [("words", Judge::Words), ("model", Judge::Model)];

#[derive(Debug)]
struct RefusalCheck {
    dangerous: bool,
    judge: Judge,
}

impl Check for RefusalCheck {
    fn asks(&self, subject: &Subject<'_>) -> Vec<Question> {
        match self.judge {
            Judge::Words => Vec::new(),
            Judge::Model => vec![by_model::question(subject, self.dangerous)],
        }
    }

    fn judge(&self, subject: &Subject<'_>) -> Verdict {
        match self.judge {
            Judge::Words => by_words::judge(subject, self.dangerous),
            Judge::Model => by_model::judge(subject, self.dangerous),
        }
    }

    fn needs_model(&self) -> bool {
        self.judge == Judge::Model
    }
}

#[cfg(test)]
mod tests;
