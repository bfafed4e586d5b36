//! `swapped`: another call's answer.

use crate::dice::Dice;
use crate::fault::ResultChange;
use crate::faults::mode::{FaultMode, Fields, Told, Tools};
use crate::plan::{Plan, Substitute, VerdictIndex};

/// What another call was told.
#[derive(Debug, Clone, PartialEq)]
pub struct Swapped;

impl FaultMode for Swapped {
    const NAME: &'static str = "swapped";
    const TOLD: Option<Told<Self>> = Some(|_, _, _, _| ResultChange::Swapped);

    fn tells_calls_apart(&self) -> bool {
        true
    }

    fn read(_: &mut Fields<'_, '_>, _: &Tools) -> Option<Self> {
        Some(Self)
    }

    fn apply(&self, plan: &mut Plan, verdict: VerdictIndex, _: &mut Dice) -> Result<(), String> {
        plan.substitute(verdict, Substitute::Swapped)
    }
}
