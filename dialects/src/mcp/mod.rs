//! The Model Context Protocol over HTTP: JSON-RPC messages in POST bodies, and in the answers to
//! them as JSON or as server-sent events.
//!
//! MCP is no [`Dialect`](crate::Dialect): no model is called. A request says by its head or by its
//! body that it is MCP, which tool it calls and under which id ([`Head`], [`Asked`]); an answer
//! holds one message for each id, and others beside it ([`Message`]).
//!
//! | protocol | how a request is known | where its answer comes |
//! |---|---|---|
//! | 2024-11-05, HTTP with SSE | by its body alone | out of band, on the session's event stream: the POST gets 202 |
//! | 2025-03-26 to 2025-11-25 | `Mcp-Session-Id`, `MCP-Protocol-Version`; `initialize`, and servers without sessions, by the body | in the answer: JSON, or SSE with other messages before it |
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
    Accepts, Asked, Call, Head, Id, SESSION, Sign, asks_for_events, begins_session,
    replies_out_of_band,
};
pub use structured::Output;
pub use synthetic::{
    INTERNAL_ERROR, Layout, Says, answer, error_body, event, message, progress, session_expired,
    stream_headers,
};
