//! `timeout`: held, then closed without an answer.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::dice::Dice;
use crate::fault::ResultChange;
use crate::faults::delay::Delay;
use crate::faults::mode::{FaultMode, Fields, Told, Tools};
use crate::plan::{Answer, Plan, VerdictIndex};

/// For so long; default 30,000 ms.
#[derive(Debug, Clone, PartialEq)]
pub struct Timeout(Delay);

impl FaultMode for Timeout {
    const NAME: &'static str = "timeout";
    const TOLD: Option<Told<Self>> = Some(|Self(delay), _, _, dice| {
        let seconds = delay.draw(dice).as_secs_f64();
        ResultChange::Failure(format!(
            "The tool did not answer: timed out after {seconds} seconds."
        ))
    });

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
