//! `silent_noop`: the upstream never hears of it, the agent is told that it was done.

use http::StatusCode;
use serde_json::{Map, Value, json};

use super::answers::{reply, says, text};
use crate::dice::Dice;
use crate::faults::mode::FaultMode;
use crate::plan::{Answer, Plan, Reply, ToolAnswer, ToolSays, VerdictIndex};
use crate::profile::raw::RawRule;
use crate::profile::reader::Reader;

/// In these words; default `{"ok": true}`.
#[derive(Debug, Clone, PartialEq)]
pub struct SilentNoop(Reply);

impl FaultMode for SilentNoop {
    const NAME: &'static str = "silent_noop";
    const PARAMETERS: &'static [&'static str] = &["error_code", "payload"];

    fn read(raw: &RawRule, reader: &mut Reader) -> Option<Self> {
        let status = reader.status("error_code", raw.error_code.as_ref(), 200);
        let payload = raw.payload.as_ref().map(|payload| payload.value.clone());
        let payload = payload.unwrap_or_else(|| json!({ "ok": true }));
        Some(Self(reply(status.unwrap_or(StatusCode::OK), &payload)))
    }

    fn apply(&self, plan: &mut Plan, verdict: VerdictIndex, _: &mut Dice) -> Result<(), String> {
        let reply = self.0.clone();
        if reply.status.is_success() {
            return plan.answer(verdict, says(reply));
        }
        // Any other status says that it was not done.
        let answer = ToolAnswer {
            says: ToolSays::Status(text(&reply.body)),
            plain: reply,
        };
        plan.answer(verdict, Answer::Tool(answer))
    }

    fn parameters(&self, into: &mut Map<String, Value>) {
        into.insert("error_code".into(), json!(self.0.status.as_u16()));
        into.insert("payload".into(), json!(text(&self.0.body)));
    }
}
