//! `timeout`: held, then closed without an answer.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::dice::Dice;
use crate::fault::ResultChange;
use crate::faults::delay::{Delay, HOLD};
use crate::faults::mode::{FaultMode, Told};
use crate::plan::{Answer, Plan, VerdictIndex};
use crate::profile::raw::RawRule;
use crate::profile::reader::Reader;

/// For so long; default 30,000 ms.
#[derive(Debug, Clone, PartialEq)]
pub struct Timeout(Delay);

impl FaultMode for Timeout {
    const NAME: &'static str = "timeout";
    const PARAMETERS: &'static [&'static str] = HOLD;
    const TOLD: Option<Told<Self>> = Some(|Self(delay), _, _, dice| {
        let seconds = delay.draw(dice).as_secs_f64();
        ResultChange::Failure(format!(
            "The tool did not answer: timed out after {seconds} seconds."
        ))
    });

    fn read(raw: &RawRule, reader: &mut Reader) -> Option<Self> {
        Some(Self(Delay::read(raw, reader, Duration::from_secs(30))))
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
