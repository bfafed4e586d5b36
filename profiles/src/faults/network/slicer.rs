//! `slicer`: the body arrives in small pieces.

use serde_json::{Map, Value, json};

use crate::dice::Dice;
use crate::fault::Slices;
use crate::faults::mode::{FaultMode, Fields, Tools};
use crate::plan::{Plan, VerdictIndex};
use crate::profile::amounts::{count, micros};

/// Of this size, so far apart.
#[derive(Debug, Clone, PartialEq)]
pub struct Slicer(Slices);

impl FaultMode for Slicer {
    const NAME: &'static str = "slicer";
    const NEEDS: &'static [&'static str] = &["average_size"];

    fn read(fields: &mut Fields<'_, '_>, _: &Tools) -> Option<Self> {
        let average_size = count(fields, "average_size", "Mean size of a piece in bytes.", 1);
        let about = "Greatest difference from `average_size` in bytes; default 0.";
        let size_variation = count(fields, "size_variation", about, 0);
        let delay = micros(
            fields,
            "delay_us",
            "Microseconds between pieces; default 0.",
        );
        if let (Some(size_variation), Some(average_size)) = (size_variation, average_size)
            && size_variation >= average_size
        {
            let message = format!(
                "`size_variation: {size_variation}` is not below `average_size: {average_size}`"
            );
            fields.error("size_variation", message);
        }
        Some(Self(Slices {
            average_size: average_size.unwrap_or(1),
            size_variation: size_variation.unwrap_or(0),
            delay: delay.unwrap_or_default(),
        }))
    }

    fn apply(&self, plan: &mut Plan, verdict: VerdictIndex, _: &mut Dice) -> Result<(), String> {
        plan.slice(verdict, self.0)
    }

    fn parameters(&self, into: &mut Map<String, Value>) {
        into.insert("average_size".into(), json!(self.0.average_size));
        into.insert("size_variation".into(), json!(self.0.size_variation));
        let micros = u64::try_from(self.0.delay.as_micros()).expect("at most a minute");
        into.insert("delay_us".into(), json!(micros));
    }
}
