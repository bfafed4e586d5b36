//! Changes responses of an MCP server or of an A2A agent as they pass.
//!
//! A [`RpcEditor`] does no I/O: it takes decoded bytes and returns the steps for the agent. It
//! changes the messages that answer a rule's calls: alone, in a batch, or between other messages of
//! an event stream. Everything else passes unchanged, events as soon as they are complete.

mod changes;

use squall_dialects::json::{Document, Edits};
use squall_dialects::mcp::{self, Call, Id, Message, Says};
use squall_dialects::stream::{Frame, FrameKind, Framing, Splitter};

use self::changes::{drift_list, drift_result, readdress, truncate};
use super::editing::{AnswerEditor, EditedAnswer, EventsEditor, Step};
use super::injection;
use crate::changes::Amount;
use crate::changes::{Injection, McpEdit, SchemaDrift};
use crate::plan::ToolSays;

/// Why a fault has no effect on an out-of-band reply.
pub const OUT_OF_BAND: &str =
    "the reply arrives on the session's event stream, where faults are not supported";

/// Why a fault has no effect on a response without the reply.
const NO_REPLY: &str =
    "the response holds no reply to the call, and faults are not supported on another stream";

/// Why nothing was injected into an agent's answer.
const NO_TEXT: &str = "the answer has no text";

/// A change to the messages that answer a call.
#[derive(Debug, Clone, PartialEq)]
pub enum RpcChange {
    /// Shortens the texts of the result; bytes count as UTF-8, separately for texts and structured
    /// content.
    Truncate(Amount),
    /// Changes one field of the result's content.
    Drift(SchemaDrift),
    /// Injects an instruction into the text for the model.
    Inject(Injection),
    /// Changes what only exists in MCP.
    Mcp(McpEdit),
    /// Readdresses a response to the call with this id; other messages are dropped.
    AnswerTo(Id),
    /// Readdresses responses from the first of these ids to the second.
    AnswersTo(Vec<(Id, Id)>),
}

impl RpcChange {
    /// Whether a response with this id is readdressed to another call.
    fn readdresses(&self, id: &Id) -> bool {
        match self {
            Self::AnswerTo(_) => true,
            Self::AnswersTo(ids) => ids.iter().any(|(was, _)| was == id),
            Self::Truncate(_) | Self::Drift(_) | Self::Inject(_) | Self::Mcp(_) => false,
        }
    }
}

/// The format of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RpcForm {
    /// One document: a message, or a list of them.
    Json,
    /// Server-sent events, one message each.
    Events,
}

/// Applies one [`RpcChange`] to the responses of some calls.
#[derive(Debug)]
pub struct RpcEditor {
    change: RpcChange,
    calls: Vec<Call>,
    touched: bool,
    why: Option<String>,
}

/// Edits the events of a response.
struct RpcEvents {
    editor: RpcEditor,
    splitter: Splitter,
}

impl RpcEditor {
    /// An editor for responses to `calls`.
    pub fn new(change: RpcChange, calls: Vec<Call>) -> Self {
        Self {
            change,
            calls,
            touched: false,
            why: None,
        }
    }

    /// The editor for a decoded response in this form; events longer than `most` bytes pass.
    pub fn in_form(self, form: RpcForm, most: usize) -> AnswerEditor {
        match form {
            RpcForm::Json => AnswerEditor::Whole(Box::new(|body| self.whole(body))),
            RpcForm::Events => AnswerEditor::Events(Box::new(RpcEvents {
                editor: self,
                splitter: Splitter::new(Framing::Sse, most),
            })),
        }
    }

    fn whole(mut self, body: &[u8]) -> Result<EditedAnswer, String> {
        match self.edited(body) {
            Some(edited) => Ok(EditedAnswer::new(edited)),
            None => Err(self.reason()),
        }
    }

    /// Why nothing was changed.
    fn reason(&self) -> String {
        self.why.clone().unwrap_or_else(|| NO_REPLY.to_owned())
    }

    fn parsed<'j>(&mut self, json: &'j [u8]) -> Option<Document<'j>> {
        let parsed = Document::parse(json);
        parsed
            .map_err(|why| self.why = Some(format!("the answer is {why}")))
            .ok()
    }

    /// The result for one frame.
    fn frame(&mut self, frame: &Frame) -> Option<Step> {
        if frame.kind() == FrameKind::Oversize && self.why.is_none() {
            self.why = Some("an event of the answer is too long to be read".to_owned());
        }
        let is_event = frame.kind() == FrameKind::Event;
        // Resumable streams start with an event that only has an id.
        let data = frame.data().filter(|data| is_event && !data.is_empty());
        let edited = data.as_ref().and_then(|data| self.edited(data));
        let bytes = match (&edited, &self.change) {
            (Some(edited), _) => frame.with(None, edited),
            // Other messages of the earlier response do not belong to this call.
            (None, RpcChange::AnswerTo(_)) => return None,
            (None, _) => frame.bytes().clone(),
        };
        (!bytes.is_empty()).then_some(Step::Emit(bytes))
    }

    /// The changed document; `None` if nothing changes, and the reason is recorded.
    fn edited(&mut self, json: &[u8]) -> Option<Vec<u8>> {
        let document = self.parsed(json)?;
        let mut edits = Edits::new(&document);
        for message in mcp::messages(&document) {
            let Some(id) = message.answers() else {
                continue;
            };
            let mut calls = self.calls.iter();
            let call = calls.find(|call| call.id.as_ref() == Some(&id));
            if call.is_none() && !self.change.readdresses(&id) {
                continue;
            }
            if call.is_some_and(|call| call.agent.is_some())
                && matches!(self.change, RpcChange::Inject(_))
                && (self.touched || message.texts().is_empty())
            {
                // An agent's stream has events without a text, and its text in several events.
                self.why = Some(NO_TEXT.to_owned());
                continue;
            }
            match self.change_one(message, &document, &mut edits) {
                Ok(()) => self.touched = true,
                Err(why) => self.why = Some(why),
            }
        }
        (!edits.is_empty()).then(|| edits.apply())
    }

    fn change_one(
        &self,
        message: Message<'_>,
        document: &Document<'_>,
        edits: &mut Edits<'_>,
    ) -> Result<(), String> {
        match &self.change {
            RpcChange::Truncate(amount) => truncate(*amount, message, document, edits),
            RpcChange::Drift(drift) => drift_result(drift, message, document, edits),
            RpcChange::Inject(injection) => {
                let root = message
                    .result()
                    .or(message.error())
                    .unwrap_or(message.value());
                injection::in_texts(injection, &message.texts(), root, document, edits)
            }
            RpcChange::Mcp(McpEdit::WrongId) => readdress(message, edits, &Id::another),
            RpcChange::Mcp(McpEdit::List { drift, instruction }) => {
                drift_list(drift, instruction, message, edits)
            }
            RpcChange::AnswerTo(id) => readdress(message, edits, &|_| id.clone()),
            RpcChange::AnswersTo(ids) => readdress(message, edits, &|id| {
                let now = ids.iter().find(|(was, _)| was == id);
                now.map_or_else(|| id.clone(), |(_, now)| now.clone())
            }),
        }
    }
}

/// The content of a tool's synthetic response in MCP.
pub fn says_of(says: &ToolSays) -> Says<'_> {
    match says {
        ToolSays::Text(text) => Says::Text(text),
        ToolSays::Failure(message) => Says::Failure(message.as_deref()),
        ToolSays::Status(message) => Says::Error {
            code: mcp::INTERNAL_ERROR,
            message,
        },
        ToolSays::ProtocolError { code, message } => Says::Error {
            code: *code,
            message,
        },
        ToolSays::Nothing => Says::Nothing,
        ToolSays::Broken => Says::Broken,
    }
}

impl EventsEditor for RpcEvents {
    fn push(&mut self, chunk: &[u8]) -> Vec<Step> {
        let frames = self.splitter.push(chunk);
        let steps = frames.iter().filter_map(|frame| self.editor.frame(frame));
        steps.collect()
    }

    fn finish(&mut self) -> Vec<Step> {
        let frames = self.splitter.finish();
        let steps = frames.iter().filter_map(|frame| self.editor.frame(frame));
        steps.collect()
    }

    fn broke_off(&mut self) -> Vec<Step> {
        let held = self.splitter.finish().into_iter().map(Frame::into_bytes);
        held.map(Step::Emit).collect()
    }

    fn touched(&self) -> bool {
        self.editor.touched
    }

    fn untouched_because(&self) -> Option<String> {
        (!self.editor.touched).then(|| self.editor.reason())
    }
}

#[cfg(test)]
mod tests;
