//! Changes or delays a model's response as it passes.
//!
//! A [`StreamEditor`] does no I/O: it takes the decoded bytes of a response and returns the steps
//! to send to the agent. It uses the neutral view of a model call and events, so it is independent
//! of providers and framing:
//!
//! ```text
//! bytes ─▶ event ─▶ Dialect::read ─▶ what changes, and where ─▶ json::Edits ─▶ Steps
//! ```
//!
//! | fault | stream | one JSON document |
//! |---|---|---|
//! | truncate | cuts the event that crosses the limit, then sends the provider's end | cut in place |
//! | instead | synthetic events replace the content, then the provider's end | replaced in place |
//! | rewrite a call | holds a part's events, then spreads the new text over them | rewritten in place |
//! | drift | holds each text until it is complete; the rest passes | rewritten in place |
//! | cut | breaks off after the last token that still fits | breaks off inside the text, behind that token |
//! | error | an event that reports it, after the last token that still fits | – |
//! | slow | waits before events that carry tokens | one wait for all tokens |
//! | stall | one wait before the event that crosses the limit | one wait inside the text |
//! | repeat, unterminated | an event twice, the end mark never | – |
//! | whole for stream | held until it is complete, then one document | – |
//!
//! Every other byte passes unchanged, events as soon as they are complete. A JSON document is held
//! until it is complete, because the ends of its tokens are unknown before.

mod assembling;
mod breaking;
mod budget;
mod call;
mod drifting;
mod ending;
mod events;
mod frames;
pub(crate) mod gaps;
mod heard;
mod numbers;
mod pacing;
mod rewriting;
mod said;
#[cfg(test)]
mod tests;
mod whole;

use std::time::Duration;

use bytes::Bytes;
use squall_dialects::model::{Delta, ModelRequest, Reading};
use squall_dialects::stream::Framing;
use squall_dialects::{AnswerForm, Dialect, ErrorContext, Tally};

use crate::changes::{Rewrite, StreamFault};
use crate::plan::Ending;
use assembling::Assembler;
use breaking::BreakingStream;
use call::Call;
use drifting::Drifts;
use ending::{EarlyEnd, EndedAnswer};
use events::{EventEditor, Job};
use frames::{Repeating, Unterminated};
use pacing::{Slowing, Stalling};
use rewriting::Rewriting;
use whole::WholeEditor;

/// Default limit of held bytes of a response.
pub const DEFAULT_HOLD: usize = 8 << 20;

/// The next step for a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Sends these bytes to the agent.
    Emit(Bytes),
    /// Sends nothing for this long.
    Wait(Duration),
    /// The connection breaks; nothing follows.
    End(Ending),
    /// Ends the response regularly; the rest of the upstream's is discarded.
    Finish,
}

/// Applies one [`StreamFault`] to one answer.
#[derive(Debug)]
pub struct StreamEditor {
    call: Call,
    form: EditorForm,
}

#[derive(Debug)]
enum EditorForm {
    Stream(EventEditor),
    Json(WholeEditor),
    Assembled(Assembler),
}

impl StreamEditor {
    /// An editor for a response in `dialect` and `form`, without content coding.
    pub fn new(fault: &StreamFault, dialect: &'static dyn Dialect, form: AnswerForm) -> Self {
        let form = match form {
            AnswerForm::Json => EditorForm::Json(WholeEditor::new(fault)),
            AnswerForm::Stream(framing) => match job(fault, framing) {
                Some(job) => EditorForm::Stream(EventEditor::new(job, framing)),
                None => EditorForm::Assembled(Assembler::new(framing)),
            },
        };
        let call = Call::new(dialect, fault.counts_tokens());
        Self { call, form }
    }

    /// Sets properties of the request: the number of choices, whether token counts end the stream,
    /// and the tools. By default it assumes one choice, and token counts if the stream announces
    /// them.
    #[must_use]
    pub fn for_request(mut self, request: &ModelRequest) -> Self {
        self.call.asked(request);
        self
    }

    /// Sets what a synthetic error may mention.
    #[must_use]
    pub fn about(mut self, context: &ErrorContext<'_>) -> Self {
        self.call.about(context);
        self
    }

    /// Holds at most this many bytes of a whole response; a longer one passes unchanged.
    #[must_use]
    pub fn holding_at_most(mut self, bytes: usize) -> Self {
        match &mut self.form {
            EditorForm::Stream(_) => {}
            EditorForm::Json(editor) => editor.hold_at_most(bytes),
            EditorForm::Assembled(editor) => editor.hold_at_most(bytes),
        }
        self
    }

    /// Whether the response is held until it is complete.
    pub fn holds_whole_body(&self) -> bool {
        match self.form {
            EditorForm::Stream(_) => false,
            EditorForm::Json(_) | EditorForm::Assembled(_) => true,
        }
    }

    /// The media type of the changed response; `None` if it does not change.
    pub fn media_type(&self) -> Option<&'static str> {
        match &self.form {
            EditorForm::Assembled(editor) if editor.touched() => Some("application/json"),
            EditorForm::Stream(_) | EditorForm::Json(_) | EditorForm::Assembled(_) => None,
        }
    }

    /// Takes the next bytes of the response. After [`Step::End`] or [`Step::Finish`] there are no
    /// further steps.
    pub fn push(&mut self, chunk: &[u8]) -> Vec<Step> {
        match &mut self.form {
            EditorForm::Stream(editor) => editor.push(chunk, &mut self.call),
            EditorForm::Json(editor) => editor.push(chunk),
            EditorForm::Assembled(editor) => editor.push(chunk),
        }
    }

    /// The upstream's response has ended regularly.
    pub fn finish(&mut self) -> Vec<Step> {
        match &mut self.form {
            EditorForm::Stream(editor) => editor.finish(&mut self.call),
            EditorForm::Json(editor) => editor.finish(&mut self.call),
            EditorForm::Assembled(editor) => editor.finish(&self.call),
        }
    }

    /// The upstream broke off: held bytes go to the agent unchanged before the abort.
    pub fn broke_off(&mut self) -> Vec<Step> {
        match &mut self.form {
            EditorForm::Stream(editor) => editor.broke_off(),
            EditorForm::Json(editor) => editor.broke_off(),
            EditorForm::Assembled(editor) => editor.broke_off(),
        }
    }

    /// The token counts of a stream that passed unchanged to its end, so that it need not be read
    /// again. `None` for every other response.
    pub fn heard(&mut self) -> Option<Box<Tally>> {
        match &mut self.form {
            EditorForm::Stream(editor) => editor.heard(),
            EditorForm::Json(_) | EditorForm::Assembled(_) => None,
        }
    }

    /// Whether the fault has changed or delayed anything so far.
    pub fn touched(&self) -> bool {
        match &self.form {
            EditorForm::Stream(editor) => editor.touched(),
            EditorForm::Json(editor) => editor.touched(),
            EditorForm::Assembled(editor) => editor.touched(),
        }
    }

    /// Whether the announced output tokens were counted here and not by the provider: the response
    /// is shortened or replaced.
    pub fn counts_anew(&self) -> bool {
        match &self.form {
            EditorForm::Stream(editor) => editor.counts_anew(),
            EditorForm::Json(editor) => editor.counts_anew(),
            EditorForm::Assembled(_) => false,
        }
    }

    /// Why the fault changed nothing, once the response has ended; `None` if it changed something.
    pub fn untouched_because(&self) -> Option<String> {
        match &self.form {
            EditorForm::Stream(editor) => editor.untouched_because(),
            EditorForm::Json(editor) => editor.untouched_because(),
            EditorForm::Assembled(editor) => editor.untouched_because(),
        }
    }
}

/// The event-by-event effect of a fault; `None` if it needs the whole stream.
fn job(fault: &StreamFault, framing: Framing) -> Option<Box<dyn Job>> {
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
        StreamFault::Repeat { choice } => Box::new(Repeating::new(*choice)),
        StreamFault::Unterminated => Box::new(Unterminated::new(framing)),
        StreamFault::Rewrite(Rewrite::Drift(drift)) => Box::new(Drifts::new(*drift, framing)),
        StreamFault::Rewrite(rewrite) => Box::new(Rewriting::new(rewrite.clone())),
        StreamFault::WholeForStream => return None,
    })
}

/// Visible tokens of the model's output.
fn written(reading: &Reading<'_>) -> u64 {
    reading.deltas.iter().map(Delta::tokens).sum()
}

/// The duration of `tokens` at `per_second`; zero for an invalid rate.
fn pace(tokens: u64, per_second: Option<f64>) -> Duration {
    #[expect(
        clippy::cast_precision_loss,
        reason = "token counts are far below 2^52"
    )]
    let seconds = per_second.map_or(0.0, |pace| tokens as f64 / pace);
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
