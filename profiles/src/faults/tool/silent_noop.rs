//! `silent_noop`: the upstream gets nothing, and the agent gets a response that reports success.

use http::StatusCode;
use serde_json::json;
use squall_documents::Fields;

use super::answers::{reply, text, tool_answer};
use crate::amounts::status;
use crate::changes::Tools;
use crate::fault::Fault;
use crate::plan::ToolSays;

pub(super) fn read(fields: &mut Fields<'_, '_>, _: &Tools) -> Fault {
    let status = status(fields, "Status of the response; default 200.", 200);
    let about = "What is answered: text, or any JSON value; default `{\"ok\": true}`.";
    let payload = fields.any("payload", about);
    let payload = payload.map_or_else(|| json!({ "ok": true }), |payload| payload.value.to_json());
    let reply = reply(status.unwrap_or(StatusCode::OK), &payload);
    let said = text(&reply.body);
    let parameters = json!({ "error_code": reply.status.as_u16(), "payload": said });
    // A status that is no success says that it was not done.
    let says = if reply.status.is_success() {
        ToolSays::Text(said)
    } else {
        ToolSays::Status(said)
    };
    tool_answer(parameters, reply, says)
}
