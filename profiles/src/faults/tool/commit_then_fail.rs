//! `commit_then_fail`: the upstream does it, the agent hears that it failed.

use http::StatusCode;
use serde_json::{Map, Value, json};

use super::answers::{AS_RESULT, ErrorLayer, IN_MCP, error_answer, error_reply};
use crate::dice::Dice;
use crate::faults::mode::FaultMode;
use crate::plan::{Answer, Plan, Substitute, ToolSays, VerdictIndex};
use crate::profile::raw::RawRule;
use crate::profile::reader::Reader;

/// What it hears: a 503, unless something else is written.
#[derive(Debug, Clone, PartialEq)]
pub struct CommitThenFail(Substitute);

impl FaultMode for CommitThenFail {
    const NAME: &'static str = "commit_then_fail";
    const PARAMETERS: &'static [&'static str] = &["error_code", "reset"];

    fn read(raw: &RawRule, reader: &mut Reader) -> Option<Self> {
        Some(Self(read_failure(raw, reader)))
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
fn read_failure(raw: &RawRule, reader: &mut Reader) -> Substitute {
    let reset = raw.reset.as_ref().is_some_and(|reset| reset.value.is_set());
    if let (true, Some(code)) = (reset, &raw.error_code) {
        let message = "`error_code` and `reset` exclude each other; keep one of them";
        reader.error("error_code", code.position, message);
    }
    if reset {
        return Substitute::Reset;
    }
    let code = raw.error_code.as_ref();
    let status = reader.status("error_code", code, 200);
    let status = status.unwrap_or(StatusCode::SERVICE_UNAVAILABLE);
    let layer = match code {
        Some(_) => ErrorLayer::Http(status.canonical_reason().unwrap_or("error").to_owned()),
        None => ErrorLayer::Tool(None),
    };
    Substitute::Answer(error_answer(&error_reply(status, None), &layer))
}
