//! Parses the first message of a TLS client before the handshake is decided.

use bytes::{Bytes, BytesMut};
use rustls::server::{Accepted, Acceptor};

/// The agent's `ClientHello`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientHello {
    /// The requested host (SNI), in lower case; `None` for an IP address.
    pub server_name: Option<String>,
    /// The offered ALPN protocols, in order; empty without ALPN.
    pub alpn: Vec<Vec<u8>>,
}

impl ClientHello {
    /// Whether it offers HTTP/2.
    pub(crate) fn offers_http2(&self) -> bool {
        self.alpn.iter().any(|protocol| protocol == b"h2")
    }

    fn of(accepted: &Accepted) -> Self {
        let hello = accepted.client_hello();
        Self {
            server_name: hello.server_name().map(str::to_ascii_lowercase),
            alpn: hello
                .alpn()
                .into_iter()
                .flatten()
                .map(<[u8]>::to_vec)
                .collect(),
        }
    }
}

/// Parses a `ClientHello` from bytes in any pieces. It is pure and opens no socket.
pub struct HelloReader {
    acceptor: Acceptor,
    seen: BytesMut,
}

/// A complete `ClientHello`.
pub(super) struct WholeHello {
    pub(super) hello: ClientHello,
    /// Continues the handshake.
    pub(super) accepted: Accepted,
    /// All received bytes, for a connection that is passed on unchanged.
    pub(super) seen: Bytes,
    /// Number of bytes at the end of `seen` that the handshake has not read.
    pub(super) unread: usize,
}

/// An invalid first message.
pub(super) struct BadHello {
    pub(super) error: rustls::Error,
    /// The alert to send to the client; may be empty.
    pub(super) alert: Vec<u8>,
}

impl Default for HelloReader {
    fn default() -> Self {
        Self::new()
    }
}

impl HelloReader {
    /// A reader without input.
    pub fn new() -> Self {
        Self {
            acceptor: Acceptor::default(),
            seen: BytesMut::new(),
        }
    }

    /// Takes more bytes. Returns the message once it is complete; do not call it again after that
    /// or after an error.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Option<ClientHello>, rustls::Error> {
        match self.read(bytes) {
            Ok(read) => Ok(read.map(|read| read.hello)),
            Err(refused) => Err(refused.error),
        }
    }

    pub(super) fn read(&mut self, bytes: &[u8]) -> Result<Option<WholeHello>, BadHello> {
        self.seen.extend_from_slice(bytes);
        let mut rest = bytes;
        while !rest.is_empty() {
            if let Err(error) = self.acceptor.read_tls(&mut rest) {
                // Its buffer is full of an unfinished message: longer than any ClientHello.
                let error = rustls::Error::General(error.to_string());
                return Err(BadHello {
                    error,
                    alert: Vec::new(),
                });
            }
            match self.acceptor.accept() {
                Ok(None) => {}
                Ok(Some(accepted)) => {
                    return Ok(Some(WholeHello {
                        hello: ClientHello::of(&accepted),
                        accepted,
                        seen: self.seen.split().freeze(),
                        unread: rest.len(),
                    }));
                }
                Err((error, mut accepted_alert)) => {
                    let mut alert = Vec::new();
                    // Writing to memory does not fail.
                    let _ = accepted_alert.write_all(&mut alert);
                    return Err(BadHello { error, alert });
                }
            }
        }
        Ok(None)
    }
}
