//! The server side of an intercepted connection's handshake.
//!
//! It has two steps. First the `ClientHello` is read. Then the caller continues with a config for
//! that host, fails the handshake, or passes the connection on unchanged.

use std::io;
use std::sync::Arc;

use bytes::BytesMut;
use rustls::{AlertDescription, ServerConfig};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio_rustls::StartHandshake;
use tokio_rustls::server::TlsStream;

use super::client_hello::{ClientHello, HelloReader, WholeHello};
use crate::http1::Rewind;

/// Bytes for the first read: most hellos fit.
const FIRST_READ: usize = 2048;

/// A fatal `handshake_failure` in a TLS 1.2 record, which every version accepts here (RFC 8446
/// §5.1, §6).
const HANDSHAKE_FAILURE: [u8; 7] = [21, 3, 3, 0, 2, 2, 40];

/// Why a handshake did not succeed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HandshakeError {
    /// The agent rejected our certificate; usually it does not trust the CA.
    #[error("the client refused our certificate ({alert:?})")]
    CertificateRejected {
        /// The alert: `UnknownCA`, `BadCertificate`, `CertificateUnknown`, `CertificateExpired` and
        /// similar.
        alert: AlertDescription,
    },
    /// The agent ended the handshake for another reason.
    #[error("the client ended the handshake ({alert:?})")]
    Alert {
        /// The alert.
        alert: AlertDescription,
    },
    /// The agent closed without an alert. Some agents reject a certificate like this.
    #[error("the client closed the connection during the handshake")]
    Closed,
    /// The agent's message is unusable: no TLS, or no common version, cipher or application
    /// protocol.
    #[error("the handshake is impossible: {0}")]
    Impossible(rustls::Error),
    /// The connection broke.
    #[error("the connection failed during the handshake: {0}")]
    Io(io::Error),
}

impl HandshakeError {
    fn from_io(error: io::Error) -> Self {
        use AlertDescription as Alert;
        let inside = error
            .get_ref()
            .and_then(|inside| inside.downcast_ref::<rustls::Error>());
        match inside {
            Some(rustls::Error::AlertReceived(alert)) => match alert {
                Alert::UnknownCA
                | Alert::BadCertificate
                | Alert::CertificateUnknown
                | Alert::CertificateExpired
                | Alert::CertificateRevoked
                | Alert::UnsupportedCertificate
                | Alert::AccessDenied
                | Alert::NoCertificate => Self::CertificateRejected { alert: *alert },
                _ => Self::Alert { alert: *alert },
            },
            Some(other) => Self::Impossible(other.clone()),
            None if error.kind() == io::ErrorKind::UnexpectedEof => Self::Closed,
            None => Self::Io(error),
        }
    }
}

/// A connection whose `ClientHello` was read; nothing was sent yet.
pub(crate) struct PendingHandshake<T> {
    stream: T,
    read: WholeHello,
}

/// Reads the `ClientHello` on `stream`.
///
/// It waits without a limit, so callers add a timeout. An invalid hello gets an alert.
pub(crate) async fn accept<T>(mut stream: T) -> Result<PendingHandshake<T>, HandshakeError>
where
    T: AsyncRead + AsyncWrite + Unpin,
{
    let mut reader = HelloReader::new();
    let mut bytes = BytesMut::with_capacity(FIRST_READ);
    loop {
        bytes.clear();
        if stream
            .read_buf(&mut bytes)
            .await
            .map_err(HandshakeError::Io)?
            == 0
        {
            return Err(HandshakeError::Closed);
        }
        match reader.read(&bytes) {
            Ok(None) => {}
            Ok(Some(read)) => return Ok(PendingHandshake { stream, read }),
            Err(refused) => {
                // The handshake's own error is more useful than an error while closing.
                let _ = send_and_close(&mut stream, &refused.alert).await;
                return Err(HandshakeError::Impossible(refused.error));
            }
        }
    }
}

impl<T> PendingHandshake<T> {
    /// The agent's `ClientHello`.
    pub(crate) fn hello(&self) -> &ClientHello {
        &self.read.hello
    }

    /// Returns the connection with all bytes put back, for hosts that are not intercepted.
    pub(crate) fn into_untouched(self) -> Rewind<T> {
        Rewind::new(self.stream, self.read.seen)
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> PendingHandshake<T> {
    /// Completes the handshake with `config`.
    pub(crate) async fn finish(
        self,
        config: Arc<ServerConfig>,
    ) -> Result<TlsStream<Rewind<T>>, HandshakeError> {
        let WholeHello {
            accepted,
            seen,
            unread,
            ..
        } = self.read;
        let unread = seen.slice(seen.len() - unread..);
        let stream = Rewind::new(self.stream, unread);
        let handshake = StartHandshake::from_parts(accepted, stream).into_stream(config);
        handshake.await.map_err(HandshakeError::from_io)
    }

    /// Fails the handshake with a fatal `handshake_failure` alert and closes for writing.
    pub(crate) async fn fail(mut self) -> io::Result<()> {
        send_and_close(&mut self.stream, &HANDSHAKE_FAILURE).await
    }
}

async fn send_and_close<T: AsyncWrite + Unpin>(stream: &mut T, bytes: &[u8]) -> io::Result<()> {
    stream.write_all(bytes).await?;
    stream.shutdown().await
}

#[cfg(test)]
mod tests;
