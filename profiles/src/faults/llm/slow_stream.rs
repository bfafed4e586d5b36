//! `slow_stream`: tokens arrive slowly.

use serde_json::json;
use squall_documents::Fields;

use crate::amounts::{self, positive};
use crate::changes::{StreamFault, Tools};
use crate::fault::Fault;
use crate::faults::delay::millis;
use crate::faults::fixed::change_of_answer;

/// The default rate.
const TOKENS_PER_SECOND: f64 = 5.0;

pub(super) fn read(fields: &mut Fields<'_, '_>, _: &Tools) -> Fault {
    let about = "Pace of the tokens after the first.";
    let pace = positive(fields, "tokens_per_second", about);
    let first = amounts::millis(fields, "ttft_ms", "Milliseconds before the first token.");
    let is_unset = !fields.has("ttft_ms") && !fields.has("tokens_per_second");
    let tokens_per_second = pace.or(is_unset.then_some(TOKENS_PER_SECOND));
    let time_to_first_token = first.unwrap_or_default();
    let mut parameters = json!({ "ttft_ms": millis(time_to_first_token) });
    if let Some(pace) = tokens_per_second {
        parameters["tokens_per_second"] = json!(pace);
    }
    let is_idle = time_to_first_token.is_zero() && tokens_per_second.is_none();
    let change = StreamFault::Slow {
        time_to_first_token,
        tokens_per_second,
    };
    let idle = "`ttft_ms` is 0 and no `tokens_per_second` is asked for";
    change_of_answer(parameters, change).idle_if(is_idle, idle)
}
