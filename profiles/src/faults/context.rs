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
use squall_documents::{Fields, ScalarKind, Tree};

use self::memory_poisoning::MemoryPoisoning;
pub(crate) use self::overflow::COUNTED_BY;
use super::mode::family;
use crate::canary::PLACEHOLDER;
use crate::dice::Dice;
use crate::faults::mode::FaultMode;
use crate::payloads::Payloads;
use crate::plan::{Plan, VerdictIndex};
use crate::profile::modes::Mode;

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
pub(crate) fn eclipsed(
    mode: &Mode,
    fields: &Fields<'_, '_>,
) -> Option<(&'static str, &'static str)> {
    let stands_twice = fields.has("payload") && fields.has("payloads");
    if !stands_twice || !mode.parameters().contains(&"payload") {
        return None;
    }
    Some(match mode.name {
        MemoryPoisoning::NAME => ("payloads", "payload"),
        _ => ("payload", "payloads"),
    })
}

/// `payload`, a text, is a list of one.
fn read_payloads(fields: &mut Fields<'_, '_>) -> Payloads {
    let one = fields.has("payload") && !fields.has("payloads");
    read_those(fields, one)
}

/// The same where `payload` alone counts, if it is there.
fn read_payload(fields: &mut Fields<'_, '_>) -> Payloads {
    let one = fields.has("payload");
    read_those(fields, one)
}

fn read_those(fields: &mut Fields<'_, '_>, one: bool) -> Payloads {
    let payload = fields.any(
        "payload",
        "The text that is put there; `{canary}` in it stands for its canary.",
    );
    let payloads = Payloads::read(fields);
    if !one {
        return payloads;
    }
    match payload.map(|node| &node.value) {
        Some(Tree::Scalar {
            text,
            kind: ScalarKind::Text,
        }) => payloads.with_literal(text),
        Some(_) => {
            let message = format!(
                "the `payload` of an attack is a text; `{PLACEHOLDER}` in it stands for its canary"
            );
            fields.error("payload", message);
            payloads
        }
        None => payloads,
    }
}
