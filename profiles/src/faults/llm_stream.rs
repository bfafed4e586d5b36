//! A model's answer changed or paced as it passes.
//!
//! A [`StreamEditor`] is a machine without I/O: it is pushed the decoded bytes of an answer and
//! says, step by step, what the agent gets and when. It is written on the neutral view of a model
//! call, so it knows no provider, and on events, so it knows no framing:
//!
//! ```text
//! bytes ─▶ event ─▶ Dialect::read ─▶ what changes, and where ─▶ json::Edits ─▶ Steps
//! ```
//!
//! | fault | stream | one JSON document |
//! |---|---|---|
//! | truncate | the event that crosses the limit is cut in place, then the provider's own end | cut in place once it is complete |
//! | instead | made-up events in place of the first that says something, then the provider's own end | said in place once it is complete |
//! | rewrite a call | the events of a part are held, then given with the new text spread over them | rewritten in place |
//! | drift | what is settled passes, the rest is held until it is | rewritten in place |
//! | cut | breaks off after the last token that still fits | breaks off inside the text, behind that token |
//! | error | an event that reports it, after the last token that still fits | – |
//! | slow | waits before events that carry tokens | one wait for all tokens |
//! | stall | one wait before the event that crosses the limit | one wait inside the text |
//! | repeat, unterminated | an event twice, the end mark never | – |
//! | whole for stream | held until it is complete, then one document | – |
//!
//! Every other byte passes as it came, events as soon as they are complete. A JSON document is held
//! until it is complete, because where its tokens end cannot be told before.

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

/// Bytes of an answer that are held at most, unless another limit is set.
pub const DEFAULT_HOLD: usize = 8 << 20;

/// What happens next to an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// These bytes go to the agent.
    Emit(Bytes),
    /// Nothing goes on for this long.
    Wait(Duration),
    /// The connection breaks; nothing follows.
    End(Ending),
    /// The answer ends cleanly here; what the upstream still sends is not wanted.
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
    /// An editor for an answer in `dialect` and `form`, without content coding.
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

    /// Tells what the request asked for: how many choices there will be, whether token counts end
    /// the stream, which tools there are. Without it, one choice is taken for granted and token
    /// counts are expected when the stream announces them.
    #[must_use]
    pub fn for_request(mut self, request: &ModelRequest) -> Self {
        self.call.asked(request);
        self
    }

    /// Tells what a made-up error may mention.
    #[must_use]
    pub fn about(mut self, context: &ErrorContext<'_>) -> Self {
        self.call.about(context);
        self
    }

    /// Holds at most this many bytes of an answer that is held whole; a longer one passes
    /// untouched.
    #[must_use]
    pub fn holding_at_most(mut self, bytes: usize) -> Self {
        match &mut self.form {
            EditorForm::Stream(_) => {}
            EditorForm::Json(editor) => editor.hold_at_most(bytes),
            EditorForm::Assembled(editor) => editor.hold_at_most(bytes),
        }
        self
    }

    /// Whether the answer is held until it is complete.
    pub fn holds_whole_body(&self) -> bool {
        match self.form {
            EditorForm::Stream(_) => false,
            EditorForm::Json(_) | EditorForm::Assembled(_) => true,
        }
    }

    /// The media type that the answer has after the fault; `None`: the one it came with.
    pub fn media_type(&self) -> Option<&'static str> {
        match &self.form {
            EditorForm::Assembled(editor) if editor.touched() => Some("application/json"),
            EditorForm::Stream(_) | EditorForm::Json(_) | EditorForm::Assembled(_) => None,
        }
    }

    /// Takes the next bytes of the answer. After [`Step::End`] or [`Step::Finish`] there are no
    /// further steps.
    pub fn push(&mut self, chunk: &[u8]) -> Vec<Step> {
        match &mut self.form {
            EditorForm::Stream(editor) => editor.push(chunk, &mut self.call),
            EditorForm::Json(editor) => editor.push(chunk),
            EditorForm::Assembled(editor) => editor.push(chunk),
        }
    }

    /// The upstream's answer has ended cleanly.
    pub fn finish(&mut self) -> Vec<Step> {
        match &mut self.form {
            EditorForm::Stream(editor) => editor.finish(&mut self.call),
            EditorForm::Json(editor) => editor.finish(&mut self.call),
            EditorForm::Assembled(editor) => editor.finish(&self.call),
        }
    }

    /// The upstream broke off: what was held goes to the agent as it came, before the break does.
    pub fn broke_off(&mut self) -> Vec<Step> {
        match &mut self.form {
            EditorForm::Stream(editor) => editor.broke_off(),
            EditorForm::Json(editor) => editor.broke_off(),
            EditorForm::Assembled(editor) => editor.broke_off(),
        }
    }

    /// What a stream said that has passed as it came, to its end: whoever wants to know need not read
    /// it again. `None` for every other answer.
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

    /// Whether the tokens out that the answer announces were counted here, not by the provider: it
    /// ends before the model has, or says other words.
    pub fn counts_anew(&self) -> bool {
        match &self.form {
            EditorForm::Stream(editor) => editor.counts_anew(),
            EditorForm::Json(editor) => editor.counts_anew(),
            EditorForm::Assembled(_) => false,
        }
    }

    /// Why the fault changed nothing, once the answer has ended; `None` when it did.
    pub fn untouched_because(&self) -> Option<String> {
        match &self.form {
            EditorForm::Stream(editor) => editor.untouched_because(),
            EditorForm::Json(editor) => editor.untouched_because(),
            EditorForm::Assembled(editor) => editor.untouched_because(),
        }
    }
}

/// What a fault does to a stream event by event; `None`: it needs the whole of it.
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

/// Tokens that the model wrote where the agent sees them.
fn written(reading: &Reading<'_>) -> u64 {
    reading.deltas.iter().map(Delta::tokens).sum()
}

/// Time that `tokens` take at `per_second`; nothing for a pace that is none.
fn pace(tokens: u64, per_second: Option<f64>) -> Duration {
    #[expect(
        clippy::cast_precision_loss,
        reason = "token counts are far below 2^52"
    )]
    let seconds = per_second.map_or(0.0, |pace| tokens as f64 / pace);
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

/// Why a fault found nothing to do in an answer of `tokens` tokens.
fn too_short(tokens: u64, wanted: u64) -> String {
    if tokens == 0 {
        "the answer holds no model output".to_owned()
    } else {
        format!("the answer ended after {tokens} of {wanted} tokens")
    }
}
