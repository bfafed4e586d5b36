//! `overflow`: filler.

use serde_json::{Map, Value, json};

use super::word;
use crate::dice::Dice;
use crate::fault::{Padding, Position};
use crate::faults::mode::{FaultMode, Fields, Tools};
use crate::plan::{Plan, RequestEdit, VerdictIndex};

/// So much, there; default 10,000 tokens at the end.
#[derive(Debug, Clone, PartialEq)]
pub struct Overflow(Padding);

const INJECTED: &str = "Tokens of filler; default 10000.";
const POSITION: &str = "Where among the messages the filler is; default `end`.";

const POSITIONS: [(&str, Position); 3] = [
    ("start", Position::Start),
    ("middle", Position::Middle),
    ("end", Position::End),
];

/// Tokens of filler when nothing else is written.
const TOKENS: u64 = 10_000;
/// Most tokens of filler: more than any model takes.
const MOST_TOKENS: u64 = 2_000_000;

/// Whose tokens they are.
pub(crate) const COUNTED_BY: &str =
    "o200k_base and cl100k_base; an estimate for other vocabularies";

impl FaultMode for Overflow {
    const NAME: &'static str = "overflow";

    fn read(fields: &mut Fields<'_, '_>, _: &Tools) -> Option<Self> {
        Some(Self(Padding {
            tokens: fields
                .whole("inject_tokens", INJECTED, 1..=MOST_TOKENS, "")
                .unwrap_or(TOKENS),
            position: fields
                .word("position", POSITION, "position", &POSITIONS)
                .unwrap_or_default(),
        }))
    }

    fn apply(&self, plan: &mut Plan, verdict: VerdictIndex, _: &mut Dice) -> Result<(), String> {
        plan.edit_request(verdict, RequestEdit::Pad(self.0));
        Ok(())
    }

    fn parameters(&self, into: &mut Map<String, Value>) {
        into.insert("inject_tokens".into(), json!(self.0.tokens));
        into.insert("counted_by".into(), json!(COUNTED_BY));
        into.insert("position".into(), word(&POSITIONS, &self.0.position));
    }
}
