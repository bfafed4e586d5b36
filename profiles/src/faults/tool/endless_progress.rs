//! `endless_progress`: notifications that an MCP call is being worked on, and never a result.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::dice::Dice;
use crate::faults::delay::millis;
use crate::faults::mode::{FaultMode, Fields, Tools};
use crate::plan::{Answer, Plan, VerdictIndex};
use crate::profile::amounts;

/// So far apart; default 1,000 ms.
#[derive(Debug, Clone, PartialEq)]
pub struct EndlessProgress(Duration);

impl FaultMode for EndlessProgress {
    const NAME: &'static str = "endless_progress";

    fn read(fields: &mut Fields<'_, '_>, _: &Tools) -> Option<Self> {
        let about = "Milliseconds between notifications; default 1000.";
        let apart = amounts::millis(fields, "delay_ms", about);
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
