//! TLS on the agent's side: the interception CA, leaves for any host, and the handshake.
//!
//! ```text
//! client_hello ── what the agent asks for ──► leaf ── a config for that host ──► intercept
//!                                              ▲
//!                                   ca ── signs ┘
//! ```
//!
//! The CA and the cache of leaves are shared by all workers; a handshake belongs to one. Every
//! config names its crypto provider: nothing here depends on a process-wide default.

mod bundle;
mod ca;
mod client_hello;
mod files;
mod intercept;
mod leaf;

use std::sync::Arc;
use std::time::SystemTime;

use rustls::crypto::CryptoProvider;

pub use self::bundle::Bundle;
pub use self::ca::{CaError, CertificateAuthority};
pub use self::client_hello::{ClientHello, HelloReader};
pub(crate) use self::intercept::HandshakeError;
pub(crate) use self::intercept::{Started, accept};
pub(crate) use self::leaf::{Alpn, Flaw, LeafCache};

/// The crypto behind every TLS config of the proxy.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// The time that certificates are valid by.
#[expect(
    clippy::disallowed_methods,
    reason = "the agent judges a certificate by its wall clock, so ours has to be read"
)]
fn wall_clock() -> SystemTime {
    SystemTime::now()
}
