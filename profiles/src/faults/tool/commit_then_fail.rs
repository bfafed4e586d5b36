//! `commit_then_fail`: the upstream processes the request, and the agent gets an error.

use http::StatusCode;
use serde_json::json;
use squall_documents::Fields;

use super::answers::{AS_RESULT, error_answer, error_reply};
use crate::amounts::status;
use crate::changes::Tools;
use crate::fault::{Fault, IN_MCP};
use crate::faults::fixed::fixed;
use crate::plan::{Substitute, ToolSays};

/// `reset: true`, or `error_code` (default 503).
pub(super) fn read(fields: &mut Fields<'_, '_>, _: &Tools) -> Fault {
    let about = "Reset the connection instead of answering.";
    let reset = fields.flag("reset", about).unwrap_or(false);
    let status = status(fields, "Status of the response; default 503.", 200);
    if reset {
        if fields.has("error_code") {
            let message = "`error_code` and `reset` exclude each other; keep one of them";
            fields.error("error_code", message);
        }
        return fixed(json!({ "reset": true }), |plan, verdict| {
            plan.substitute(verdict, Substitute::Reset)
        });
    }
    let status = status.unwrap_or(StatusCode::SERVICE_UNAVAILABLE);
    let mut parameters = json!({ "error_code": status.as_u16() });
    let says = if fields.has("error_code") {
        ToolSays::Status(status.canonical_reason().unwrap_or("error").to_owned())
    } else {
        parameters[IN_MCP] = json!(AS_RESULT);
        ToolSays::Failure(None)
    };
    let failure = Substitute::Answer(error_answer(error_reply(status, None), Some(says)));
    fixed(parameters, move |plan, verdict| {
        plan.substitute(verdict, failure.clone())
    })
}
