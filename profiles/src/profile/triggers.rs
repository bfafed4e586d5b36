//! Reading when a rule fires.

use std::num::NonZeroU64;

use serde_json::{Map, Value, json};

use super::conditions;
use super::located::{At, OneOrMany};
use super::raw::{RawArmedBy, RawRamp, RawRule, RawWindow};
use super::reader::Reader;
use super::scalar::Number;
use crate::dice::MILLION;
use crate::error::Position;
use crate::trigger::{ArmedBy, Chance, Trigger, Window};

/// Reads the trigger of a rule.
pub(crate) fn read(raw: &RawRule, reader: &mut Reader) -> Trigger {
    let probability = reader.share("probability", raw.probability.as_ref());
    let of_attack = reader.share("trigger_probability", raw.trigger_probability.as_ref());
    if let (Some(_), Some(again)) = (
        raw.probability
            .as_ref()
            .map(|at| at.position)
            .or(raw.ramp.as_ref().map(|at| at.position)),
        &raw.trigger_probability,
    ) {
        let message = "`trigger_probability` is another word for `probability`, and `ramp` takes \
                       its place; keep one of them";
        reader.error("trigger_probability", again.position, message);
    }
    let ramp = raw
        .ramp
        .as_ref()
        .map(|at| reader.below("ramp", |reader| ramp(at, reader)));
    if let (Some(probability), Some(_)) = (&raw.probability, &raw.ramp) {
        let message = "`ramp` takes the place of `probability`; keep one of them";
        reader.error("probability", probability.position, message);
    }
    let fixed = Chance::Fixed(probability.or(of_attack).unwrap_or(MILLION));
    Trigger {
        chance: ramp.flatten().unwrap_or(fixed),
        after_calls: reader
            .count("after_calls", raw.after_calls.as_ref(), 0)
            .unwrap_or(0),
        every: reader
            .count("every", raw.every.as_ref(), 1)
            .and_then(NonZeroU64::new),
        limit: reader.count("limit", raw.limit.as_ref(), 0),
        calls: raw.calls.as_ref().map(|at| calls(&at.value, reader)),
        window: raw
            .window
            .as_ref()
            .map(|at| reader.below("window", |reader| window(&at.value, reader))),
        armed_by: raw
            .armed_by
            .as_ref()
            .and_then(|at| reader.below("armed_by", |reader| armed_by(at, reader)))
            .map(Box::new),
    }
}

/// The trigger as it was written, in a fixed order.
pub(crate) fn written(raw: &RawRule) -> Map<String, Value> {
    let mut map = Map::new();
    let mut put = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            map.insert(name.to_owned(), value);
        }
    };
    let number = |at: &Option<At<Number>>| at.as_ref().map(|at| Value::from(&at.value));
    let word = |at: &Option<At<String>>| at.as_ref().map_or(Value::Null, |at| json!(at.value));
    let many = |at: &Option<At<OneOrMany>>| {
        at.as_ref().map_or(Value::Null, |at| {
            at.value
                .0
                .iter()
                .map(|at| at.value.clone())
                .collect::<Vec<_>>()
                .into()
        })
    };
    let probability = raw
        .probability
        .as_ref()
        .or(raw.trigger_probability.as_ref());
    put("probability", number(&probability.cloned()));
    put("after_calls", number(&raw.after_calls));
    put("every", number(&raw.every));
    put("limit", number(&raw.limit));
    let calls = raw.calls.as_ref();
    put(
        "calls",
        calls.map(|at| at.value.iter().map(|at| Value::from(&at.value)).collect()),
    );
    let window = raw.window.as_ref().map(|at| &at.value);
    put(
        "window",
        window.map(|window| json!([word(&window.after), word(&window.open_for)])),
    );
    let ramp = raw.ramp.as_ref().map(|at| &at.value);
    put(
        "ramp",
        ramp.map(|ramp| json!([number(&ramp.from), number(&ramp.to), word(&ramp.over)])),
    );
    let armed = raw.armed_by.as_ref().map(|at| &at.value);
    put(
        "armed_by",
        armed.map(|armed| {
            json!([
                word(&armed.rule),
                word(&armed.tool),
                many(&armed.match_url),
                many(&armed.methods),
                many(&armed.status),
            ])
        }),
    );
    map
}

fn ramp(at: &At<RawRamp>, reader: &mut Reader) -> Option<Chance> {
    let raw = &at.value;
    let from = reader.share("from", raw.from.as_ref()).unwrap_or(0);
    let to = reader.share("to", raw.to.as_ref()).unwrap_or(MILLION);
    if raw.over.is_none() {
        reader.error(
            "",
            at.position,
            "`ramp` needs `over`: how long the change takes, as in 5m",
        );
    }
    let over = reader.duration("over", raw.over.as_ref())?;
    Some(Chance::Ramp { from, to, over })
}

fn window(raw: &RawWindow, reader: &mut Reader) -> Window {
    Window {
        after: reader
            .duration("after", raw.after.as_ref())
            .unwrap_or_default(),
        open_for: reader.duration("for", raw.open_for.as_ref()),
    }
}

fn calls(written: &[At<Number>], reader: &mut Reader) -> std::sync::Arc<[u64]> {
    let mut calls: Vec<_> = written
        .iter()
        .filter_map(|call| reader.count("calls", Some(call), 1))
        .collect();
    calls.sort_unstable();
    calls.dedup();
    calls.into()
}

fn armed_by(at: &At<RawArmedBy>, reader: &mut Reader) -> Option<ArmedBy> {
    let raw = &at.value;
    let of_exchange: Option<Position> = (raw.tool.as_ref().map(|at| at.position))
        .or(raw.match_url.as_ref().map(|at| at.position))
        .or(raw.methods.as_ref().map(|at| at.position))
        .or(raw.status.as_ref().map(|at| at.position));
    match (&raw.rule, of_exchange) {
        (Some(rule), None) => Some(ArmedBy::Rule {
            id: rule.value.clone(),
            position: reader.place(rule.position),
        }),
        (None, Some(_)) => Some(ArmedBy::Exchange(conditions::read_armed_by(raw, reader))),
        (Some(_), Some(position)) => {
            let message = "`armed_by` names a `rule` or describes an exchange, not both";
            reader.error("", position, message);
            None
        }
        (None, None) => {
            let message =
                "`armed_by` needs `rule`, or some of `tool`, `match_url`, `methods`, `status`";
            reader.error("", at.position, message);
            None
        }
    }
}
