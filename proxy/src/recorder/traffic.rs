//! What is kept of an exchange's bytes until the collector reads them.

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use squall_dialects::Dialect;

use super::{Capture, ExchangeNote, McpTraffic, ModelTraffic};

/// What reads an exchange's bytes as they pass, if anything does.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    /// It is a model call, and the journal reads it.
    pub(crate) model: Option<ModelTraffic>,
    /// An MCP server may be asked, and the journal reads what.
    pub(crate) mcp: Option<McpTraffic>,
    /// It is recorded.
    pub(crate) capture: Option<Box<Capture>>,
}

impl Traffic {
    /// The whole request says that it is a call in this dialect, or no model call; it was read for MCP too.
    pub(crate) fn turned_out(&mut self, dialect: Option<&'static dyn Dialect>) {
        self.mcp = None;
        match (dialect, &mut self.model) {
            (None, model) => *model = None,
            (Some(dialect), Some(model)) => model.speaks(dialect),
            (Some(_), None) => {}
        }
    }

    /// More of the request's body.
    pub(crate) fn request(&mut self, bytes: &Bytes) {
        if let Some(model) = &mut self.model {
            model.request(bytes);
        }
        if let Some(mcp) = &mut self.mcp {
            mcp.request(bytes);
        }
        if let Some(capture) = &mut self.capture {
            capture.request(bytes);
        }
    }

    /// The head of the answer that the agent gets.
    pub(crate) fn captured_head(&mut self, status: StatusCode, headers: &HeaderMap) {
        if let Some(capture) = &mut self.capture {
            capture.answer_head(status, headers);
        }
    }

    /// More of the answer's body; `is_read`: the model call is read elsewhere.
    pub(crate) fn answer(&mut self, bytes: &Bytes, is_read: bool) {
        if let Some(model) = self.model.as_mut().filter(|_| !is_read) {
            model.answer(bytes);
        }
        if let Some(capture) = &mut self.capture {
            capture.answer(bytes);
        }
    }

    /// The answer broke off before its end.
    pub(crate) fn broke_off(&mut self) {
        if let Some(capture) = &mut self.capture {
            capture.broke_off();
        }
    }

    /// Bytes that [`Self::read_into`] reads.
    pub(super) fn unread(&self) -> usize {
        self.model.as_ref().map_or(0, ModelTraffic::bytes)
            + self.mcp.as_ref().map_or(0, McpTraffic::bytes)
    }

    /// Reads a model call, and what an MCP server is asked; what is recorded is left.
    pub(super) fn read_into(self, note: &mut ExchangeNote) -> Option<Box<Capture>> {
        if let Some(model) = self.model {
            note.read_call(model);
        }
        if let Some(mcp) = self.mcp {
            mcp.read_into(note);
        }
        self.capture
    }
}
