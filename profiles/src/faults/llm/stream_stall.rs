//! `stream_stall`: the response pauses, then continues.

use std::time::Duration;

use serde_json::json;
use squall_documents::Fields;

use super::after_tokens;
use crate::amounts;
use crate::changes::{StreamFault, Tools};
use crate::fault::Fault;
use crate::faults::delay::millis;
use crate::faults::fixed::change_of_answer;

pub(super) fn read(fields: &mut Fields<'_, '_>, _: &Tools) -> Fault {
    let after_tokens = after_tokens(fields);
    let about = "Milliseconds that the answer halts; default 30000.";
    let wait = amounts::millis(fields, "delay_ms", about);
    let wait = wait.unwrap_or(Duration::from_secs(30));
    let parameters = json!({ "after_tokens": after_tokens, "delay_ms": millis(wait) });
    let change = StreamFault::Stall { after_tokens, wait };
    change_of_answer(parameters, change).idle_if(wait.is_zero(), "the delay is 0 ms")
}
