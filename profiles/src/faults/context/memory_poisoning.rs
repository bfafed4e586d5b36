//! `memory_poisoning`: a false fact among what the user said.

use serde_json::{Map, Value, json};

use super::{plant, read_payload, word};
use crate::dice::Dice;
use crate::fault::{Poisoning, Strategy, Turn};
use crate::faults::mode::{FaultMode, Fields, Tools};
use crate::payloads::Payloads;
use crate::plan::{Plan, RequestEdit, VerdictIndex};

/// What is said where.
#[derive(Debug, Clone, PartialEq)]
pub struct MemoryPoisoning {
    /// The facts.
    payloads: Payloads,
    /// How the fact meets what the user said; default appended.
    strategy: Strategy,
    /// Where; default the user's first message.
    at: Turn,
}

const STRATEGY: &str = "How the payload meets what is there; default `append`.";

const STRATEGIES: [(&str, Strategy); 3] = [
    ("prepend", Strategy::Prepend),
    ("append", Strategy::Append),
    ("replace", Strategy::Replace),
];

impl FaultMode for MemoryPoisoning {
    const NAME: &'static str = "memory_poisoning";

    fn read(fields: &mut Fields<'_, '_>, _: &Tools) -> Option<Self> {
        Some(Self {
            payloads: read_payload(fields),
            strategy: fields
                .word("strategy", STRATEGY, "strategy", &STRATEGIES)
                .unwrap_or_default(),
            at: read_turn(fields),
        })
    }

    fn apply(&self, plan: &mut Plan, verdict: VerdictIndex, dice: &mut Dice) -> Result<(), String> {
        let poisoning = Poisoning {
            text: plant(&self.payloads, plan, verdict, dice),
            strategy: self.strategy,
            at: self.at,
        };
        plan.edit_request(verdict, RequestEdit::Poison(poisoning));
        Ok(())
    }

    fn parameters(&self, into: &mut Map<String, Value>) {
        into.extend(self.payloads.parameters());
        into.insert("strategy".into(), word(&STRATEGIES, &self.strategy));
        let at = match self.at {
            Turn::First => json!("first"),
            Turn::Last => json!("last"),
            Turn::Number(number) => json!(number),
        };
        into.insert("inject_at".into(), at);
    }

    fn is_random(&self) -> bool {
        true
    }
}

/// `first`, `last`, or a number from 1; flakestorm's `step_2` counts from 1 as well.
fn read_turn(fields: &mut Fields<'_, '_>) -> Turn {
    let about = "Which of the user's messages is poisoned: `first` (default), `last`, or its number from 1.";
    let turn = fields.parsed("inject_at", about, |text| {
        let number = text.strip_prefix("step_").or(text.strip_prefix("turn_"));
        match (text, number.unwrap_or(text).parse()) {
            ("first" | "start", _) => Ok(Turn::First),
            ("last" | "end", _) => Ok(Turn::Last),
            (_, Ok(number @ 1..)) => Ok(Turn::Number(number)),
            _ => Err(format!(
                "found `{text}`, allowed are `first`, `last`, and the number of one of the user's messages, from 1"
            )),
        }
    });
    turn.unwrap_or_default()
}
