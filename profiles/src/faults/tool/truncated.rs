//! `truncated`: the body is cut short inside valid framing.

use serde_json::{Map, Value, json};

use crate::dice::{Dice, MILLION};
use crate::fault::ResultChange;
use crate::faults::mode::{FaultMode, Told};
use crate::plan::{Amount, Edit, Plan, VerdictIndex};
use crate::profile::raw::RawRule;
use crate::profile::reader::Reader;

/// So much is kept; default a half.
#[derive(Debug, Clone, PartialEq)]
pub struct Truncated(Amount);

impl FaultMode for Truncated {
    const NAME: &'static str = "truncated";
    const PARAMETERS: &'static [&'static str] = &["bytes", "ratio"];
    const TOLD: Option<Told<Self>> = Some(|Self(amount), _, _, _| ResultChange::Truncate(*amount));

    /// `bytes`, or `ratio` (default 0.5).
    fn read(raw: &RawRule, reader: &mut Reader) -> Option<Self> {
        if let (Some(_), Some(ratio)) = (&raw.bytes, &raw.ratio) {
            let message = "`bytes` and `ratio` exclude each other; keep one of them";
            reader.error("ratio", ratio.position, message);
        }
        let bytes = reader
            .count("bytes", raw.bytes.as_ref(), 0)
            .map(Amount::Bytes);
        let ratio = reader.share("ratio", raw.ratio.as_ref()).map(Amount::Share);
        let amount = bytes.or(ratio);
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
