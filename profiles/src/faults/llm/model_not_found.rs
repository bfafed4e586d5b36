//! `model_not_found`: the provider has no such model.

use squall_dialects::model::ModelError;

use crate::dice::Dice;
use crate::faults::mode::{FaultMode, Fields, Tools};
use crate::plan::{Answer, Plan, VerdictIndex};

/// In its own words.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelNotFound;

impl FaultMode for ModelNotFound {
    const NAME: &'static str = "model_not_found";

    fn read(_: &mut Fields<'_, '_>, _: &Tools) -> Option<Self> {
        Some(Self)
    }

    fn apply(&self, plan: &mut Plan, verdict: VerdictIndex, _: &mut Dice) -> Result<(), String> {
        plan.answer(verdict, Answer::ModelError(ModelError::ModelNotFound))
    }
}
