//! `memory_poisoning`: a false fact among what the user said.

use serde_json::{Map, Value, json};
use squall_documents::Fields;

use super::{plant, read_payload};
use crate::changes::{Poisoning, Strategy, Tools, Turn};
use crate::dice::Dice;
use crate::facts::Kind;
use crate::fault::Fault;
use crate::faults::fixed::word;
use crate::payloads::Payloads;
use crate::plan::{Bypass, Plan, RequestEdit, VerdictIndex};

/// What is said where.
struct MemoryPoisoning {
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

pub(super) fn read(fields: &mut Fields<'_, '_>, _: &Tools) -> Box<dyn Fault> {
    Box::new(MemoryPoisoning {
        payloads: read_payload(fields),
        strategy: fields
            .word("strategy", STRATEGY, "strategy", &STRATEGIES)
            .unwrap_or_default(),
        at: read_turn(fields),
    })
}

impl Fault for MemoryPoisoning {
    fn apply(
        &self,
        plan: &mut Plan,
        verdict: VerdictIndex,
        _: Kind,
        dice: &mut Dice,
    ) -> Result<(), Bypass> {
        let poisoning = Poisoning {
            text: plant(&self.payloads, plan, verdict, dice),
            strategy: self.strategy,
            at: self.at,
        };
        plan.edit_request(verdict, RequestEdit::Poison(poisoning));
        Ok(())
    }

    fn parameters(&self) -> Map<String, Value> {
        let mut parameters = self.payloads.parameters();
        parameters.insert("strategy".into(), json!(word(&STRATEGIES, &self.strategy)));
        let at = match self.at {
            Turn::First => json!("first"),
            Turn::Last => json!("last"),
            Turn::Number(number) => json!(number),
        };
        parameters.insert("inject_at".into(), at);
        parameters
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
