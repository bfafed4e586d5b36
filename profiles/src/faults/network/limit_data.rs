//! `limit_data`: the body ends after so many bytes, its framing incomplete.

use serde_json::{Map, Value, json};

use crate::dice::Dice;
use crate::faults::mode::{FaultMode, Fields, Tools};
use crate::plan::{Cut, Ending, Plan, VerdictIndex};
use crate::profile::amounts::count;

/// When.
#[derive(Debug, Clone, PartialEq)]
pub struct LimitData {
    /// Encoded body bytes that still reach the agent.
    bytes: u64,
}

impl FaultMode for LimitData {
    const NAME: &'static str = "limit_data";
    const NEEDS: &'static [&'static str] = &["bytes"];

    fn read(fields: &mut Fields<'_, '_>, _: &Tools) -> Option<Self> {
        let bytes = count(fields, "bytes", "Body bytes that are kept.", 0);
        Some(Self {
            bytes: bytes.unwrap_or_default(),
        })
    }

    fn apply(&self, plan: &mut Plan, verdict: VerdictIndex, _: &mut Dice) -> Result<(), String> {
        let cut = Cut {
            after_bytes: self.bytes,
            ending: Ending::Close,
        };
        plan.cut(verdict, cut)
    }

    fn parameters(&self, into: &mut Map<String, Value>) {
        into.insert("bytes".into(), json!(self.bytes));
    }
}
