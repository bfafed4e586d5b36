//! The trigger of a rule: when it fires.

use std::num::NonZeroU64;

use squall_documents::{Fields, ValueReader};

use super::conditions;
use super::definitions::Definitions;
use crate::amounts::{MOST, count, duration, share};
use crate::dice::MILLION;
use crate::family::Family;
use crate::trigger::{ArmedBy, Chance, Trigger, Window};

/// Reads the trigger of a rule.
pub(super) fn read(
    fields: &mut Fields<'_, '_>,
    family: Family,
    definitions: &mut Definitions<'_>,
) -> Trigger {
    let about = "Share of the matching calls it fires on, 0 to 1; default 1.";
    let mut probability = share(fields, "probability", about);
    if family == Family::Context {
        let again = share(fields, "trigger_probability", "The same as `probability`.");
        let is_written = fields.has("probability") || fields.has("ramp");
        if is_written && fields.has("trigger_probability") {
            let message = "`trigger_probability` is another word for `probability`, and `ramp` takes \
                           its place; keep one of them";
            fields.error("trigger_probability", message);
        }
        probability = probability.or(again);
    }
    let about = "The probability changes linearly with time; instead of `probability`.";
    let ramp = fields.block("ramp", about, "a map of fields", ramp);
    if fields.has("probability") && fields.has("ramp") {
        let message = "`ramp` takes the place of `probability`; keep one of them";
        fields.error("probability", message);
    }
    let fixed = Chance::Fixed(probability.unwrap_or(MILLION));
    let about = "The first so many matching calls of the scope pass; default 0.";
    let after_calls = count(fields, "after_calls", about, 0);
    let about = "Fires on every so-many-th matching call only.";
    let every = count(fields, "every", about, 1);
    let about = "Fires only in this span of time.";
    let window = fields.block("window", about, "a map of fields", |fields| {
        let about = "When it opens, as `500ms`, `30s`, `5m` or `1h`; default: at once.";
        let after = duration(fields, "after", about);
        let open_for = duration(
            fields,
            "for",
            "How long it stays open; default: to the end.",
        );
        Some(Window {
            after: after.unwrap_or_default(),
            open_for,
        })
    });
    Trigger {
        chance: ramp.unwrap_or(fixed),
        after_calls: after_calls.unwrap_or(0),
        every: every.and_then(NonZeroU64::new),
        limit: count(fields, "limit", "Fires at most so many times.", 0),
        calls: calls(fields),
        window,
        armed_by: armed_by(fields, definitions).map(Box::new),
    }
}

fn ramp(fields: &mut Fields<'_, '_>) -> Option<Chance> {
    let from = share(fields, "from", "Probability at the activation; default 0.");
    let to = share(fields, "to", "Probability at the end; default 1.");
    let about = "How long it takes, as `500ms`, `30s`, `5m` or `1h`.";
    let over = duration(fields, "over", about);
    fields.require("over", "how long the change takes, as `over: 5m`");
    Some(Chance::Ramp {
        from: from.unwrap_or(0),
        to: to.unwrap_or(MILLION),
        over: over?,
    })
}

fn calls(fields: &mut Fields<'_, '_>) -> Option<Box<[u64]>> {
    let about = "Fires on exactly these matching calls, counted from 1.";
    let call = |value: &mut ValueReader<'_, '_>| value.whole(1..=MOST, "");
    let mut calls = fields.field("calls", about, |value| value.list("a list", call))?;
    calls.sort_unstable();
    calls.dedup();
    Some(calls.into())
}

fn armed_by(fields: &mut Fields<'_, '_>, definitions: &mut Definitions<'_>) -> Option<ArmedBy> {
    let about =
        "Fires only after this has happened in the scope: a rule fired, or an exchange took place.";
    fields.block("armed_by", about, "a map of fields", |fields| {
        let rule = fields.text("rule", "Id of the rule that must have fired.");
        let exchange = conditions::read_armed_by(fields, definitions);
        let of_exchange = ["tool", "match_url", "methods", "status"];
        let of_exchange = of_exchange.into_iter().find(|name| fields.has(name));
        match (rule, of_exchange) {
            (Some(rule), None) => {
                let pointer = format!("{}/rule", definitions.pointer(fields));
                let (_, position) = fields.reader.source().place(rule.position);
                definitions.ids.refer(&rule, pointer);
                let id = rule.value;
                Some(ArmedBy::Rule { id, position })
            }
            (None, Some(_)) => Some(ArmedBy::Exchange(exchange)),
            (Some(_), Some(field)) => {
                let message = "`armed_by` names a `rule` or describes an exchange, not both";
                fields.error(field, message);
                None
            }
            (None, None) => {
                let message =
                    "`armed_by` needs `rule`, or some of `tool`, `match_url`, `methods`, `status`";
                fields.reader.error(fields.position, message);
                None
            }
        }
    })
}
