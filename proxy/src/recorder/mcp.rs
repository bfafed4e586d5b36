//! A possible request of MCP or A2A, captured for the collector.

use bytes::Bytes;
use squall_dialects::mcp::RpcRequest;
use squall_profiles::facts::Kind;

use super::ExchangeNote;
use crate::body::buffer::Buffer;

/// The bytes of a request, parsed by the collector.
#[derive(Debug)]
pub(crate) struct RpcTraffic {
    request: Buffer,
    /// The kind by the head; unless it is `mcp` or `agent`, the body decides.
    kind: Kind,
}

impl RpcTraffic {
    /// Empty; captures at most `most` bytes. `kind`: by the head.
    pub(crate) fn new(kind: Kind, most: usize) -> Self {
        Self {
            request: Buffer::new(most),
            kind,
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

    /// Records the called tool or the agent's method in the note, if the exchange is MCP or A2A.
    pub(super) fn read_into(self, note: &mut ExchangeNote) {
        let Some(asked) = RpcRequest::read(&self.request.whole()) else {
            return;
        };
        note.kind = match self.kind {
            Kind::Mcp => Kind::Mcp,
            _ if asked.is_mcp() => Kind::Mcp,
            Kind::Agent => Kind::Agent,
            _ if asked.is_a2a() => Kind::Agent,
            Kind::Llm | Kind::Tool | Kind::Other => return,
        };
        note.calls_agent(asked.method());
        let tools = asked.tools();
        if let Some(first) = tools.first() {
            note.calls(Some(first), &tools);
        }
    }
}
