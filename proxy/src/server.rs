//! From a listening socket to exchanges: workers, connections, CONNECT and tunnels.
//!
//! ```text
//! accept ─ sniff ─┬─ HTTP/1 ── guard ── hyper h1 ──┬─ exchange
//!                 └─ HTTP/2 ─────────── hyper h2 ──┤
//!                                                  └─ CONNECT ─ 200 ─ tunnel ─ sniff ─┬─ TLS ─ as above
//!                                                                                     ├─ HTTP ─ as above
//!                                                                                     └─ anything ─ bytes
//! ```

mod connect;
mod http;
pub(crate) mod listener;
mod tunnel;
pub(crate) mod workers;
