//! Faults of tools, what a tool's answer can be instead of itself: a file each. What several of them
//! answer is put together in [`answers`].

mod answers;
mod commit_then_fail;
mod empty;
mod endless_progress;
mod error;
mod html_error;
mod list_drift;
mod malformed;
mod malicious_response;
mod redirect_loop;
mod schema_drift;
mod session_expired;
mod silent_noop;
mod slow;
mod stale;
mod swapped;
mod timeout;
mod truncated;
mod wrong_id;

use serde_json::{Map, Value, json};

use super::mode::family;
use crate::profile::modes::MODEL_INPUT;

family! {
    /// One way a tool's answer can go wrong.
    ToolFault of Tool:
    timeout::Timeout,
    error::Error,
    malformed::Malformed,
    slow::Slow,
    malicious_response::MaliciousResponse,
    empty::Empty,
    truncated::Truncated,
    html_error::HtmlError,
    schema_drift::SchemaDrift,
    stale::Stale,
    swapped::Swapped,
    redirect_loop::RedirectLoop,
    commit_then_fail::CommitThenFail,
    silent_noop::SilentNoop,
    session_expired::SessionExpired,
    wrong_id::WrongId,
    list_drift::ListDrift,
    endless_progress::EndlessProgress,
}

/// Parameters that only an answer on the wire has.
pub(crate) const ON_THE_WIRE: &[&str] = &[
    "response_headers",
    "retry_after",
    "jitter_ms",
    "distribution",
];

impl ToolFault {
    /// The parameters of a fault in what a model is told (`at: model_input`).
    pub(crate) fn parameters_as_told(&self, into: &mut Map<String, Value>) {
        self.parameters(into);
        for only_there in ON_THE_WIRE.iter().chain(&[answers::IN_MCP]) {
            into.remove(*only_there);
        }
        into.insert("at".into(), json!(MODEL_INPUT));
    }
}
