//! `limit_data`: ends the body after a number of bytes, with incomplete framing.

use serde_json::json;
use squall_documents::Fields;

use crate::amounts::count;
use crate::changes::Tools;
use crate::fault::Fault;
use crate::faults::fixed::fixed;
use crate::plan::{Cut, Ending};

pub(super) fn read(fields: &mut Fields<'_, '_>, _: &Tools) -> Fault {
    let bytes = count(fields, "bytes", "Body bytes that are kept.", 0);
    let cut = Cut {
        after_bytes: bytes.unwrap_or_default(),
        ending: Ending::Close,
    };
    fixed(json!({ "bytes": cut.after_bytes }), move |plan, verdict| {
        plan.cut(verdict, cut)
    })
}
