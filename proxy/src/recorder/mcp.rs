//! What is kept of a request that may ask an MCP server, until the collector reads it.

use bytes::Bytes;
use squall_dialects::mcp::Asked;
use squall_profiles::facts::Kind;

use super::ExchangeNote;
use super::model::Kept;

/// The bytes of a request as they passed: handles to them, bounded, read off the path.
#[derive(Debug, Clone)]
pub(crate) struct McpTraffic {
    request: Kept,
    /// The head says that it is MCP; else the body has to.
    is_mcp: bool,
}

impl McpTraffic {
    /// Nothing kept yet. `is_mcp`: the head says so.
    pub(crate) fn new(is_mcp: bool) -> Self {
        Self {
            request: Kept::default(),
            is_mcp,
        }
    }

    /// More of the request's body; what goes over `most` bytes in all is not kept.
    pub(crate) fn request(&mut self, chunk: &Bytes, most: usize) {
        self.request.push(chunk, most);
    }

    /// Bytes that are kept.
    pub(super) fn bytes(&self) -> usize {
        self.request.bytes()
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
