//! MCP and A2A in the proxy: the calls of a request, their synthetic responses, and the tool lists of
//! servers.

mod call;
pub(crate) mod tools;

pub(crate) use self::call::RpcCall;
