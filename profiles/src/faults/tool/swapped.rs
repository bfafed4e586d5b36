//! `swapped`: another call's answer.

use crate::dice::Dice;
use crate::fault::ResultChange;
use crate::faults::mode::{FaultMode, Told};
use crate::plan::{Plan, Substitute, VerdictIndex};
use crate::profile::raw::RawRule;
use crate::profile::reader::Reader;

/// What another call was told.
#[derive(Debug, Clone, PartialEq)]
pub struct Swapped;

impl FaultMode for Swapped {
    const NAME: &'static str = "swapped";
    const TOLD: Option<Told<Self>> = Some(|_, _, _, _| ResultChange::Swapped);

    fn tells_calls_apart(&self) -> bool {
        true
    }

    fn read(_: &RawRule, _: &mut Reader) -> Option<Self> {
        Some(Self)
    }

    fn apply(&self, plan: &mut Plan, verdict: VerdictIndex, _: &mut Dice) -> Result<(), String> {
        plan.substitute(verdict, Substitute::Swapped)
    }
}
