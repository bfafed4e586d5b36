//! TLS on the agent's side: the interception CA, leaves for any host, and the handshake.
//!
//! ```text
//! client_hello ── what the agent asks for ──► leaf ── a config for that host ──► intercept
//!                                              ▲
//!                                   ca ── signs ┘
//! ```
//!
//! All workers share the CA and the leaf cache; a handshake belongs to one worker. Every config
//! sets its crypto provider, so nothing depends on a process-wide default.

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
pub use self::ca::{CaError, CertificateAuthority, Validity};
pub use self::client_hello::{ClientHello, HelloReader};
pub(crate) use self::intercept::HandshakeError;
pub(crate) use self::intercept::{PendingHandshake, accept};
pub(crate) use self::leaf::{Flaw, LeafCache};

/// An HTTP version, as negotiated by ALPN.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Alpn {
    /// HTTP/1.1, or no protocol was negotiated.
    Http1,
    /// HTTP/2.
    H2,
}

impl Alpn {
    /// The ALPN protocols up to this version; HTTP/1.1 is always included.
    pub(crate) fn and_older(self) -> Vec<Vec<u8>> {
        let (http1, h2) = (b"http/1.1".to_vec(), b"h2".to_vec());
        match self {
            Self::Http1 => vec![http1],
            Self::H2 => vec![h2, http1],
        }
    }

    /// The negotiated version.
    pub(crate) fn agreed(protocol: Option<&[u8]>) -> Self {
        match protocol {
            Some(b"h2") => Self::H2,
            _ => Self::Http1,
        }
    }
}

/// The crypto provider of all TLS configs.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// The current time, for the validity of certificates.
#[expect(
    clippy::disallowed_methods,
    reason = "the agent judges a certificate by its wall clock, so ours has to be read"
)]
fn wall_clock() -> SystemTime {
    SystemTime::now()
}
