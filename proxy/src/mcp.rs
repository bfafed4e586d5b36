//! MCP as the proxy knows it: the calls of a request and their synthetic answers, and the tools that servers list.

mod call;
pub(crate) mod tools;

pub(crate) use self::call::McpCall;
