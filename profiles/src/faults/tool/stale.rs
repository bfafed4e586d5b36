//! `stale`: the previous answer again.

use crate::dice::Dice;
use crate::fault::ResultChange;
use crate::faults::mode::{FaultMode, Fields, Told, Tools};
use crate::plan::{Plan, Substitute, VerdictIndex};

/// What the tool said the last time.
#[derive(Debug, Clone, PartialEq)]
pub struct Stale;

impl FaultMode for Stale {
    const NAME: &'static str = "stale";
    const TOLD: Option<Told<Self>> = Some(|_, _, _, _| ResultChange::Stale);

    fn read(_: &mut Fields<'_, '_>, _: &Tools) -> Option<Self> {
        Some(Self)
    }

    fn apply(&self, plan: &mut Plan, verdict: VerdictIndex, _: &mut Dice) -> Result<(), String> {
        plan.substitute(verdict, Substitute::Stale)
    }
}
