//! Attacks on the model's input, one per file: instructions in tool results, false memories,
//! filler, contradictions.
//!
//! All of them change the request of a model call ([`model_input`](super::model_input)).
//! Instructions in tool responses are also injected on the wire, where there is one.

mod conflicting_context;
mod indirect_injection;
mod memory_poisoning;
mod overflow;

use serde_json::Value;
use squall_documents::{Fields, ScalarKind, Tree};

use super::remedies::{CONFLICT, INSTRUCTION, OVERFLOW};
use crate::canary::PLACEHOLDER;
use crate::changes::Tools;
use crate::dice::Dice;
use crate::family::Family;
use crate::fault::{Fault, FaultMode};
use crate::matching::Touches;
use crate::payloads::Payloads;
use crate::plan::{Plan, RequestEdit, VerdictIndex};

/// The table of attacks, in the order of reference, help and schema.
pub(super) const MODES: &[FaultMode] = &[
    mode("indirect_injection", INSTRUCTION, indirect_injection::read).touching(Touches::Either),
    mode(MEMORY_POISONING, INSTRUCTION, memory_poisoning::read),
    mode("overflow", OVERFLOW, overflow::read),
    mode("conflicting_context", CONFLICT, conflicting_context::read),
    // An instruction among the documents that come with a question.
    mode("injection_via_context", INSTRUCTION, |fields, _| {
        planted(read_payloads(fields), RequestEdit::Attach)
    }),
];

const MEMORY_POISONING: &str = "memory_poisoning";

const fn mode(
    name: &'static str,
    remedy: &'static str,
    read: fn(&mut Fields<'_, '_>, &Tools) -> Fault,
) -> FaultMode {
    FaultMode::new(Family::Context, name, remedy, read)
}

/// An attack that draws a payload and adds it by this edit.
fn planted(
    payloads: Payloads,
    write: impl Fn(String) -> RequestEdit + Send + Sync + 'static,
) -> Fault {
    let parameters = Value::Object(payloads.parameters());
    let fault = Fault::new(parameters, move |plan, by, _, dice| {
        let text = plant(&payloads, plan, by, dice);
        plan.edit_request(by, write(text));
        Ok(())
    });
    fault.drawing(true)
}

/// Draws one of these texts for this exchange, and adds its canary.
fn plant(payloads: &Payloads, plan: &mut Plan, verdict: VerdictIndex, dice: &mut Dice) -> String {
    let chosen = payloads.choose(dice.next_choice());
    plan.plant(verdict, chosen, dice)
}

/// If both `payload` and `payloads` are given: the ignored one. flakestorm accepts both for every
/// attack; `memory_poisoning` uses the first, other attacks use the second.
pub(crate) fn overridden(mode: &FaultMode, fields: &Fields<'_, '_>) -> Option<&'static str> {
    let stands_twice = fields.has("payload") && fields.has("payloads");
    if !stands_twice || !mode.parameters().contains(&"payload") {
        return None;
    }
    Some(match mode.name {
        MEMORY_POISONING => "payloads",
        _ => "payload",
    })
}

/// Reads `payloads`; a text in `payload` is a list of one.
fn read_payloads(fields: &mut Fields<'_, '_>) -> Payloads {
    let one = fields.has("payload") && !fields.has("payloads");
    read_those(fields, one)
}

/// [`read_payloads`] for modes in which `payload` overrides `payloads`.
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
