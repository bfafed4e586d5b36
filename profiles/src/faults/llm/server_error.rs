//! `server_error`: the provider has failed.

use serde_json::{Map, Value, json};
use squall_dialects::model::ModelError;

use crate::dice::Dice;
use crate::faults::mode::{FaultMode, Fields, Tools};
use crate::plan::{Answer, Plan, VerdictIndex};
use crate::profile::amounts::status;

/// In its own words, under this status; default 500.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerError {
    status: u16,
}

impl FaultMode for ServerError {
    const NAME: &'static str = "server_error";

    fn read(fields: &mut Fields<'_, '_>, _: &Tools) -> Option<Self> {
        let status = status(fields, "Status of the error; default 500.", 500);
        let status = status.map_or(500, |status| status.as_u16());
        Some(Self { status })
    }

    fn apply(&self, plan: &mut Plan, verdict: VerdictIndex, _: &mut Dice) -> Result<(), String> {
        let status = self.status;
        plan.answer(
            verdict,
            Answer::ModelError(ModelError::ServerError { status }),
        )
    }

    fn parameters(&self, into: &mut Map<String, Value>) {
        into.insert("error_code".into(), json!(self.status));
    }
}
