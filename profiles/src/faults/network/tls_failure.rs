//! `tls_failure`: the handshake fails.

use serde_json::{Map, Value, json};

use crate::dice::Dice;
use crate::fault;
use crate::faults::mode::{FaultMode, Fields, Tools};
use crate::plan::{Answer, Plan, VerdictIndex};

/// How; default a fatal alert.
#[derive(Debug, Clone, PartialEq)]
pub struct TlsFailure(fault::TlsFailure);

const KINDS: &[(&str, fault::TlsFailure)] = &[
    ("expired", fault::TlsFailure::Expired),
    ("wrong_host", fault::TlsFailure::WrongHost),
    ("untrusted", fault::TlsFailure::Untrusted),
    ("handshake", fault::TlsFailure::Handshake),
];

impl FaultMode for TlsFailure {
    const NAME: &'static str = "tls_failure";

    fn read(fields: &mut Fields<'_, '_>, _: &Tools) -> Option<Self> {
        let about = "How the handshake fails; default `handshake`.";
        let kind = fields.word("kind", about, "kind", KINDS);
        Some(Self(kind.unwrap_or(fault::TlsFailure::Handshake)))
    }

    fn apply(&self, plan: &mut Plan, verdict: VerdictIndex, _: &mut Dice) -> Result<(), String> {
        plan.answer(verdict, Answer::Tls(self.0))
    }

    fn parameters(&self, into: &mut Map<String, Value>) {
        let name = KINDS.iter().find(|(_, value)| *value == self.0);
        into.insert("kind".into(), json!(name.map(|(name, _)| name)));
    }

    fn is_of_the_connection(&self) -> bool {
        true
    }
}
