//! `silent_noop`: the upstream never hears of it, the agent is told that it was done.

use http::StatusCode;
use serde_json::{Map, Value, json};

use super::answers::{reply, says, text};
use crate::dice::Dice;
use crate::faults::mode::{FaultMode, Fields, Tools};
use crate::plan::{Answer, Plan, Reply, ToolAnswer, ToolSays, VerdictIndex};
use crate::profile::amounts::status;

/// In these words; default `{"ok": true}`.
#[derive(Debug, Clone, PartialEq)]
pub struct SilentNoop(Reply);

impl FaultMode for SilentNoop {
    const NAME: &'static str = "silent_noop";

    fn read(fields: &mut Fields<'_, '_>, _: &Tools) -> Option<Self> {
        let status = status(fields, "Status of the response; default 200.", 200);
        let about = "What is answered: text, or any JSON value; default `{\"ok\": true}`.";
        let payload = fields.any("payload", about);
        let payload =
            payload.map_or_else(|| json!({ "ok": true }), |payload| payload.value.to_json());
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
