//! Changes or delays a model's response as it passes.
//!
//! An editor does no I/O: it takes the decoded bytes of a response and returns the steps to send to
//! the agent. It uses the neutral view of a model call and events, so it is independent
//! of providers and framing:
//!
//! ```text
//! bytes ─▶ event ─▶ Dialect::read ─▶ what changes, and where ─▶ json::Edits ─▶ Steps
//! ```
//!
//! | fault | stream | one JSON document |
//! |---|---|---|
//! | truncate | cuts the event that crosses the limit, drops what follows, edits the end | cut in place |
//! | instead | synthetic events replace the content, then the edited end | replaced in place |
//! | rewrite | holds a part's events, then spreads the new text over them | rewritten in place |
//! | cut | breaks off after the last token that still fits | breaks off inside the text, behind that token |
//! | error | an event that reports it, after the last token that still fits | – |
//! | slow | waits before events that carry tokens | one wait for all tokens |
//! | stall | one wait before the event that crosses the limit | one wait inside the text |
//! | repeat, unterminated | an event twice, the end mark never | – |
//! | whole for stream | held until it is complete, then one document | – |
//!
//! Every other byte passes unchanged, events as soon as they are complete. A JSON document is edited
//! when it is complete, because the ends of its tokens are unknown before.

mod assembling;
mod breaking;
mod budget;
mod call;
mod ending;
mod events;
mod frames;
mod numbers;
mod pacing;
mod received;
mod rewriting;
#[cfg(test)]
mod tests;
mod whole;

use std::time::Duration;

use squall_dialects::AnswerForm;
use squall_dialects::model::Reading;
use squall_dialects::stream::Framing;

pub use self::call::AnsweredCall;
use super::editing::{AnswerEditor, Step};
use crate::changes::StreamFault;
use breaking::BreakingStream;
use ending::{EarlyEnd, EndedAnswer};
use events::{EventChange, StreamEditor};
use frames::{Repeating, Unterminated};
use pacing::{Slowing, Stalling};
use rewriting::Rewriting;

/// Why a fault of streams has no effect on a whole answer.
pub(crate) const NO_STREAM: &str = "the answer is no stream";

/// Most bytes of events that are held until a part is complete.
const LONGEST_PART: usize = 8 << 20;

/// An editor that applies `fault` to a response in this form, without content coding.
pub fn editor(fault: &StreamFault, form: AnswerForm, mut call: AnsweredCall) -> AnswerEditor {
    call.counts(fault);
    let fault = fault.clone();
    match form {
        AnswerForm::Json => {
            AnswerEditor::Whole(Box::new(move |body| whole::edit(&fault, body, &mut call)))
        }
        AnswerForm::Stream(framing) => match event_change(&fault, framing) {
            Some(change) => {
                let editor = StreamEditor::new(change, framing, call);
                AnswerEditor::Events(Box::new(editor))
            }
            None => AnswerEditor::Whole(Box::new(move |body| {
                assembling::assembled(framing, body, &call)
            })),
        },
    }
}

/// The event-by-event effect of a fault; `None` if it needs the whole stream.
fn event_change(fault: &StreamFault, framing: Framing) -> Option<Box<dyn EventChange>> {
    Some(match fault {
        StreamFault::Truncate { max_tokens } => {
            Box::new(EarlyEnd::new(EndedAnswer::at_most(*max_tokens), framing))
        }
        StreamFault::Instead(instead) => {
            Box::new(EarlyEnd::new(EndedAnswer::instead_of(*instead), framing))
        }
        StreamFault::Cut { after_tokens } => {
            Box::new(BreakingStream::new(*after_tokens, None, framing))
        }
        StreamFault::Error {
            after_tokens,
            error,
        } => Box::new(BreakingStream::new(
            *after_tokens,
            Some(error.clone()),
            framing,
        )),
        StreamFault::Slow {
            time_to_first_token,
            tokens_per_second,
        } => Box::new(Slowing::new(*time_to_first_token, *tokens_per_second)),
        StreamFault::Stall { after_tokens, wait } => Box::new(Stalling::new(*after_tokens, *wait)),
        StreamFault::Repeat => Box::new(Repeating::default()),
        StreamFault::Unterminated => Box::new(Unterminated::new(framing)),
        StreamFault::Rewrite(rewrite) => Box::new(Rewriting::new(rewrite.clone())),
        StreamFault::WholeForStream => return None,
    })
}

/// Visible tokens of the model's output.
fn written(reading: &Reading<'_>) -> u64 {
    reading.deltas.iter().map(|delta| delta.tokens).sum()
}

/// The duration of `tokens` at `per_second`; zero for an invalid rate.
fn duration_at(tokens: u64, per_second: Option<f64>) -> Duration {
    #[expect(
        clippy::cast_precision_loss,
        reason = "token counts are far below 2^52"
    )]
    let seconds = per_second.map_or(0.0, |rate| tokens as f64 / rate);
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

/// Why a fault had no effect on a response of `tokens` tokens.
fn too_short(tokens: u64, wanted: u64) -> String {
    if tokens == 0 {
        "the answer holds no model output".to_owned()
    } else {
        format!("the answer ended after {tokens} of {wanted} tokens")
    }
}
