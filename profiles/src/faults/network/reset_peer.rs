//! `reset_peer`: the connection is reset once the upstream has answered, or after so many body bytes.

use serde_json::{Map, Value, json};

use crate::dice::Dice;
use crate::faults::mode::{FaultMode, Fields, Tools};
use crate::plan::{Cut, Ending, Plan, Substitute, VerdictIndex};
use crate::profile::amounts::count;

/// When.
#[derive(Debug, Clone, PartialEq)]
pub struct ResetPeer {
    /// Encoded body bytes that still reach the agent; `None`: not even the head does.
    after_bytes: Option<u64>,
}

impl FaultMode for ResetPeer {
    const NAME: &'static str = "reset_peer";

    fn read(fields: &mut Fields<'_, '_>, _: &Tools) -> Option<Self> {
        let about = "Body bytes that still reach the agent.";
        let after_bytes = count(fields, "after_bytes", about, 0);
        Some(Self { after_bytes })
    }

    fn apply(&self, plan: &mut Plan, verdict: VerdictIndex, _: &mut Dice) -> Result<(), String> {
        let Some(after_bytes) = self.after_bytes else {
            return plan.substitute(verdict, Substitute::Reset);
        };
        let ending = Ending::Reset;
        plan.cut(
            verdict,
            Cut {
                after_bytes,
                ending,
            },
        )
    }

    fn parameters(&self, into: &mut Map<String, Value>) {
        into.extend(
            self.after_bytes
                .map(|bytes| ("after_bytes".into(), json!(bytes))),
        );
    }
}
