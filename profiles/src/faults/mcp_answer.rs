//! The answers of an MCP server changed as they pass.
//!
//! An [`McpEditor`] is a machine without I/O, like the one for models' answers: it is pushed the
//! decoded bytes and says what the agent gets. It changes the messages that answer the calls a rule
//! is about, wherever they stand: alone, in a list of several answers, or between other messages
//! of a stream of events. Everything else passes as it came, events as soon as they are complete; a
//! JSON document is held until it is.

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

/// Why a fault does nothing to a reply that does not come in the response to its POST.
pub const OUT_OF_BAND: &str =
    "the reply arrives on the session's event stream, where faults are not supported";

/// Why a fault does nothing to a response without the reply.
const NO_REPLY: &str =
    "the response holds no reply to the call, and faults are not supported on another stream";

/// A change to the messages that answer a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// The texts of the result are cut short; bytes count as UTF-8, apart for what models read and
    /// for what programs do.
    Truncate(Amount),
    /// One field of what the result says changes.
    Drift(SchemaDrift),
    /// An instruction is put into what the model reads of it.
    Inject(Injection),
    /// What only MCP has a place for.
    Mcp(McpEdit),
    /// Something else is said in place of the result or error.
    Instead(ToolSays),
    /// The calls were never sent on, so the server's answer holds none to them: this is said beside
    /// what it says to others.
    Beside(ToolSays),
    /// It is the answer to the call with this id, whichever it was given to; nothing but answers is
    /// kept.
    AnswerTo(Id),
    /// Answers to calls with the first of these ids are answers to those with the second.
    AnswersTo(Vec<(Id, Id)>),
}

impl Change {
    /// Whether the answer to a call of this id, whosever it was, is given to another.
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

/// How an answer is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// One document: a message, or a list of them.
    Json,
    /// Server-sent events, a message each.
    Events,
}

/// Applies one [`Change`] to the answers to some calls.
#[derive(Debug)]
pub struct McpEditor {
    change: Change,
    calls: Vec<Call>,
    /// Results say of what type they are.
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
    /// An editor for an answer without content coding, of which at most `most` bytes are held:
    /// of a document, or of one event. `calls` are those whose answers change.
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

    /// Results that are made up say of what type they are, as they do since 2026-07-28.
    #[must_use]
    pub fn typed(mut self, typed: bool) -> Self {
        self.typed = typed;
        self
    }

    /// Whether the answer is held until it is complete.
    pub fn holds_whole_body(&self) -> bool {
        matches!(self.body, McpBody::Whole { .. })
    }

    /// Takes the next bytes of the answer.
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

    /// The answer has ended cleanly.
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

    /// The upstream broke off: what was held goes to the agent as it came.
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

    /// Why nothing was changed, once the answer has ended; `None` when something was.
    pub fn untouched_because(&self) -> Option<String> {
        if self.touched {
            return None;
        }
        let why = self.why.clone();
        Some(why.unwrap_or_else(|| NO_REPLY.to_owned()))
    }

    /// What the agent gets of one frame.
    fn frame(&mut self, frame: &Frame) -> Option<Step> {
        if frame.kind() == FrameKind::Oversize && self.why.is_none() {
            self.why = Some("an event of the answer is too long to be read".to_owned());
        }
        let is_event = frame.kind() == FrameKind::Event;
        // Streams that can be resumed begin with an event that only has an id.
        let data = frame.data().filter(|data| is_event && !data.is_empty());
        let edited = data.as_ref().and_then(|data| self.edited(data));
        let bytes = match (&edited, &self.change) {
            (Some(edited), _) => frame.with(None, edited),
            // What the server said beside the earlier answer is not about this call.
            (None, Change::AnswerTo(_)) => return None,
            (None, _) => frame.bytes().clone(),
        };
        (!bytes.is_empty()).then_some(Step::Emit(bytes))
    }

    /// What is said beside the server's events, before the first of them.
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

    /// The list of a server's answers with others at its end.
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
            // Some servers answer one call of a list without a list.
            Kind::Object => format!("[{},{made}]", root.raw()),
            Kind::String | Kind::Number | Kind::True | Kind::False | Kind::Null => {
                self.why = Some("the answer is no message of JSON-RPC".to_owned());
                return None;
            }
        };
        self.touched = true;
        Some(list.into_bytes())
    }

    /// A document with the change; `None`: there is nothing to change, and why is noted.
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
            // Done with the document as a whole.
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

/// What is said to each of these calls.
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
