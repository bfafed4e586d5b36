//! `slow_close`: the end of the message is late.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::dice::Dice;
use crate::faults::delay::Delay;
use crate::faults::mode::{FaultMode, Fields, Tools};
use crate::plan::{Plan, VerdictIndex};

/// By so long; default 1000 ms.
#[derive(Debug, Clone, PartialEq)]
pub struct SlowClose(Delay);

impl FaultMode for SlowClose {
    const NAME: &'static str = "slow_close";

    fn read(fields: &mut Fields<'_, '_>, _: &Tools) -> Option<Self> {
        Some(Self(Delay::read(fields, Duration::from_secs(1))))
    }

    fn apply(&self, plan: &mut Plan, verdict: VerdictIndex, dice: &mut Dice) -> Result<(), String> {
        plan.close_slowly(verdict, self.0.draw_some(dice)?)
    }

    fn parameters(&self, into: &mut Map<String, Value>) {
        self.0.parameters(into);
    }

    fn is_random(&self) -> bool {
        self.0.is_random()
    }
}
