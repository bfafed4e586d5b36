//! Lists of an MCP server's tools, read as they pass.

use http::header::CONTENT_TYPE;
use http::{HeaderMap, Response, StatusCode};
use squall_dialects::codec::Coding;
use squall_dialects::mcp::Asked;

use super::Exchange;
use crate::body::{self, AgentBody};
use crate::mcp::tools::{McpServer, ToolListReader, ToolLists};

impl Exchange {
    /// What is known of MCP servers' tools, and the server that is asked.
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

    /// Reads an answer that lists tools as it passes, unless it is encoded.
    pub(super) fn read_list(&self, answer: Response<AgentBody>) -> Response<AgentBody> {
        let lists = self.classified.asked().is_some_and(Asked::lists_tools);
        let is_plain = Coding::of(answer.headers()) == Ok(None);
        if !lists || !is_plain || answer.status() != StatusCode::OK {
            return answer;
        }
        let (tools, server) = self.mcp_tools();
        let inspect = &self.connection.worker.engine.inspect;
        if is_events(answer.headers()) {
            let longest = usize::try_from(inspect.limit()).unwrap_or(usize::MAX);
            answer.map(|body| body::boxed(ToolListReader::events(body, tools, server, longest)))
        } else if is_json(answer.headers()) {
            answer.map(|body| body::boxed(ToolListReader::json(body, tools, server, inspect)))
        } else {
            answer
        }
    }
}

fn is_events(headers: &HeaderMap) -> bool {
    has_media_type(headers, "text/event-stream")
}

fn is_json(headers: &HeaderMap) -> bool {
    has_media_type(headers, "application/json")
}

fn has_media_type(headers: &HeaderMap, wanted: &str) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|it| it.to_str().ok());
    let kind = kind.and_then(|kind| kind.split(';').next());
    kind.is_some_and(|kind| kind.trim().eq_ignore_ascii_case(wanted))
}
