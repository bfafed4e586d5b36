//! `tls_failure`: the handshake fails.

use serde_json::json;
use squall_documents::Fields;

use crate::changes::{TlsFailure, Tools};
use crate::fault::Fault;
use crate::faults::fixed::{answer, word};
use crate::plan::PlannedAnswer;

const KINDS: [(&str, TlsFailure); 4] = [
    ("expired", TlsFailure::Expired),
    ("wrong_host", TlsFailure::WrongHost),
    ("untrusted", TlsFailure::Untrusted),
    ("handshake", TlsFailure::Handshake),
];

pub(super) fn read(fields: &mut Fields<'_, '_>, _: &Tools) -> Fault {
    let about = "How the handshake fails; default `handshake`.";
    let kind = fields.word("kind", about, "kind", &KINDS);
    let kind = kind.unwrap_or(TlsFailure::Handshake);
    answer(
        json!({ "kind": word(&KINDS, &kind) }),
        PlannedAnswer::Tls(kind),
    )
}
