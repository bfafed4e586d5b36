//! `tls_failure`: the handshake fails.

use serde_json::json;
use squall_documents::Fields;

use crate::changes::{TlsFailure, Tools};
use crate::fault::Fault;
use crate::faults::fixed::answer;
use crate::plan::PlannedAnswer;

pub(super) fn read(fields: &mut Fields<'_, '_>, _: &Tools) -> Fault {
    let about = "How the handshake fails; default `handshake`.";
    let kind = fields.word("kind", about, "kind", TlsFailure::NAMES);
    let kind = kind.unwrap_or(TlsFailure::Handshake);
    answer(json!({ "kind": kind.as_str() }), PlannedAnswer::Tls(kind))
}
