//! `commit_then_fail`: the upstream does it, the agent hears that it failed.

use http::StatusCode;
use serde_json::{Map, Value, json};

use super::answers::{AS_RESULT, ErrorLayer, IN_MCP, error_answer, error_reply};
use crate::dice::Dice;
use crate::faults::mode::{FaultMode, Fields, Tools};
use crate::plan::{Answer, Plan, Substitute, ToolSays, VerdictIndex};
use crate::profile::amounts::status;

/// What it hears: a 503, unless something else is written.
#[derive(Debug, Clone, PartialEq)]
pub struct CommitThenFail(Substitute);

impl FaultMode for CommitThenFail {
    const NAME: &'static str = "commit_then_fail";

    fn read(fields: &mut Fields<'_, '_>, _: &Tools) -> Option<Self> {
        Some(Self(read_failure(fields)))
    }

    fn apply(&self, plan: &mut Plan, verdict: VerdictIndex, _: &mut Dice) -> Result<(), String> {
        plan.substitute(verdict, self.0.clone())
    }

    fn parameters(&self, into: &mut Map<String, Value>) {
        let Substitute::Answer(Answer::Tool(answer)) = &self.0 else {
            into.insert("reset".into(), json!(true));
            return;
        };
        let status = answer.plain.status.as_u16();
        into.insert("error_code".into(), json!(status));
        if matches!(answer.says, ToolSays::Failure(_)) {
            into.insert(IN_MCP.into(), json!(AS_RESULT));
        }
    }
}

/// `reset: true`, or `error_code` (default 503).
fn read_failure(fields: &mut Fields<'_, '_>) -> Substitute {
    let about = "Reset the connection instead of answering.";
    let reset = fields.flag("reset", about).unwrap_or(false);
    let status = status(fields, "Status of the response; default 503.", 200);
    if reset {
        if fields.has("error_code") {
            let message = "`error_code` and `reset` exclude each other; keep one of them";
            fields.error("error_code", message);
        }
        return Substitute::Reset;
    }
    let status = status.unwrap_or(StatusCode::SERVICE_UNAVAILABLE);
    let layer = if fields.has("error_code") {
        ErrorLayer::Http(status.canonical_reason().unwrap_or("error").to_owned())
    } else {
        ErrorLayer::Tool(None)
    };
    Substitute::Answer(error_answer(&error_reply(status, None), &layer))
}
