//! What is known of an MCP exchange when a plan is carried out on it.

use squall_dialects::mcp::{Asked, Head};

/// What an MCP server is asked.
#[derive(Debug, Clone, Copy)]
pub struct McpCall<'a> {
    /// What the head says.
    pub head: &'a Head,
    /// What the body asks, when it was read and asks something.
    pub asked: Option<&'a Asked>,
}
