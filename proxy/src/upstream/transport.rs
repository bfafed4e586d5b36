//! A connection to an upstream for hyper: plain or TLS, counted while it is open.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use tokio_util::either::Either;

use super::speaks::{FRAME_HEAD, is_settings};

/// Counters of upstream connections over all workers.
#[derive(Debug, Default)]
pub struct ConnectionCounters {
    opened: AtomicU64,
    replaced: AtomicU64,
    /// One reference for each open connection.
    open: Arc<()>,
}

impl ConnectionCounters {
    /// TCP connections open now.
    pub fn open(&self) -> u64 {
        Arc::strong_count(&self.open) as u64 - 1
    }

    /// TCP connections made since the start.
    pub fn opened(&self) -> u64 {
        self.opened.load(Ordering::Relaxed)
    }

    /// Pooled connections that were closed and replaced.
    pub fn replaced(&self) -> u64 {
        self.replaced.load(Ordering::Relaxed)
    }

    pub(super) fn count_replaced(&self) {
        self.replaced.fetch_add(1, Ordering::Relaxed);
    }
}

/// Counts a connection as open until dropped.
#[derive(Debug)]
pub(super) struct OpenConnection(#[expect(dead_code, reason = "held for its drop")] Arc<()>);

impl OpenConnection {
    pub(super) fn count(counters: &ConnectionCounters) -> Self {
        counters.opened.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(&counters.open))
    }
}

/// A connected socket on which nothing was sent yet.
#[derive(Debug)]
pub(crate) struct Dialled {
    pub(super) socket: TcpStream,
    pub(super) address: SocketAddr,
    pub(super) open: OpenConnection,
}

impl Dialled {
    /// The dialled address: the upstream's, or that of `upstream_proxy`.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Resolves when the upstream has sent something, or closed, before anything was sent to it.
    /// The SETTINGS of an HTTP/2 server do not count: it may send them immediately, but still waits
    /// for the client's preface (RFC 9113 §3.4).
    pub(crate) async fn speaks(&self) {
        let mut head = [0; FRAME_HEAD];
        // An error also counts; the tunnel will see it.
        if let Ok(seen) = self.socket.peek(&mut head).await
            && is_settings(&head[..seen]) == Some(true)
        {
            std::future::pending::<()>().await;
        }
    }

    /// The connection, for a tunnel.
    pub(crate) fn into_stream(self) -> Transport {
        Transport::clear(self)
    }
}

/// A connection to an upstream, for the HTTP client or a tunnel.
#[derive(Debug)]
pub(crate) struct Transport {
    // Boxed: a TLS session takes a kilobyte and is moved into the connection's task.
    io: Either<TcpStream, Box<TlsStream<TcpStream>>>,
    _open: OpenConnection,
}

impl Transport {
    pub(super) fn clear(dialled: Dialled) -> Self {
        Self {
            io: Either::Left(dialled.socket),
            _open: dialled.open,
        }
    }

    pub(super) fn tls(stream: TlsStream<TcpStream>, open: OpenConnection) -> Self {
        Self {
            io: Either::Right(Box::new(stream)),
            _open: open,
        }
    }

    /// True if the protocol has a closing message before the FIN.
    pub(super) fn has_farewell(&self) -> bool {
        matches!(self.io, Either::Right(_))
    }

    fn io(self: Pin<&mut Self>) -> Pin<&mut Either<TcpStream, Box<TlsStream<TcpStream>>>> {
        Pin::new(&mut self.get_mut().io)
    }
}

impl AsyncRead for Transport {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.io().poll_read(cx, buffer)
    }
}

impl AsyncWrite for Transport {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.io().poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.io().poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.io().poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.io().poll_shutdown(cx)
    }
}
