//! Faults on a response that is one JSON document.

use bytes::Bytes;
use squall_dialects::json::Document;
use squall_dialects::model::{Reading, Usage};

use super::breaking::parted;
use super::ending::{self, EndedAnswer};
use super::{AnsweredCall, NO_STREAM, Step, duration_at, rewriting, too_short, written};
use crate::changes::StreamFault;
use crate::faults::editing::EditedAnswer;
use crate::plan::Ending;

/// The edited response, or why it stays unchanged.
pub(super) fn edit(
    fault: &StreamFault,
    body: &[u8],
    call: &mut AnsweredCall,
) -> Result<EditedAnswer, String> {
    let document = Document::parse(body).map_err(|error| format!("the answer is {error}"))?;
    let mut reading = call
        .dialect
        .read(squall_dialects::Event::unnamed(&document));
    call.count(&mut reading);
    let ended = |how: &EndedAnswer| {
        let ended = ending::whole(how, &document, &reading, call)?;
        Ok(EditedAnswer {
            counts_anew: true,
            ..EditedAnswer::new(ended)
        })
    };
    let parted = |after_tokens| {
        let parts = parted(&document, &reading, after_tokens);
        parts.ok_or_else(|| too_short(written(&reading), after_tokens))
    };
    match fault {
        StreamFault::Truncate { max_tokens } => ended(&EndedAnswer::at_most(*max_tokens)),
        StreamFault::Instead(instead) => ended(&EndedAnswer::instead_of(*instead)),
        StreamFault::Cut { after_tokens } => {
            let (sent, _) = parted(*after_tokens)?;
            let steps = vec![Step::Emit(sent), Step::End(Ending::Close)];
            Ok(EditedAnswer::in_steps(steps))
        }
        StreamFault::Slow {
            time_to_first_token,
            tokens_per_second,
        } => {
            let tokens = counted(&reading);
            let wait = *time_to_first_token + duration_at(tokens, *tokens_per_second);
            if tokens == 0 || wait.is_zero() {
                return Err(too_short(written(&reading), 0));
            }
            let all = Bytes::copy_from_slice(body);
            let steps = vec![Step::Wait(wait), Step::Emit(all)];
            Ok(EditedAnswer::in_steps(steps))
        }
        StreamFault::Stall { after_tokens, wait } => {
            let more = after_tokens.saturating_add(1);
            if written(&reading) < more {
                return Err(too_short(written(&reading), more));
            }
            let (before, after) = parted(*after_tokens)?;
            let steps = vec![Step::Emit(before), Step::Wait(*wait), Step::Emit(after)];
            Ok(EditedAnswer::in_steps(steps))
        }
        StreamFault::Rewrite(rewrite) => {
            let rewritten = rewriting::whole(rewrite, &document, &reading, call)?;
            Ok(EditedAnswer::new(rewritten))
        }
        StreamFault::Error { .. }
        | StreamFault::Repeat
        | StreamFault::Unterminated
        | StreamFault::WholeForStream => Err(NO_STREAM.to_owned()),
    }
}

/// Tokens of an answer, as the provider counts if it does.
fn counted(reading: &Reading<'_>) -> u64 {
    match reading.usage {
        Some(Usage {
            output: Some(output),
            ..
        }) if written(reading) > 0 => output,
        _ => written(reading),
    }
}
