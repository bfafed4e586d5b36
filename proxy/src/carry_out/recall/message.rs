//! Answers to MCP calls that came, or are given again, as a message of a session's stream.

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, StatusCode};
use squall_dialects::json::Document;
use squall_dialects::mcp::{self, Id};
use squall_dialects::stream::{self, Framing, Splitter};
use squall_profiles::faults::mcp_answer::{Change, Form, McpEditor};

use super::{Kept, Owner, Recall};
use crate::mcp_sessions::emitted;

impl Recall {
    /// Keeps `message`, the owner's answer to `call`, as JSON.
    pub(crate) fn note_message(&self, owner: &Owner, call: u64, message: Bytes) {
        let json = HeaderValue::from_static("application/json");
        let kept = Kept {
            status: StatusCode::OK,
            headers: HeaderMap::from_iter([(CONTENT_TYPE, json)]),
            body: message,
            trailers: None,
        };
        if kept.weight() <= self.copies.limit() {
            self.store().keep(owner, call, kept);
        }
    }
}

impl Kept {
    /// Whether it is a stream of events that ended before the answer came: the rest was to be
    /// fetched.
    pub(crate) fn lacks_answer(&self) -> bool {
        let is_read = !self.headers.contains_key(CONTENT_ENCODING);
        is_read && self.is_events() && self.answer_among_events().is_none()
    }

    fn is_events(&self) -> bool {
        let kind = self
            .headers
            .get(CONTENT_TYPE)
            .and_then(|it| it.to_str().ok());
        kind.is_some_and(|kind| kind.starts_with("text/event-stream"))
    }

    fn answer_among_events(&self) -> Option<Vec<u8>> {
        let mut splitter = Splitter::new(Framing::Sse, self.body.len());
        let frames = splitter.push(&self.body);
        let data = frames.iter().filter_map(stream::Frame::data);
        let mut answers = data.filter(|data| answers(data));
        Some(answers.next()?.into_owned())
    }

    /// The one message that answers a call, under another id. `None`: the answer holds none that
    /// can be read.
    pub(crate) fn into_message(self, id: &Id) -> Option<String> {
        if self.headers.contains_key(CONTENT_ENCODING) {
            return None;
        }
        let message = if self.is_events() {
            self.answer_among_events()?
        } else {
            self.body.to_vec()
        };
        let change = Change::AnswerTo(id.clone());
        let mut editor = McpEditor::new(change, Vec::new(), Form::Json, message.len());
        let mut steps = editor.push(&message);
        steps.extend(editor.finish());
        if editor.untouched_because().is_some() {
            return None;
        }
        String::from_utf8(emitted(&steps)).ok()
    }
}

/// Whether an event's data is the answer to a call.
fn answers(data: &[u8]) -> bool {
    Document::parse(data).is_ok_and(|document| {
        let messages = mcp::messages(&document);
        messages.iter().any(|message| message.answers().is_some())
    })
}
