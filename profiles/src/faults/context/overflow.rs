//! `overflow`: filler.

use serde_json::json;
use squall_documents::Fields;

use crate::changes::{Padding, PaddingPlace, Tools};
use crate::fault::{COUNTED_BY, Fault};
use crate::faults::fixed::fixed;
use crate::plan::RequestEdit;

const INJECTED: &str = "Tokens of filler; default 10000.";
const POSITION: &str = "Where among the messages the filler is; default `end`.";

/// Tokens of filler when nothing else is written.
const TOKENS: u64 = 10_000;
/// Most tokens of filler: more than any model takes.
const MOST_TOKENS: u64 = 2_000_000;

pub(super) fn read(fields: &mut Fields<'_, '_>, _: &Tools) -> Fault {
    let tokens = fields.whole("inject_tokens", INJECTED, 1..=MOST_TOKENS, "");
    let position = fields.word("position", POSITION, "position", PaddingPlace::NAMES);
    let padding = Padding {
        tokens: tokens.unwrap_or(TOKENS),
        position: position.unwrap_or_default(),
    };
    let parameters = json!({
        "inject_tokens": padding.tokens,
        "counted_by": COUNTED_BY,
        "position": padding.position.as_str(),
    });
    fixed(parameters, move |plan, by| {
        plan.edit_request(by, RequestEdit::Pad(padding));
        Ok(())
    })
}
