//! `bandwidth`: limits the transfer rate.

use serde_json::json;
use squall_documents::Fields;

use crate::amounts::count;
use crate::changes::{Throttle, Tools};
use crate::fault::Fault;
use crate::faults::fixed::fixed;

/// Each direction: whether it includes the agent's side, and the upstream's side.
const DIRECTIONS: [(&str, (&str, bool, bool)); 3] = [
    ("down", ("down", true, false)),
    ("up", ("up", false, true)),
    ("both", ("both", true, true)),
];

pub(super) fn read(fields: &mut Fields<'_, '_>, _: &Tools) -> Fault {
    let about = "Kilobits per second, 1000 bits each.";
    let rate = count(fields, "rate_kbps", about, 1).unwrap_or(1);
    let about = "To the agent (default), to the upstream, or both.";
    let direction = fields.word("direction", about, "direction", &DIRECTIONS);
    let (direction, down, up) = direction.unwrap_or(DIRECTIONS[0].1);
    let throttle = Throttle {
        bytes_per_second: rate.saturating_mul(125),
    };
    let rate = throttle.bytes_per_second / 125;
    fixed(
        json!({ "rate_kbps": rate, "direction": direction }),
        move |plan, verdict| plan.throttle(verdict, throttle, down, up),
    )
}
