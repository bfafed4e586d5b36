//! `timeout`: held, then closed without an answer.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::dice::Dice;
use crate::faults::delay::Delay;
use crate::faults::mode::{FaultMode, Fields, Tools};
use crate::plan::{Answer, Plan, VerdictIndex};

/// For so long; default 30,000 ms.
#[derive(Debug, Clone, PartialEq)]
pub struct Timeout(Delay);

impl FaultMode for Timeout {
    const NAME: &'static str = "timeout";

    fn read(fields: &mut Fields<'_, '_>, _: &Tools) -> Option<Self> {
        Some(Self(Delay::read(fields, Duration::from_secs(30))))
    }

    fn apply(&self, plan: &mut Plan, verdict: VerdictIndex, dice: &mut Dice) -> Result<(), String> {
        plan.answer(verdict, Answer::Hold(self.0.draw(dice)))
    }

    fn parameters(&self, into: &mut Map<String, Value>) {
        self.0.parameters(into);
    }

    fn is_random(&self) -> bool {
        self.0.is_random()
    }
}
