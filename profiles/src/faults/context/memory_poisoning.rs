//! `memory_poisoning`: a false fact among what the user said.

use serde_json::json;
use squall_documents::Fields;

use super::{planted, read_payload};
use crate::changes::{Poisoning, Strategy, Tools, Turn};
use crate::fault::Fault;
use crate::plan::RequestEdit;

const STRATEGY: &str = "How the payload meets what is there; default `append`.";

pub(super) fn read(fields: &mut Fields<'_, '_>, _: &Tools) -> Fault {
    let payloads = read_payload(fields);
    let strategy = fields.word("strategy", STRATEGY, "strategy", Strategy::NAMES);
    let strategy = strategy.unwrap_or_default();
    let at = read_turn(fields);
    let named = match at {
        Turn::First => json!("first"),
        Turn::Last => json!("last"),
        Turn::Number(number) => json!(number),
    };
    let mut fault = planted(payloads, move |text| {
        RequestEdit::Poison(Poisoning { text, strategy, at })
    });
    let strategy = json!(strategy.as_str());
    fault.parameters.insert("strategy".into(), strategy);
    fault.parameters.insert("inject_at".into(), named);
    fault
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
                "found `{text}`, expected `first`, `last`, and the number of one of the user's messages, from 1"
            )),
        }
    });
    turn.unwrap_or_default()
}
