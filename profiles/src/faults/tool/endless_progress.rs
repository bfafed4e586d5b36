//! `endless_progress`: notifications that an MCP call is being worked on, and never a result.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::dice::Dice;
use crate::faults::delay::millis;
use crate::faults::mode::FaultMode;
use crate::plan::{Answer, Plan, VerdictIndex};
use crate::profile::raw::RawRule;
use crate::profile::reader::Reader;

/// So far apart; default 1,000 ms.
#[derive(Debug, Clone, PartialEq)]
pub struct EndlessProgress(Duration);

impl FaultMode for EndlessProgress {
    const NAME: &'static str = "endless_progress";
    const PARAMETERS: &'static [&'static str] = &["delay_ms"];

    fn read(raw: &RawRule, reader: &mut Reader) -> Option<Self> {
        let apart = reader.millis("delay_ms", raw.delay_ms.as_ref());
        let apart = apart.unwrap_or(Duration::from_secs(1));
        Some(Self(apart.max(Duration::from_millis(1))))
    }

    fn apply(&self, plan: &mut Plan, verdict: VerdictIndex, _: &mut Dice) -> Result<(), String> {
        plan.answer(verdict, Answer::EndlessProgress(self.0))
    }

    fn parameters(&self, into: &mut Map<String, Value>) {
        into.insert("delay_ms".into(), millis(self.0));
    }
}
