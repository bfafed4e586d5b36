//! `endless_progress`: endless progress notifications for an MCP call, without a result.

use std::time::Duration;

use serde_json::json;
use squall_documents::Fields;

use crate::amounts;
use crate::changes::Tools;
use crate::fault::Fault;
use crate::faults::delay::millis;
use crate::faults::fixed::answer;
use crate::plan::PlannedAnswer;

pub(super) fn read(fields: &mut Fields<'_, '_>, _: &Tools) -> Fault {
    let about = "Milliseconds between notifications; default 1000.";
    let apart = amounts::millis(fields, "delay_ms", about);
    let apart = apart.unwrap_or(Duration::from_secs(1));
    let apart = apart.max(Duration::from_millis(1));
    let parameters = json!({ "delay_ms": millis(apart) });
    answer(parameters, PlannedAnswer::EndlessProgress(apart))
}
