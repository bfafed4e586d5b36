//! `overflow`: filler.

use serde_json::{Map, Value, json};

use super::word;
use crate::dice::Dice;
use crate::fault::{Padding, Position};
use crate::faults::mode::FaultMode;
use crate::plan::{Plan, RequestEdit, VerdictIndex};
use crate::profile::raw::RawRule;
use crate::profile::reader::Reader;

/// So much, there; default 10,000 tokens at the end.
#[derive(Debug, Clone, PartialEq)]
pub struct Overflow(Padding);

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
    const PARAMETERS: &'static [&'static str] = &["inject_tokens", "position"];

    fn read(raw: &RawRule, reader: &mut Reader) -> Option<Self> {
        Some(Self(Padding {
            tokens: read_tokens(raw, reader),
            position: reader
                .word("position", raw.position.as_ref(), &POSITIONS)
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

fn read_tokens(raw: &RawRule, reader: &mut Reader) -> u64 {
    let tokens = reader.count("inject_tokens", raw.inject_tokens.as_ref(), 1);
    if let (Some(found), Some(tokens)) = (&raw.inject_tokens, tokens)
        && tokens > MOST_TOKENS
    {
        let message = format!("`inject_tokens: {tokens}`: allowed are 1 to {MOST_TOKENS}");
        reader.error("inject_tokens", found.position, message);
    }
    tokens.unwrap_or(TOKENS)
}
