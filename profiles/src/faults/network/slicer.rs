//! `slicer`: the body arrives in small pieces.

use std::time::Duration;

use serde_json::json;
use squall_documents::Fields;

use crate::amounts::{count, whole};
use crate::changes::{Slices, Tools};
use crate::fault::Fault;
use crate::faults::fixed::fixed;

pub(super) fn read(fields: &mut Fields<'_, '_>, _: &Tools) -> Fault {
    let average_size = count(fields, "average_size", "Mean size of a piece in bytes.", 1);
    let about = "Greatest difference from `average_size` in bytes; default 0.";
    let size_variation = count(fields, "size_variation", about, 0);
    let about = "Microseconds between pieces; default 0.";
    let delay = fields.real("delay_us", about, 0.0..=60_000_000.0, " microseconds");
    let delay = delay.map(|micros| Duration::from_micros(whole(micros)));
    if let (Some(size_variation), Some(average_size)) = (size_variation, average_size)
        && size_variation >= average_size
    {
        let message = format!(
            "`size_variation: {size_variation}` is not below `average_size: {average_size}`"
        );
        fields.error("size_variation", message);
    }
    let slices = Slices {
        average_size: average_size.unwrap_or(1),
        size_variation: size_variation.unwrap_or(0),
        delay: delay.unwrap_or_default(),
    };
    let parameters = json!({
        "average_size": slices.average_size,
        "size_variation": slices.size_variation,
        "delay_us": u64::try_from(slices.delay.as_micros()).expect("at most a minute"),
    });
    fixed(parameters, move |plan, verdict| plan.slice(verdict, slices))
}
