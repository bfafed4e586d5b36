//! The Model Context Protocol over HTTP: JSON-RPC messages in POST bodies. The responses are JSON or server-sent
//! events.
//!
//! MCP is not a [`Dialect`](crate::Dialect), because no model is called. The head or the body of a request
//! identifies MCP, the called tool and the call's id ([`Head`], [`RpcRequest`]). A response contains one message for
//! each id, and possibly others ([`Message`]).
//!
//! | protocol | how a request is recognised | where the response is |
//! |---|---|---|
//! | 2024-11-05, HTTP with SSE | by its body alone | out of band, on the session's event stream: the POST gets 202 |
//! | 2025-03-26 to 2025-11-25 | `Mcp-Session-Id`, `MCP-Protocol-Version`; else by the body | JSON, or last on SSE |
//! | 2026-07-28 | `Mcp-Method`, `Mcp-Name`, `MCP-Protocol-Version` | in the answer, JSON or SSE |
//!
//! Source: modelcontextprotocol.io, *Base protocol: transports* of each version.

mod answer;
mod request;
mod structured;
mod synthetic;
#[cfg(test)]
mod tests;

pub use answer::{Item, Message, Text, TextPart, messages, texts};
pub use request::{
    Accepts, Call, Head, Id, RpcRequest, SESSION, Sign, asks_for_events, begins_session,
    replies_out_of_band,
};
pub use structured::Output;
pub use synthetic::{
    INTERNAL_ERROR, Layout, Says, answer, error_body, event, message, progress, session_expired,
    stream_headers,
};
