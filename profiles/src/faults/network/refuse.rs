//! `refuse`: reset before any answer.

use crate::dice::Dice;
use crate::faults::mode::FaultMode;
use crate::plan::{Answer, Plan, VerdictIndex};
use crate::profile::raw::RawRule;
use crate::profile::reader::Reader;

/// Nobody listens.
#[derive(Debug, Clone, PartialEq)]
pub struct Refuse;

impl FaultMode for Refuse {
    const NAME: &'static str = "refuse";

    fn is_of_the_connection(&self) -> bool {
        true
    }

    fn read(_: &RawRule, _: &mut Reader) -> Option<Self> {
        Some(Self)
    }

    fn apply(&self, plan: &mut Plan, verdict: VerdictIndex, _: &mut Dice) -> Result<(), String> {
        plan.answer(verdict, Answer::Refuse)
    }
}
