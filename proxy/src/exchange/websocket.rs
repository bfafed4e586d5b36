//! Models over WebSocket: each model call is an exchange.
//!
//! OpenAI's Responses API also works over a WebSocket: a text message with the fields of `POST
//! /v1/responses` in, text messages with the `data` of its event stream out. So a message is served
//! as that POST, by the code that serves HTTP:
//!
//! ```text
//! agent ⇄ session ⇄ upstream            frames
//!           │  ▲
//! SocketCall ▼  │                        one response.create
//!   HTTP/1.1 in memory ─ Exchange ─ SocketCall::send ─▶ session
//! ```
//!
//! Realtime and Gemini Live are served in the same way; [`protocol`] has the differences.
//!
//! While no rule and no tape can apply, a [`session`] passes every byte as it came and the exchange
//! only sees a copy. Otherwise the exchange's request and response are what is sent.

mod faulted;
mod frames;
mod live;
mod negotiation;
mod on_tape;
mod protocol;
mod session;
mod state;
mod turn;

pub(super) use self::faulted::SocketFaults;
pub(super) use self::negotiation::ModelSocket;
pub(super) use self::on_tape::accept;
pub(super) use self::session::{Upgraded, serve};
