//! `refuse`: reset before any answer.

use crate::dice::Dice;
use crate::faults::mode::{FaultMode, Fields, Tools};
use crate::plan::{Answer, Plan, VerdictIndex};

/// Nobody listens.
#[derive(Debug, Clone, PartialEq)]
pub struct Refuse;

impl FaultMode for Refuse {
    const NAME: &'static str = "refuse";

    fn is_of_the_connection(&self) -> bool {
        true
    }

    fn read(_: &mut Fields<'_, '_>, _: &Tools) -> Option<Self> {
        Some(Self)
    }

    fn apply(&self, plan: &mut Plan, verdict: VerdictIndex, _: &mut Dice) -> Result<(), String> {
        plan.answer(verdict, Answer::Refuse)
    }
}
