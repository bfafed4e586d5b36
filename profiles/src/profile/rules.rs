//! The rules of a profile, by family.

use std::sync::{Arc, LazyLock};

use serde_json::{Map, Value, json};
use squall_documents::{Fields, Limited, NodeKind, Position, ValueReader, nearest, words};
use squall_journal::redact::Redactor;
use xxhash_rust::xxh3::xxh3_64;

use super::definitions::{Definitions, name_tools};
use super::modes;
use super::{conditions, triggers};
use crate::family::Family;
use crate::fault::{FaultMode, ON_THE_WIRE};
use crate::faults;
use crate::plan::Plan;
use crate::rule::{Origin, Rule};

/// Reads all families of rules of a profile. `base` is the length of the JSON pointer to it.
/// `is_whole`: it extends no other profile, so its rules can only refer to each other.
pub(super) fn read(
    fields: &mut Fields<'_, '_>,
    owner: &str,
    base: usize,
    is_whole: bool,
) -> Vec<Arc<Rule>> {
    let mut definitions = Definitions {
        owner,
        base,
        ..Definitions::default()
    };
    let mut rules = Vec::new();
    for family in Family::ALL {
        let read = fields.field(family.as_str(), family.about(), |value| match family {
            Family::Context => attacks(value, &mut definitions),
            Family::Network | Family::Tool | Family::Llm => value.list("a list", |value| {
                rule(value, family, None, &mut definitions)
            }),
        });
        rules.extend(read.unwrap_or_default());
    }
    name_tools(&mut rules, &definitions, fields);
    if is_whole {
        definitions.ids.check_references(fields.reader);
    }
    rules.into_iter().map(|(rule, _)| rule.into()).collect()
}

/// A list of attacks, each with its `type`, or a map from type to the other fields.
fn attacks(
    value: &mut ValueReader<'_, '_>,
    definitions: &mut Definitions<'_>,
) -> Option<Vec<(Box<Rule>, Position)>> {
    let what = "a list of attacks, or a map from type to parameters";
    let types: Vec<_> = faults::modes(Family::Context)
        .iter()
        .map(|mode| (mode.name, mode))
        .collect();
    value
        .either()
        .when(NodeKind::List, |value| {
            value.list(what, |value| {
                rule(value, Family::Context, None, definitions)
            })
        })
        .when(NodeKind::Map, |value| {
            value.pairs_of(what, "context attack", &types, |mode, value| {
                rule(value, Family::Context, Some(mode), definitions)
            })
        })
        .or(what)
}

/// `key` is the mode of an attack in a map.
fn rule(
    value: &mut ValueReader<'_, '_>,
    family: Family,
    key: Option<&'static FaultMode>,
    definitions: &mut Definitions<'_>,
) -> Option<(Box<Rule>, Position)> {
    if definitions.is_over_limit || value.reader.is_full() {
        return None;
    }
    if let Err(over) = value.reader.limits.take(Limited::Rules, 1) {
        definitions.is_over_limit = true;
        value.error(over.to_string());
        return None;
    }
    let position = value.position();
    let rule = value.named(family.rule(), |value| {
        value.fields("a map of fields", |fields| {
            read_rule(fields, family, key, definitions)
        })
    });
    Some((Box::new(rule?), position))
}

fn read_rule(
    fields: &mut Fields<'_, '_>,
    family: Family,
    key: Option<&'static FaultMode>,
    definitions: &mut Definitions<'_>,
) -> Option<Rule> {
    let mode = modes::read(fields, family, key);
    if family == Family::Context
        && fields.flag("enabled", "`false` switches it off.") == Some(false)
    {
        fields.leave_others();
        return None;
    }
    let id = definitions.ids.read(fields);
    let trigger = triggers::read(fields, family, definitions);
    let (matching, tools) = conditions::read(fields, family, mode, definitions);
    for mode in faults::modes(family) {
        let (word, beside) = (family.word(), modes::that_stand_beside(mode));
        fields.describe_case(word, mode.name, beside, |fields| {
            mode.read(fields, &tools);
        });
    }
    let Some(mode) = mode else {
        refuse_unknown(fields);
        return None;
    };
    let mut fault = mode.read(fields, &tools);
    let mut ignored = refuse_foreign(fields, mode);
    let idle = |field: &&str| fields.has(field) && !fault.parameters.contains_key(*field);
    ignored.extend(
        modes::of_some_forms(mode)
            .iter()
            .filter(|field| idle(field)),
    );
    ignored.extend(faults::overridden(mode, fields));
    let alone = mode.alone(&fault);
    refuse_status_too_late(fields, &alone, mode.name);
    if let Some(on) = &matching.websocket {
        refuse_outside_websocket(fields, &alone, mode.name);
        let message = on
            .message
            .map_or(json!({}), |number| json!({ "message": number }));
        fault.parameters.insert("websocket".into(), message);
    }
    let mut written = fields.to_json();
    definitions.name_urls(fields, mode);
    let id = id.unwrap_or_else(|| {
        let conditions = conditions::written(&written, &matching, mode);
        definitions
            .ids
            .derive(mode.name, &conditions, &json!(fault.parameters))
    });
    written.shift_remove("id");
    written.sort_keys();
    let (file, position) = fields.reader.source().place(fields.position);
    Some(Rule {
        id,
        profile: definitions.owner.to_owned(),
        fault_mode: mode,
        origin: Origin {
            file: file.clone(),
            position,
            pointer: definitions.pointer(fields).into(),
        },
        matching,
        trigger,
        fault,
        ignored,
        redactor: Redactor::default(),
        text: hash(family, mode, written),
    })
}

fn hash(family: Family, mode: &FaultMode, written: Map<String, Value>) -> u64 {
    let text = json!([family.as_str(), mode.name, Value::Object(written)]);
    xxh3_64(text.to_string().as_bytes())
}

/// Rejects unknown fields of a rule whose mode is not known.
fn refuse_unknown(fields: &mut Fields<'_, '_>) {
    for name in fields.others() {
        if !KNOWN.contains(&name.value.as_str()) {
            fields.error_at_name(name, unknown_field(&name.value));
        }
    }
    fields.leave_others();
}

/// Rejects fields that the mode does not use. Returns those that flakestorm accepts with its modes.
fn refuse_foreign(fields: &mut Fields<'_, '_>, mode: &FaultMode) -> Vec<&'static str> {
    let mut ignored = Vec::new();
    for name in fields.others() {
        let field = name.value.as_str();
        let Some(known) = KNOWN.iter().find(|known| **known == field) else {
            fields.error_at_name(name, unknown_field(field));
            continue;
        };
        if fields.is_null(field) {
            continue;
        }
        match modes::foreign(mode, field) {
            None => ignored.push(*known),
            Some(message) => fields.error(known, message),
        }
    }
    if mode.changes_results(fields) {
        for field in ON_THE_WIRE {
            if fields.has(field) {
                let message = format!(
                    "`{field}` belongs to answers on the wire; with `at: model_input` there is none"
                );
                fields.error(field, message);
            }
        }
    }
    fields.leave_others();
    ignored
}

/// All fields of all families and modes.
static KNOWN: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let names = Family::ALL.map(|family| {
        Fields::names_read(|fields| {
            read_rule(fields, family, None, &mut Definitions::default());
        })
    });
    let mut all = names.concat();
    all.sort_unstable();
    all.dedup();
    all
});

/// A hint with the nearest fields, or the place where all fields are listed.
fn unknown_field(found: &str) -> String {
    let near = nearest(found, KNOWN.iter().copied());
    let hint = match near.split_last() {
        None => ";".to_owned(),
        Some((last, [])) => format!(", did you mean `{last}`?"),
        Some((last, others)) => {
            let others = words(others.iter().copied());
            format!(", did you mean {others} or `{last}`?")
        }
    };
    format!("unknown field `{found}`{hint} `squall schema profile` lists the fields of a rule")
}

/// Rejects `websocket` for faults and parameters that do not act on what a WebSocket carries to the agent.
fn refuse_outside_websocket(fields: &mut Fields<'_, '_>, alone: &Plan, mode: &str) {
    let (field, message) = if alone.instead.is_some() {
        let message = format!(
            "mode `{mode}` acts before there is a WebSocket; leave `websocket` out, or use `half_open`, `limit_data` \
             or `websocket_close`"
        );
        ("websocket", message)
    } else if alone.afterwards.is_some() {
        let message = format!(
            "mode `{mode}` needs `after_bytes` with `websocket`; `0` resets before the message"
        );
        ("websocket", message)
    } else if alone.shape.slow_close.is_some() {
        let message = format!(
            "mode `{mode}` delays the end of a body; with `websocket` use `half_open` or `websocket_close`"
        );
        ("websocket", message)
    } else if fields.has("direction") {
        let message =
            "with `websocket` the rate is that of messages to the agent; leave `direction` out";
        ("direction", message.to_owned())
    } else if fields.has("at") {
        let message = "with `websocket` messages are delayed, not the upgrade; leave `at` out";
        ("at", message.to_owned())
    } else {
        return;
    };
    fields.error(field, message);
}

/// Rejects `status` for faults that act before the upstream has responded.
fn refuse_status_too_late(fields: &mut Fields<'_, '_>, alone: &Plan, mode: &str) {
    if !fields.has("status") {
        return;
    }
    let too_late = alone.instead.is_some()
        || !alone.wait_before.is_empty()
        || !alone.request_edits.is_empty()
        || alone.shape.up.is_some();
    if too_late {
        let message = format!(
            "`status` is the upstream's answer, and mode `{mode}` acts before there is one; \
             leave it out, or choose a mode that changes the answer"
        );
        fields.error("status", message);
    }
}
