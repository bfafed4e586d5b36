//! `reset_peer`: resets the connection once the upstream has responded, or after a number of body
//! bytes.

use serde_json::json;
use squall_documents::Fields;

use crate::amounts::count;
use crate::changes::Tools;
use crate::fault::Fault;
use crate::faults::fixed::fixed;
use crate::plan::{Cut, Ending, Substitute};

pub(super) fn read(fields: &mut Fields<'_, '_>, _: &Tools) -> Fault {
    let about = "Body bytes that still reach the agent.";
    let Some(after_bytes) = count(fields, "after_bytes", about, 0) else {
        return fixed(json!({}), |plan, verdict| {
            plan.substitute(verdict, Substitute::Reset)
        });
    };
    let cut = Cut {
        after_bytes,
        ending: Ending::Reset,
    };
    fixed(
        json!({ "after_bytes": after_bytes }),
        move |plan, verdict| plan.cut(verdict, cut),
    )
}
