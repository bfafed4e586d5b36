//! Attacks on what the model reads, a file each: instructions in tools' answers, false memories,
//! filler, contradictions.
//!
//! All of them change the request of a model call ([`model_input`](super::model_input)); an
//! instruction in a tool's answer is put there on the wire too, where there is one.

mod conflicting_context;
mod indirect_injection;
mod injection_via_context;
mod memory_poisoning;
mod overflow;

use serde_json::{Value, json};

use self::memory_poisoning::MemoryPoisoning;
pub(crate) use self::overflow::COUNTED_BY;
use super::mode::family;
use crate::canary::PLACEHOLDER;
use crate::dice::Dice;
use crate::faults::mode::FaultMode;
use crate::payloads::Payloads;
use crate::plan::{Plan, VerdictIndex};
use crate::profile::located::At;
use crate::profile::modes::Mode;
use crate::profile::raw::RawRule;
use crate::profile::reader::Reader;

family! {
    /// One attack on what the model reads.
    ContextAttack of Context:
    indirect_injection::IndirectInjection,
    memory_poisoning::MemoryPoisoning,
    overflow::Overflow,
    conflicting_context::ConflictingContext,
    injection_via_context::InjectionViaContext,
}

/// One of these texts, chosen for this exchange, with its canary.
fn plant(payloads: &Payloads, plan: &mut Plan, verdict: VerdictIndex, dice: &mut Dice) -> String {
    let chosen = payloads.choose(dice.next_choice());
    plan.plant(verdict, chosen, dice)
}

fn word<T: PartialEq>(words: &[(&str, T)], value: &T) -> Value {
    let named = words.iter().find(|(_, known)| known == value);
    json!(named.map(|(word, _)| word))
}

/// Of `payload` and `payloads`, where both stand, the one that changes nothing and the one that counts. In
/// flakestorm, which takes both beside any attack, `memory_poisoning` reads the first and others the second.
pub(crate) fn eclipsed(mode: &Mode, raw: &RawRule) -> Option<(&'static str, &'static str)> {
    let stands_twice = raw.payload.is_some() && raw.payloads.is_some();
    if !stands_twice || !mode.takes("payload") {
        return None;
    }
    Some(match mode.name {
        MemoryPoisoning::NAME => ("payloads", "payload"),
        _ => ("payload", "payloads"),
    })
}

/// `payload`, a text, is a list of one.
fn read_payloads(raw: &RawRule, reader: &mut Reader) -> Payloads {
    read_those(raw, raw.payload.is_some() && raw.payloads.is_none(), reader)
}

/// The same where `payload` alone counts, if it is there.
fn read_payload(raw: &RawRule, reader: &mut Reader) -> Payloads {
    read_those(raw, raw.payload.is_some(), reader)
}

fn read_those(raw: &RawRule, one: bool, reader: &mut Reader) -> Payloads {
    let mut texts: Vec<At<String>> = Vec::new();
    if let Some(payload) = raw.payload.as_ref().filter(|_| one) {
        if let Value::String(text) = &payload.value {
            texts.push(At {
                value: text.clone(),
                position: payload.position,
            });
        } else {
            let message = format!(
                "the `payload` of an attack is a text; `{PLACEHOLDER}` in it stands for its canary"
            );
            reader.error("payload", payload.position, message);
        }
    } else if let Some(payloads) = &raw.payloads {
        texts.extend(payloads.value.iter().map(|text| At {
            value: text.value.0.clone(),
            position: text.position,
        }));
    }
    let payloads = raw.payloads.as_ref();
    let payloads = payloads.map(|list| (list.value.is_empty(), list.position));
    let categories = raw.categories.as_ref();
    let categories = categories.map(|list| (list.value.is_empty(), list.position));
    for (field, list) in [("payloads", payloads), ("categories", categories)] {
        if let Some((true, position)) = list {
            let message = format!(
                "`{field}: []` leaves no payload to choose; leave `{field}` out for the attack's own"
            );
            reader.error(field, position, message);
        }
    }
    let categories = raw.categories.as_ref().map(|at| at.value.as_slice());
    Payloads::read(Some(&texts), categories, reader)
}
