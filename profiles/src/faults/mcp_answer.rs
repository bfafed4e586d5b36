//! Changes responses of an MCP server as they pass.
//!
//! An [`McpEditor`] does no I/O: it takes decoded bytes and returns the steps for the agent. It
//! changes the messages that answer a rule's calls: alone, in a batch, or between other messages of
//! an event stream. Everything else passes unchanged, events as soon as they are complete.

mod changes;

use squall_dialects::json::{Document, Edits, JsonKind};
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

/// A change to the messages that answer a call.
#[derive(Debug, Clone, PartialEq)]
pub enum McpChange {
    /// Shortens the texts of the result; bytes count as UTF-8, separately for texts and structured
    /// content.
    Truncate(Amount),
    /// Changes one field of the result's content.
    Drift(SchemaDrift),
    /// Injects an instruction into the text for the model.
    Inject(Injection),
    /// Changes what only exists in MCP.
    Mcp(McpEdit),
    /// Replaces the result or error.
    Instead(ToolSays),
    /// Adds these responses for calls that were not forwarded, next to the server's responses for
    /// others.
    Beside(ToolSays),
    /// Readdresses a response to the call with this id; other messages are dropped.
    AnswerTo(Id),
    /// Readdresses responses from the first of these ids to the second.
    AnswersTo(Vec<(Id, Id)>),
}

impl McpChange {
    /// Whether a response with this id is readdressed to another call.
    fn readdresses(&self, id: &Id) -> bool {
        match self {
            Self::AnswerTo(_) => true,
            Self::AnswersTo(ids) => ids.iter().any(|(was, _)| was == id),
            Self::Truncate(_)
            | Self::Drift(_)
            | Self::Inject(_)
            | Self::Mcp(_)
            | Self::Instead(_)
            | Self::Beside(_) => false,
        }
    }
}

/// The format of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum McpForm {
    /// One document: a message, or a list of them.
    Json,
    /// Server-sent events, one message each.
    Events,
}

/// Applies one [`McpChange`] to the responses of some calls.
#[derive(Debug)]
pub struct McpEditor {
    change: McpChange,
    calls: Vec<Call>,
    /// Results have a type field.
    typed: bool,
    touched: bool,
    why: Option<String>,
}

/// Edits the events of a response.
struct McpEvents {
    editor: McpEditor,
    splitter: Splitter,
}

impl McpEditor {
    /// An editor for responses to `calls`.
    pub fn new(change: McpChange, calls: Vec<Call>) -> Self {
        Self {
            change,
            calls,
            typed: false,
            touched: false,
            why: None,
        }
    }

    /// Adds a type field to synthetic results, as since MCP 2026-07-28.
    #[must_use]
    pub fn typed(mut self, typed: bool) -> Self {
        self.typed = typed;
        self
    }

    /// The editor for a decoded response in this form; events longer than `most` bytes pass.
    pub fn in_form(self, form: McpForm, most: usize) -> AnswerEditor {
        match form {
            McpForm::Json => AnswerEditor::Whole(Box::new(|body| self.whole(body))),
            McpForm::Events => AnswerEditor::Events(Box::new(McpEvents {
                editor: self,
                splitter: Splitter::new(Framing::Sse, most),
            })),
        }
    }

    fn whole(mut self, body: &[u8]) -> Result<EditedAnswer, String> {
        let edited = match self.change.clone() {
            McpChange::Beside(says) => self.list_beside(&says, body),
            _ => self.edited(body),
        };
        match edited {
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
            (None, McpChange::AnswerTo(_)) => return None,
            (None, _) => frame.bytes().clone(),
        };
        (!bytes.is_empty()).then_some(Step::Emit(bytes))
    }

    /// The additional responses, before the server's first event.
    fn events_beside(&mut self) -> Vec<Step> {
        let McpChange::Beside(says) = &self.change else {
            return Vec::new();
        };
        if self.touched {
            return Vec::new();
        }
        self.touched = true;
        let messages = messages(says, &self.calls, self.typed);
        let events = messages.iter().map(|message| mcp::event(message));
        events.map(Step::Emit).collect()
    }

    /// The server's batch with the additional responses at its end.
    fn list_beside(&mut self, says: &ToolSays, body: &[u8]) -> Option<Vec<u8>> {
        let document = self.parsed(body)?;
        let root = document.root();
        let made = messages(says, &self.calls, self.typed).join(",");
        let list = match root.kind() {
            JsonKind::Array => {
                let inside = root.raw().strip_prefix('[')?.strip_suffix(']')?;
                let comma = if root.items().next().is_some() {
                    ","
                } else {
                    ""
                };
                format!("[{inside}{comma}{made}]")
            }
            // Some servers answer a batch with one call without a list.
            JsonKind::Object => format!("[{},{made}]", root.raw()),
            JsonKind::String
            | JsonKind::Number
            | JsonKind::True
            | JsonKind::False
            | JsonKind::Null => {
                self.why = Some("the answer is no message of JSON-RPC".to_owned());
                return None;
            }
        };
        self.touched = true;
        Some(list.into_bytes())
    }

    /// The changed document; `None` if nothing changes, and the reason is recorded.
    fn edited(&mut self, json: &[u8]) -> Option<Vec<u8>> {
        let document = self.parsed(json)?;
        let mut edits = Edits::new(&document);
        for message in mcp::messages(&document) {
            let Some(id) = message.answers() else {
                continue;
            };
            let call = self.calls.iter().find(|call| call.id.as_ref() == Some(&id));
            if call.is_none() && !self.change.readdresses(&id) {
                continue;
            }
            match self.change_one(call, message, &document, &mut edits) {
                Ok(()) => self.touched = true,
                Err(why) => self.why = Some(why),
            }
        }
        (!edits.is_empty()).then(|| edits.apply())
    }

    fn change_one(
        &self,
        call: Option<&Call>,
        message: Message<'_>,
        document: &Document<'_>,
        edits: &mut Edits<'_>,
    ) -> Result<(), String> {
        match &self.change {
            McpChange::Truncate(amount) => truncate(*amount, message, document, edits),
            McpChange::Drift(drift) => drift_result(drift, message, edits),
            McpChange::Inject(injection) => {
                let root = message
                    .result()
                    .or(message.error())
                    .unwrap_or(message.value());
                injection::in_texts(injection, &message.texts(), root, document, edits)
            }
            McpChange::Mcp(McpEdit::WrongId) => readdress(message, edits, &Id::another),
            McpChange::Mcp(McpEdit::List { drift, instruction }) => {
                drift_list(drift, instruction, message, edits)
            }
            McpChange::AnswerTo(id) => readdress(message, edits, &|_| id.clone()),
            McpChange::AnswersTo(ids) => readdress(message, edits, &|id| {
                let now = ids.iter().find(|(was, _)| was == id);
                now.map_or_else(|| id.clone(), |(_, now)| now.clone())
            }),
            // Applied to the whole document before.
            McpChange::Beside(_) => Ok(()),
            McpChange::Instead(says) => {
                let call = call.ok_or("the answer is to no known call")?;
                let said = mcp::message(call, says_of(says), self.typed);
                edits.replace(
                    message.value().id(),
                    said.ok_or("a notification gets no answer")?,
                );
                Ok(())
            }
        }
    }
}

/// The messages for each of these calls.
fn messages(says: &ToolSays, calls: &[Call], typed: bool) -> Vec<String> {
    let calls = calls.iter();
    calls
        .filter_map(|call| mcp::message(call, says_of(says), typed))
        .collect()
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

impl EventsEditor for McpEvents {
    fn push(&mut self, chunk: &[u8]) -> Vec<Step> {
        let mut steps = self.editor.events_beside();
        let frames = self.splitter.push(chunk);
        steps.extend(frames.iter().filter_map(|frame| self.editor.frame(frame)));
        steps
    }

    fn finish(&mut self) -> Vec<Step> {
        let mut steps = self.editor.events_beside();
        let frames = self.splitter.finish();
        steps.extend(frames.iter().filter_map(|frame| self.editor.frame(frame)));
        steps
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
