//! `truncated`: shortens the body with valid framing.

use serde_json::json;
use squall_documents::Fields;

use crate::amounts::{count, share};
use crate::changes::{Amount, ResultChange, Tools};
use crate::dice::MILLION;
use crate::fault::Fault;
use crate::faults::fixed::fixed;
use crate::plan::Edit;

/// `bytes`, or `ratio` (default 0.5).
pub(super) fn read(fields: &mut Fields<'_, '_>, _: &Tools) -> Fault {
    let bytes = count(fields, "bytes", "Body bytes that are kept.", 0);
    let about = "Share of the body that is kept, 0 to 1; default 0.5.";
    let ratio = share(fields, "ratio", about);
    if fields.has("bytes") && fields.has("ratio") {
        let message = "`bytes` and `ratio` exclude each other; keep one of them";
        fields.error("ratio", message);
    }
    let (amount, parameters) = if let Some(bytes) = bytes {
        (Amount::Bytes(bytes), json!({ "bytes": bytes }))
    } else {
        let share = ratio.unwrap_or(MILLION / 2);
        let ratio = f64::from(share) / f64::from(MILLION);
        (Amount::Share(share), json!({ "ratio": ratio }))
    };
    fixed(parameters, move |plan, by| {
        plan.edit(by, Edit::Truncate(amount));
        Ok(())
    })
    .in_results(move |_, _, _| ResultChange::Truncate(amount))
}
