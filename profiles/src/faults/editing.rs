//! The common interface of editors that change a response as it passes.

use bytes::Bytes;
use squall_dialects::Tally;

use super::llm_stream::{Step, StreamEditor};
use super::mcp_answer::McpEditor;

/// An editor without I/O. It takes the decoded bytes of a response and returns the steps to send to
/// the agent.
pub trait AnswerEditor {
    /// Takes the next bytes of the response. After [`Step::End`] or [`Step::Finish`] there are no
    /// further steps.
    fn push(&mut self, chunk: Bytes) -> Vec<Step>;

    /// The response has ended regularly.
    fn finish(&mut self) -> Vec<Step>;

    /// The upstream broke off: held bytes go to the agent unchanged before the abort.
    fn broke_off(&mut self) -> Vec<Step>;

    /// Whether the response is held until it is complete.
    fn holds_whole_body(&self) -> bool;

    /// The media type of the edited response; `None` if it does not change.
    fn media_type(&self) -> Option<&'static str>;

    /// Whether anything was changed or delayed so far.
    fn touched(&self) -> bool;

    /// Why nothing was changed, once the response has ended; `None` if something was.
    fn untouched_because(&self) -> Option<String>;

    /// Whether the announced output tokens were counted here and not by the provider.
    fn counts_anew(&self) -> bool {
        false
    }

    /// The token counts of a response that passed unchanged; `None` if they were not read.
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
