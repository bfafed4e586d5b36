//! `truncated`: the body is cut short inside valid framing.

use serde_json::{Map, Value, json};

use crate::dice::{Dice, MILLION};
use crate::fault::ResultChange;
use crate::faults::mode::{FaultMode, Fields, Told, Tools};
use crate::plan::{Amount, Edit, Plan, VerdictIndex};
use crate::profile::amounts::{count, share};

/// So much is kept; default a half.
#[derive(Debug, Clone, PartialEq)]
pub struct Truncated(Amount);

impl FaultMode for Truncated {
    const NAME: &'static str = "truncated";
    const TOLD: Option<Told<Self>> = Some(|Self(amount), _, _, _| ResultChange::Truncate(*amount));

    /// `bytes`, or `ratio` (default 0.5).
    fn read(fields: &mut Fields<'_, '_>, _: &Tools) -> Option<Self> {
        let bytes = count(fields, "bytes", "Body bytes that are kept.", 0);
        let about = "Share of the body that is kept, 0 to 1; default 0.5.";
        let ratio = share(fields, "ratio", about);
        if fields.has("bytes") && fields.has("ratio") {
            let message = "`bytes` and `ratio` exclude each other; keep one of them";
            fields.error("ratio", message);
        }
        let amount = bytes.map(Amount::Bytes).or(ratio.map(Amount::Share));
        Some(Self(amount.unwrap_or(Amount::Share(MILLION / 2))))
    }

    fn apply(&self, plan: &mut Plan, verdict: VerdictIndex, _: &mut Dice) -> Result<(), String> {
        plan.edit(verdict, Edit::Truncate(self.0));
        Ok(())
    }

    fn parameters(&self, into: &mut Map<String, Value>) {
        match self.0 {
            Amount::Bytes(bytes) => into.insert("bytes".into(), json!(bytes)),
            Amount::Share(share) => {
                let ratio = f64::from(share) / f64::from(MILLION);
                into.insert("ratio".into(), json!(ratio))
            }
        };
    }
}
