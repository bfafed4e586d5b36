//! Faults of tools: what a tool's answer can be instead of itself. [`answers`] has what several of them need.

mod answers;
mod commit_then_fail;
mod endless_progress;
mod error;
mod list_drift;
mod malicious_response;
mod schema_drift;
mod silent_noop;
mod truncated;

use std::time::Duration;

use http::StatusCode;
use serde_json::json;
use squall_documents::Fields;

use self::answers::{tool_answer, typed};
use super::delay;
use super::fixed::{answer, fixed};
use super::remedies::{
    COMMITTED, DELAY, INSTRUCTION, LIST, NOT_DONE, OTHER_RESULT, REDIRECTS, RESULT_SHAPE, SESSION,
    TIME_OUT, TOOL_ERROR,
};
use crate::changes::{McpEdit, ResultChange, Tools};
use crate::family::Family;
use crate::fault::{Fault, FaultMode};
use crate::matching::Touches;
use crate::plan::{Edit, PlannedAnswer, Substitute, ToolSays};

/// The table of modes, in the order of the reference, of help and of the schema.
pub(super) const MODES: &[FaultMode] = &[
    mode("timeout", TIME_OUT, |fields, _| delay::hold(fields)).in_model_input(),
    mode("error", TOOL_ERROR, error::read)
        .with_body()
        .in_model_input(),
    mode("malformed", RESULT_SHAPE, |_, _| malformed()).in_model_input(),
    mode("slow", DELAY, |fields, _| {
        delay::wait(fields, Duration::from_secs(5))
    })
    .delaying(),
    mode("malicious_response", INSTRUCTION, malicious_response::read).in_model_input(),
    mode("empty", RESULT_SHAPE, |_, _| empty()).in_model_input(),
    mode("truncated", RESULT_SHAPE, truncated::read).in_model_input(),
    mode("html_error", TOOL_ERROR, |_, _| html_error()).in_model_input(),
    mode("schema_drift", RESULT_SHAPE, schema_drift::read).in_model_input(),
    mode("stale", OTHER_RESULT, |_, _| {
        reused(Substitute::Stale).in_results(|_, _, _| ResultChange::Stale)
    })
    .in_model_input(),
    mode("swapped", OTHER_RESULT, |_, _| {
        reused(Substitute::Swapped)
            .in_results(|_, _, _| ResultChange::Swapped)
            .drawing(true)
    })
    .in_model_input(),
    mode("redirect_loop", REDIRECTS, |_, _| {
        answer(json!({}), PlannedAnswer::RedirectToSelf(StatusCode::FOUND))
    }),
    mode("commit_then_fail", COMMITTED, commit_then_fail::read),
    mode("silent_noop", NOT_DONE, silent_noop::read),
    mode("session_expired", SESSION, |_, _| {
        answer(json!({}), PlannedAnswer::SessionExpired)
    })
    .touching(Touches::Sessions),
    mode("wrong_id", OTHER_RESULT, |_, _| {
        fixed(json!({}), |plan, verdict| {
            plan.edit(verdict, Edit::Mcp(McpEdit::WrongId));
            Ok(())
        })
    }),
    mode("list_drift", LIST, list_drift::read).touching(Touches::Lists),
    mode("endless_progress", DELAY, endless_progress::read).delaying(),
];

const fn mode(
    name: &'static str,
    remedy: &'static str,
    read: fn(&mut Fields<'_, '_>, &Tools) -> Fault,
) -> FaultMode {
    FaultMode::new(Family::Tool, name, remedy, read)
}

/// JSON that ends inside a string.
const BROKEN_JSON: &str = "{\"status\": \"ok\", \"data\": {\"items\": [1, 2, \"three";

fn malformed() -> Fault {
    let reply = typed(StatusCode::OK, "application/json", BROKEN_JSON);
    tool_answer(json!({}), reply, ToolSays::Broken)
        .in_results(|_, _, _| ResultChange::Output(BROKEN_JSON.to_owned()))
}

fn empty() -> Fault {
    let reply = typed(StatusCode::OK, "application/json", "");
    tool_answer(json!({}), reply, ToolSays::Nothing)
        .in_results(|_, _, _| ResultChange::Output(String::new()))
}

/// The page of a reverse proxy that lost its backend.
const BAD_GATEWAY: &str = "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n\
    <center><h1>502 Bad Gateway</h1></center>\r\n<hr><center>nginx</center>\r\n</body>\r\n</html>\r\n";

fn html_error() -> Fault {
    let reply = typed(StatusCode::BAD_GATEWAY, "text/html", BAD_GATEWAY);
    answer(json!({}), PlannedAnswer::Reply(reply))
        .in_results(|_, _, _| ResultChange::Failure(BAD_GATEWAY.to_owned()))
}

/// The response to another call.
fn reused(answer: Substitute) -> Fault {
    fixed(json!({}), move |plan, by| {
        plan.substitute(by, answer.clone())
    })
}
