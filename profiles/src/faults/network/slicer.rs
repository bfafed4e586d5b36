//! `slicer`: the body arrives in small pieces.

use serde_json::{Map, Value, json};

use crate::dice::Dice;
use crate::fault::Slices;
use crate::faults::mode::FaultMode;
use crate::plan::{Plan, VerdictIndex};
use crate::profile::raw::RawRule;
use crate::profile::reader::Reader;

/// Of this size, so far apart.
#[derive(Debug, Clone, PartialEq)]
pub struct Slicer(Slices);

impl FaultMode for Slicer {
    const NAME: &'static str = "slicer";
    const PARAMETERS: &'static [&'static str] = &["average_size", "size_variation", "delay_us"];
    const NEEDS: &'static [&'static str] = &["average_size"];

    fn read(raw: &RawRule, reader: &mut Reader) -> Option<Self> {
        let average_size = reader.count("average_size", raw.average_size.as_ref(), 1);
        let variation = raw.size_variation.as_ref();
        let size_variation = reader.count("size_variation", variation, 0).unwrap_or(0);
        let delay = reader.micros("delay_us", raw.delay_us.as_ref());
        if let (Some(at), Some(average_size)) = (variation, average_size)
            && size_variation >= average_size
        {
            let message = format!(
                "`size_variation: {size_variation}` is not below `average_size: {average_size}`"
            );
            reader.error("size_variation", at.position, message);
        }
        Some(Self(Slices {
            average_size: average_size.unwrap_or(1),
            size_variation,
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
