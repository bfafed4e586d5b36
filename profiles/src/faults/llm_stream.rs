//! A model's answer changed or paced as it passes: `truncated_response`, `stream_cut`,
//! `slow_stream`.
//!
//! A [`StreamEditor`] is a machine without I/O: it is pushed the decoded bytes of an answer and
//! says, step by step, what the agent gets and when. It is written on the neutral view of a model
//! call, so it knows no provider:
//!
//! ```text
//! bytes ─▶ event ─▶ Dialect::read_event ─▶ what changes, and where ─▶ json::Edits ─▶ Steps
//! ```
//!
//! | fault | stream | one JSON document |
//! |---|---|---|
//! | truncate | the event that crosses the limit is cut in place, then the provider's own end | cut in place once it is complete |
//! | cut | breaks off after the last token that still fits | breaks off inside the text, behind that token |
//! | slow | waits before events that carry tokens | one wait for all tokens |
//!
//! Every other byte passes as it came, events as soon as they are complete. A JSON document is held
//! until it is complete, because where its tokens end cannot be told before.

mod budget;
mod events;
#[cfg(test)]
mod tests;
mod truncation;
mod whole;

use std::time::Duration;

use bytes::Bytes;
use squall_dialects::model::ModelRequest;
use squall_dialects::{AnswerForm, Dialect};

use crate::fault::StreamFault;
use crate::plan::Ending;
use events::EventEditor;
use whole::WholeEditor;

/// Bytes of a JSON document that are held at most, unless another limit is set.
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
    form: Form,
}

#[derive(Debug)]
enum Form {
    Stream(EventEditor),
    Json(WholeEditor),
}

impl StreamEditor {
    /// An editor for an answer in `dialect` and `form`, without content coding.
    pub fn new(fault: &StreamFault, dialect: &'static dyn Dialect, form: AnswerForm) -> Self {
        let form = match form {
            AnswerForm::Stream(framing) => Form::Stream(EventEditor::new(fault, dialect, framing)),
            AnswerForm::Json => Form::Json(WholeEditor::new(fault, dialect)),
        };
        Self { form }
    }

    /// Tells what the request asked for: how many choices there will be and whether token counts
    /// end the stream. Without it, one choice is taken for granted and token counts are expected
    /// when the stream announces them.
    #[must_use]
    pub fn for_request(mut self, request: &ModelRequest) -> Self {
        if let Form::Stream(editor) = &mut self.form {
            editor.expect(request.choices, request.stream && request.usage_in_stream);
        }
        self
    }

    /// Holds at most this many bytes of a JSON document; a longer one passes untouched.
    #[must_use]
    pub fn holding_at_most(mut self, bytes: usize) -> Self {
        if let Form::Json(editor) = &mut self.form {
            editor.hold_at_most(bytes);
        }
        self
    }

    /// Whether the answer is held until it is complete.
    pub fn holds_whole_body(&self) -> bool {
        matches!(self.form, Form::Json(_))
    }

    /// Takes the next bytes of the answer. After [`Step::End`] or [`Step::Finish`] there are no
    /// further steps.
    pub fn push(&mut self, chunk: &[u8]) -> Vec<Step> {
        match &mut self.form {
            Form::Stream(editor) => editor.push(chunk),
            Form::Json(editor) => editor.push(chunk),
        }
    }

    /// The upstream's answer has ended cleanly.
    pub fn finish(&mut self) -> Vec<Step> {
        match &mut self.form {
            Form::Stream(editor) => editor.finish(),
            Form::Json(editor) => editor.finish(),
        }
    }

    /// The upstream broke off: what was held goes to the agent as it came, before the break does.
    pub fn broke_off(&mut self) -> Vec<Step> {
        match &mut self.form {
            Form::Stream(editor) => editor.broke_off(),
            Form::Json(editor) => editor.broke_off(),
        }
    }

    /// Whether the fault has changed or delayed anything so far.
    pub fn touched(&self) -> bool {
        match &self.form {
            Form::Stream(editor) => editor.touched(),
            Form::Json(editor) => editor.touched(),
        }
    }

    /// Why the fault changed nothing, once the answer has ended; `None` when it did.
    pub fn untouched_because(&self) -> Option<String> {
        match &self.form {
            Form::Stream(editor) => editor.untouched_because(),
            Form::Json(editor) => editor.untouched_because(),
        }
    }
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
