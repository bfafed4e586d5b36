//! `slow`: the exchange is held back.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::dice::Dice;
use crate::faults::delay::{Delay, Place};
use crate::faults::mode::{FaultMode, Fields, Tools};
use crate::plan::{Plan, VerdictIndex};

/// For so long, there; default 5,000 ms.
#[derive(Debug, Clone, PartialEq)]
pub struct Slow(Delay, Place);

impl FaultMode for Slow {
    const NAME: &'static str = "slow";

    fn read(fields: &mut Fields<'_, '_>, _: &Tools) -> Option<Self> {
        let delay = Delay::read(fields, Duration::from_secs(5));
        Some(Self(delay, Place::read(fields)))
    }

    fn apply(&self, plan: &mut Plan, verdict: VerdictIndex, dice: &mut Dice) -> Result<(), String> {
        plan.wait(verdict, self.1, self.0.draw_some(dice)?);
        Ok(())
    }

    fn parameters(&self, into: &mut Map<String, Value>) {
        self.0.parameters(into);
        self.1.parameters(into);
    }

    fn is_random(&self) -> bool {
        self.0.is_random()
    }
}
