//! `latency`: the exchange is held back.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::dice::Dice;
use crate::faults::delay::{DELAY, Delay, Place};
use crate::faults::mode::FaultMode;
use crate::plan::{Plan, VerdictIndex};
use crate::profile::raw::RawRule;
use crate::profile::reader::Reader;

/// For so long, there; one of `delay_ms` and `jitter_ms` has to be written.
#[derive(Debug, Clone, PartialEq)]
pub struct Latency(Delay, Place);

impl FaultMode for Latency {
    const NAME: &'static str = "latency";
    const PARAMETERS: &'static [&'static str] = DELAY;
    const NEEDS: &'static [&'static str] = &["delay_ms", "jitter_ms"];

    fn read(raw: &RawRule, reader: &mut Reader) -> Option<Self> {
        let delay = Delay::read(raw, reader, Duration::ZERO);
        Some(Self(delay, Place::read(raw, reader)))
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
