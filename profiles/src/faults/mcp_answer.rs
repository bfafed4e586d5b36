//! Changes responses of an MCP server as they pass.
//!
//! An [`McpEditor`] does no I/O: it takes decoded bytes and returns the steps for the agent. It
//! changes the messages that answer a rule's calls: alone, in a batch, or between other messages of
//! an event stream. Everything else passes unchanged, events as soon as they are complete. A JSON
//! document is held until it is complete.

mod changes;
mod said;

use bytes::Bytes;
use squall_dialects::json::{Document, Edits, Kind};
use squall_dialects::mcp::{self, Call, Id, Message};
use squall_dialects::stream::{Frame, FrameKind, Framing, Splitter};

use self::changes::{drift_list, drift_result, readdress, truncate};
pub use self::said::{Said, said};
use super::injection;
use super::llm_stream::Step;
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
pub enum Change {
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

impl Change {
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
pub enum Form {
    /// One document: a message, or a list of them.
    Json,
    /// Server-sent events, one message each.
    Events,
}

/// Applies one [`Change`] to the responses of some calls.
#[derive(Debug)]
pub struct McpEditor {
    change: Change,
    calls: Vec<Call>,
    /// Results have a type field.
    typed: bool,
    body: McpBody,
    touched: bool,
    why: Option<String>,
}

#[derive(Debug)]
enum McpBody {
    Whole {
        held: Vec<u8>,
        most: usize,
        over: bool,
    },
    Events(Splitter),
}

impl McpEditor {
    /// An editor for a decoded response that holds at most `most` bytes of a document or an event.
    /// `calls` are those whose responses change.
    pub fn new(change: Change, calls: Vec<Call>, form: Form, most: usize) -> Self {
        let body = match form {
            Form::Json => McpBody::Whole {
                held: Vec::new(),
                most,
                over: false,
            },
            Form::Events => McpBody::Events(Splitter::new(Framing::Sse, most)),
        };
        Self {
            change,
            calls,
            typed: false,
            body,
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

    /// Whether the response is held until it is complete.
    pub fn holds_whole_body(&self) -> bool {
        matches!(self.body, McpBody::Whole { .. })
    }

    /// Takes the next bytes of the response.
    pub fn push(&mut self, chunk: &[u8]) -> Vec<Step> {
        let mut steps = self.events_beside();
        steps.extend(self.pushed(chunk));
        steps
    }

    fn pushed(&mut self, chunk: &[u8]) -> Vec<Step> {
        match &mut self.body {
            McpBody::Whole { over: true, .. } => emit(chunk.to_vec()),
            McpBody::Whole { held, most, over } => {
                held.extend_from_slice(chunk);
                if held.len() <= *most {
                    return Vec::new();
                }
                *over = true;
                self.why = Some(format!("the answer is longer than {most} bytes"));
                emit(std::mem::take(held))
            }
            McpBody::Events(splitter) => {
                let frames = splitter.push(chunk);
                frames
                    .iter()
                    .filter_map(|frame| self.frame(frame))
                    .collect()
            }
        }
    }

    /// The response has ended regularly.
    pub fn finish(&mut self) -> Vec<Step> {
        match &mut self.body {
            McpBody::Whole { held, over, .. } => {
                let held = std::mem::take(held);
                if *over {
                    return emit(held);
                }
                match self.edited(&held) {
                    Some(edited) => emit(edited),
                    None => emit(held),
                }
            }
            McpBody::Events(splitter) => {
                let frames = splitter.finish();
                let mut steps = self.events_beside();
                steps.extend(frames.iter().filter_map(|frame| self.frame(frame)));
                steps
            }
        }
    }

    /// The upstream broke off: held bytes go to the agent unchanged.
    pub fn broke_off(&mut self) -> Vec<Step> {
        match &mut self.body {
            McpBody::Whole { held, .. } => emit(std::mem::take(held)),
            McpBody::Events(splitter) => {
                let held = splitter.finish().into_iter().map(Frame::into_bytes);
                held.map(Step::Emit).collect()
            }
        }
    }

    /// Whether something was changed so far.
    pub fn touched(&self) -> bool {
        self.touched
    }

    /// Why nothing was changed, once the response has ended; `None` if something was.
    pub fn untouched_because(&self) -> Option<String> {
        if self.touched {
            return None;
        }
        let why = self.why.clone();
        Some(why.unwrap_or_else(|| NO_REPLY.to_owned()))
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
            (None, Change::AnswerTo(_)) => return None,
            (None, _) => frame.bytes().clone(),
        };
        (!bytes.is_empty()).then_some(Step::Emit(bytes))
    }

    /// The additional responses, before the server's first event.
    fn events_beside(&mut self) -> Vec<Step> {
        let Change::Beside(says) = &self.change else {
            return Vec::new();
        };
        if self.touched || !matches!(self.body, McpBody::Events(_)) {
            return Vec::new();
        }
        self.touched = true;
        let messages = messages(says, &self.calls, self.typed);
        let events = messages.iter().map(|message| mcp::event(message));
        events.map(Step::Emit).collect()
    }

    /// The server's batch with the additional responses at its end.
    fn list_beside(&mut self, says: &ToolSays, document: &Document<'_>) -> Option<Vec<u8>> {
        let root = document.root();
        let made = messages(says, &self.calls, self.typed).join(",");
        let list = match root.kind() {
            Kind::Array => {
                let inside = root.raw().strip_prefix('[')?.strip_suffix(']')?;
                let comma = if root.items().next().is_some() {
                    ","
                } else {
                    ""
                };
                format!("[{inside}{comma}{made}]")
            }
            // Some servers answer a batch with one call without a list.
            Kind::Object => format!("[{},{made}]", root.raw()),
            Kind::String | Kind::Number | Kind::True | Kind::False | Kind::Null => {
                self.why = Some("the answer is no message of JSON-RPC".to_owned());
                return None;
            }
        };
        self.touched = true;
        Some(list.into_bytes())
    }

    /// The changed document; `None` if nothing changes, and the reason is recorded.
    fn edited(&mut self, json: &[u8]) -> Option<Vec<u8>> {
        let document = match Document::parse(json) {
            Ok(document) => document,
            Err(why) => {
                self.why = Some(format!("the answer is {why}"));
                return None;
            }
        };
        if let Change::Beside(says) = &self.change {
            let says = says.clone();
            return match self.body {
                McpBody::Whole { .. } => self.list_beside(&says, &document),
                McpBody::Events(_) => None,
            };
        }
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
            Change::Truncate(amount) => truncate(*amount, message, document, edits),
            Change::Drift(drift) => drift_result(drift, message, edits),
            Change::Inject(injection) => {
                let root = message
                    .result()
                    .or(message.error())
                    .unwrap_or(message.value());
                injection::in_texts(injection, &message.texts(), root, document, edits)
            }
            Change::Mcp(McpEdit::WrongId) => readdress(message, edits, &Id::another),
            Change::Mcp(McpEdit::List { drift, instruction }) => {
                drift_list(drift, instruction, message, edits)
            }
            Change::AnswerTo(id) => readdress(message, edits, &|_| id.clone()),
            Change::AnswersTo(ids) => readdress(message, edits, &|id| {
                let now = ids.iter().find(|(was, _)| was == id);
                now.map_or_else(|| id.clone(), |(_, now)| now.clone())
            }),
            // Applied to the whole document before.
            Change::Beside(_) => Ok(()),
            Change::Instead(says) => {
                let call = call.ok_or("the answer is to no known call")?;
                let said = mcp::message(call, said(says, call).as_says(), self.typed);
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
        .filter_map(|call| mcp::message(call, said(says, call).as_says(), typed))
        .collect()
}

fn emit(bytes: Vec<u8>) -> Vec<Step> {
    if bytes.is_empty() {
        return Vec::new();
    }
    vec![Step::Emit(Bytes::from(bytes))]
}

#[cfg(test)]
mod tests;
