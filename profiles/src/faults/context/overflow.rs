//! `overflow`: filler.

use serde_json::{Map, Value, json};
use squall_documents::Fields;

use crate::changes::{Padding, PaddingPlace, Tools};
use crate::dice::Dice;
use crate::facts::Kind;
use crate::fault::{COUNTED_BY, Fault};
use crate::faults::fixed::word;
use crate::plan::{Bypass, Plan, RequestEdit, VerdictIndex};

/// So much, there; default 10,000 tokens at the end.
struct Overflow(Padding);

const INJECTED: &str = "Tokens of filler; default 10000.";
const POSITION: &str = "Where among the messages the filler is; default `end`.";

const POSITIONS: [(&str, PaddingPlace); 3] = [
    ("start", PaddingPlace::Start),
    ("middle", PaddingPlace::Middle),
    ("end", PaddingPlace::End),
];

/// Tokens of filler when nothing else is written.
const TOKENS: u64 = 10_000;
/// Most tokens of filler: more than any model takes.
const MOST_TOKENS: u64 = 2_000_000;

pub(super) fn read(fields: &mut Fields<'_, '_>, _: &Tools) -> Box<dyn Fault> {
    Box::new(Overflow(Padding {
        tokens: fields
            .whole("inject_tokens", INJECTED, 1..=MOST_TOKENS, "")
            .unwrap_or(TOKENS),
        position: fields
            .word("position", POSITION, "position", &POSITIONS)
            .unwrap_or_default(),
    }))
}

impl Fault for Overflow {
    fn apply(
        &self,
        plan: &mut Plan,
        verdict: VerdictIndex,
        _: Kind,
        _: &mut Dice,
    ) -> Result<(), Bypass> {
        plan.edit_request(verdict, RequestEdit::Pad(self.0));
        Ok(())
    }

    fn parameters(&self) -> Map<String, Value> {
        let mut parameters = Map::new();
        parameters.insert("inject_tokens".into(), json!(self.0.tokens));
        parameters.insert("counted_by".into(), json!(COUNTED_BY));
        parameters.insert("position".into(), json!(word(&POSITIONS, &self.0.position)));
        parameters
    }
}
