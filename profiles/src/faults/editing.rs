//! What machines have in common that change an answer as it passes.

use bytes::Bytes;
use squall_dialects::Tally;

use super::llm_stream::{Step, StreamEditor};
use super::mcp_answer::McpEditor;

/// A machine without I/O that is pushed the decoded bytes of an answer and says, step by step, what
/// the agent gets of it and when.
pub trait AnswerEditor {
    /// Takes the next bytes of the answer. After [`Step::End`] or [`Step::Finish`] there are no
    /// further steps.
    fn push(&mut self, chunk: Bytes) -> Vec<Step>;

    /// The answer has ended cleanly.
    fn finish(&mut self) -> Vec<Step>;

    /// The upstream broke off: what was held goes to the agent as it came, before the break does.
    fn broke_off(&mut self) -> Vec<Step>;

    /// Whether the answer is held until it is complete.
    fn holds_whole_body(&self) -> bool;

    /// The media type that the answer has afterwards; `None`: the one it came with.
    fn media_type(&self) -> Option<&'static str>;

    /// Whether anything was changed or delayed so far.
    fn touched(&self) -> bool;

    /// Why nothing was, once the answer has ended; `None` when something was.
    fn untouched_because(&self) -> Option<String>;

    /// Whether the tokens out that the answer announces were counted here, not by the provider.
    fn counts_anew(&self) -> bool {
        false
    }

    /// What the answer said, once it has passed as it came; `None` where that was not read.
    fn heard(&mut self) -> Option<Box<Tally>> {
        None
    }
}

impl AnswerEditor for StreamEditor {
    fn push(&mut self, chunk: Bytes) -> Vec<Step> {
        StreamEditor::push(self, &chunk)
    }

    fn finish(&mut self) -> Vec<Step> {
        StreamEditor::finish(self)
    }

    fn broke_off(&mut self) -> Vec<Step> {
        StreamEditor::broke_off(self)
    }

    fn holds_whole_body(&self) -> bool {
        StreamEditor::holds_whole_body(self)
    }

    fn media_type(&self) -> Option<&'static str> {
        StreamEditor::media_type(self)
    }

    fn touched(&self) -> bool {
        StreamEditor::touched(self)
    }

    fn untouched_because(&self) -> Option<String> {
        StreamEditor::untouched_because(self)
    }

    fn counts_anew(&self) -> bool {
        StreamEditor::counts_anew(self)
    }

    fn heard(&mut self) -> Option<Box<Tally>> {
        StreamEditor::heard(self)
    }
}

impl AnswerEditor for McpEditor {
    fn push(&mut self, chunk: Bytes) -> Vec<Step> {
        McpEditor::push(self, &chunk)
    }

    fn finish(&mut self) -> Vec<Step> {
        McpEditor::finish(self)
    }

    fn broke_off(&mut self) -> Vec<Step> {
        McpEditor::broke_off(self)
    }

    fn holds_whole_body(&self) -> bool {
        McpEditor::holds_whole_body(self)
    }

    fn media_type(&self) -> Option<&'static str> {
        None
    }

    fn touched(&self) -> bool {
        McpEditor::touched(self)
    }

    fn untouched_because(&self) -> Option<String> {
        McpEditor::untouched_because(self)
    }
}
