//! `context_length_exceeded`: what was sent is too long for the model.

use squall_dialects::model::ModelError;

use crate::dice::Dice;
use crate::faults::mode::{FaultMode, Fields, Tools};
use crate::plan::{Answer, Plan, VerdictIndex};

/// In its own words, which count what was sent.
#[derive(Debug, Clone, PartialEq)]
pub struct ContextLengthExceeded;

impl FaultMode for ContextLengthExceeded {
    const NAME: &'static str = "context_length_exceeded";

    fn read(_: &mut Fields<'_, '_>, _: &Tools) -> Option<Self> {
        Some(Self)
    }

    fn apply(&self, plan: &mut Plan, verdict: VerdictIndex, _: &mut Dice) -> Result<(), String> {
        plan.answer(verdict, Answer::ModelError(ModelError::ContextLength))
    }

    fn counts_tokens(&self) -> bool {
        true
    }

    fn hangs_on_tokens(&self) -> bool {
        false
    }
}
