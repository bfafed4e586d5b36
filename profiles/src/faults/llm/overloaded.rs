//! `overloaded`: the provider has too much to do.

use squall_dialects::model::ModelError;

use crate::dice::Dice;
use crate::faults::mode::{FaultMode, Fields, Tools};
use crate::plan::{Answer, Plan, VerdictIndex};

/// In its own words.
#[derive(Debug, Clone, PartialEq)]
pub struct Overloaded;

impl FaultMode for Overloaded {
    const NAME: &'static str = "overloaded";

    fn read(_: &mut Fields<'_, '_>, _: &Tools) -> Option<Self> {
        Some(Self)
    }

    fn apply(&self, plan: &mut Plan, verdict: VerdictIndex, _: &mut Dice) -> Result<(), String> {
        plan.answer(verdict, Answer::ModelError(ModelError::Overloaded))
    }
}
