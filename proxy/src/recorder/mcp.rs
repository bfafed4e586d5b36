//! What is kept of a request that may ask an MCP server, until the collector reads it.

use bytes::Bytes;
use squall_dialects::mcp::Asked;
use squall_profiles::facts::Kind;

use super::ExchangeNote;
use crate::body::buffer::Buffer;

/// The bytes of a request, read off the path.
#[derive(Debug)]
pub(crate) struct McpTraffic {
    request: Buffer,
    /// The head says that it is MCP; else the body has to.
    is_mcp: bool,
}

impl McpTraffic {
    /// Nothing kept yet, and `most` bytes at most. `is_mcp`: the head says so.
    pub(crate) fn new(is_mcp: bool, most: usize) -> Self {
        Self {
            request: Buffer::new(most),
            is_mcp,
        }
    }

    /// More of the request's body.
    pub(crate) fn request(&mut self, chunk: &Bytes) {
        self.request.push(chunk);
    }

    /// Bytes that are kept.
    pub(super) fn bytes(&self) -> usize {
        self.request.length()
    }

    /// Writes down that the exchange is MCP, if it is, and the tool that it calls.
    pub(super) fn read_into(self, note: &mut ExchangeNote) {
        let Some(asked) = Asked::read(&self.request.whole()) else {
            return;
        };
        if !self.is_mcp && !asked.is_mcp() {
            return;
        }
        note.kind = Kind::Mcp;
        let tools = asked.tools();
        if let Some(first) = tools.first() {
            note.calls(Some(first), &tools);
        }
    }
}
