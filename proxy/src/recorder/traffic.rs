//! The bytes of an exchange, captured for the collector.

use bytes::Bytes;
use squall_dialects::Dialect;

use super::{Capture, ExchangeNote, ModelTraffic, RpcTraffic};

/// The observers that capture an exchange's bytes.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    /// Set if the journal parses it as a model call.
    pub(crate) model: Option<ModelTraffic>,
    /// Set if the journal checks it for an MCP request.
    pub(crate) mcp: Option<RpcTraffic>,
    /// Set if the exchange is recorded or its bodies are captured.
    pub(crate) capture: Option<Box<Capture>>,
}

impl Traffic {
    /// Sets the dialect found in the whole request; `None` if it is no model call. It was read for
    /// MCP too.
    pub(crate) fn turned_out(&mut self, dialect: Option<&'static dyn Dialect>) {
        self.mcp = None;
        match (dialect, &mut self.model) {
            (None, model) => *model = None,
            (Some(dialect), Some(model)) => model.speaks(dialect),
            (Some(_), None) => {}
        }
    }

    /// Adds bytes of the request's body.
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

    /// Adds bytes of the response's body; `is_read`: the model call is parsed elsewhere.
    pub(crate) fn answer(&mut self, bytes: &Bytes, is_read: bool) {
        if let Some(model) = self.model.as_mut().filter(|_| !is_read) {
            model.answer(bytes);
        }
        if let Some(capture) = &mut self.capture {
            capture.answer(bytes);
        }
    }

    /// Number of bytes that [`Self::read_into`] parses.
    pub(super) fn unread(&self) -> usize {
        self.model.as_ref().map_or(0, ModelTraffic::bytes)
            + self.mcp.as_ref().map_or(0, RpcTraffic::bytes)
    }

    /// Parses a model call or an MCP request; returns the capture.
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
