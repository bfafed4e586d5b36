//! A possible MCP request, captured for the collector.

use bytes::Bytes;
use squall_dialects::mcp::McpRequest;
use squall_profiles::facts::Kind;

use super::ExchangeNote;
use crate::body::buffer::Buffer;

/// The bytes of a request, parsed by the collector.
#[derive(Debug)]
pub(crate) struct McpTraffic {
    request: Buffer,
    /// Whether the head shows that it is MCP; otherwise the body decides.
    is_mcp: bool,
}

impl McpTraffic {
    /// Empty; captures at most `most` bytes. `is_mcp`: the head shows that it is MCP.
    pub(crate) fn new(is_mcp: bool, most: usize) -> Self {
        Self {
            request: Buffer::new(most),
            is_mcp,
        }
    }

    /// Adds bytes of the request's body.
    pub(crate) fn request(&mut self, chunk: &Bytes) {
        self.request.push(chunk);
    }

    /// Number of captured bytes.
    pub(super) fn bytes(&self) -> usize {
        self.request.length()
    }

    /// Records the called tool in the note, if the exchange is MCP.
    pub(super) fn read_into(self, note: &mut ExchangeNote) {
        let Some(asked) = McpRequest::read(&self.request.whole()) else {
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
