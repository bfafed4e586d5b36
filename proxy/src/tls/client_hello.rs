//! The first message of a TLS client, read before anything is decided.

use bytes::{Bytes, BytesMut};
use rustls::server::{Accepted, Acceptor};

/// What an agent asks for in its `ClientHello`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientHello {
    /// The host it means (SNI), in lower case; none for an IP address.
    pub server_name: Option<String>,
    /// The protocols it offers by ALPN, in its order; empty without ALPN.
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

/// Reads a `ClientHello` out of bytes that come in any pieces. Pure: it opens no socket.
pub struct HelloReader {
    acceptor: Acceptor,
    seen: BytesMut,
}

/// A `ClientHello` that has come whole.
pub(super) struct WholeHello {
    pub(super) hello: ClientHello,
    /// Where the handshake goes on.
    pub(super) accepted: Accepted,
    /// Every byte that came, for whoever takes the connection untouched.
    pub(super) seen: Bytes,
    /// How many bytes, at the end of `seen`, the handshake does not know of yet.
    pub(super) unread: usize,
}

/// A first message that is no `ClientHello`, or a broken one.
pub(super) struct BadHello {
    pub(super) error: rustls::Error,
    /// What the client has to be told, ready to be sent; may be empty.
    pub(super) alert: Vec<u8>,
}

impl Default for HelloReader {
    fn default() -> Self {
        Self::new()
    }
}

impl HelloReader {
    /// A reader that saw nothing yet.
    pub fn new() -> Self {
        Self {
            acceptor: Acceptor::default(),
            seen: BytesMut::new(),
        }
    }

    /// Shows more bytes. Gives the message once it is complete; nothing may be shown after that,
    /// nor after an error.
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
