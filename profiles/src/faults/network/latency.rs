//! `latency`: the exchange is held back.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::dice::Dice;
use crate::faults::delay::{Delay, Place};
use crate::faults::mode::{FaultMode, Fields, Tools};
use crate::plan::{Plan, VerdictIndex};

/// For so long, there; one of `delay_ms` and `jitter_ms` has to be written.
#[derive(Debug, Clone, PartialEq)]
pub struct Latency(Delay, Place);

impl FaultMode for Latency {
    const NAME: &'static str = "latency";
    const NEEDS: &'static [&'static str] = &["delay_ms", "jitter_ms"];

    fn read(fields: &mut Fields<'_, '_>, _: &Tools) -> Option<Self> {
        let delay = Delay::read(fields, Duration::ZERO);
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
