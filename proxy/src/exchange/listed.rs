//! Tool lists of MCP servers, read while they pass.

use http::{Response, StatusCode};
use squall_dialects::codec::Coding;
use squall_dialects::mcp::RpcRequest;
use squall_dialects::media_type;

use super::Exchange;
use crate::body::AgentBody;
use crate::mcp::tools::{McpServer, ToolLists};

impl Exchange {
    /// The known tools of MCP servers, and the server of this exchange.
    pub(super) fn mcp_tools(&self) -> (ToolLists, McpServer) {
        let target = self.target.url.path_and_query();
        let path = target.split('?').next().unwrap_or_default();
        let server = McpServer {
            origin: self.target.origin.clone(),
            path: path.to_owned(),
            scope: self.log.chaos().scope().clone(),
        };
        let tools = &self.connection.worker.engine.mcp_tools;
        (tools.clone(), server)
    }

    /// Reads a tool list while it passes, unless it is encoded.
    pub(super) fn read_list(&self, answer: Response<AgentBody>) -> Response<AgentBody> {
        let lists = self
            .classified
            .rpc_request()
            .is_some_and(RpcRequest::lists_tools);
        let is_plain = Coding::of(answer.headers()) == Ok(None);
        if !lists || !is_plain || answer.status() != StatusCode::OK {
            return answer;
        }
        let (tools, server) = self.mcp_tools();
        let inspect = &self.connection.worker.engine.inspect;
        match media_type(answer.headers()).as_deref() {
            Some("text/event-stream") => {
                let longest = usize::try_from(inspect.limit()).unwrap_or(usize::MAX);
                answer.map(|body| tools.read_events(body, server, longest))
            }
            Some("application/json") => answer.map(|body| tools.read_json(body, server, inspect)),
            _ => answer,
        }
    }
}
