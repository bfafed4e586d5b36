//! One HTTP/1.1 connection to an upstream: hyper above the framing guard, driven by a local task.

use std::error::Error;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::{Builder, Connection, Parts, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::sync::oneshot;
use tokio::task::spawn_local;
use tokio::time::timeout;

use super::OutgoingBody;
use super::body::Sent;
use super::error::{Break, Cause, break_of, cause_of};
use super::settings::Settings;
use super::transport::Transport;
use crate::h1::Limits;
use crate::h1::framing::Position;
use crate::h1::guard::{End, ResponseGuard, ResponseState};
use crate::wire::Rewind;

/// How long a TLS farewell may take when a connection ends.
const FAREWELL: Duration = Duration::from_secs(1);

type Guarded = TokioIo<ResponseGuard<Transport>>;

/// The client's end of a connection.
pub(super) struct Http1<B> {
    sender: SendRequest<Sent<B>>,
    state: Rc<ResponseState>,
    switched: oneshot::Receiver<Switched>,
}

/// A connection after `101 Switching Protocols`: what the upstream sends next, and where to send.
#[derive(Debug)]
pub struct Switched(Rewind<Transport>);

impl<B: OutgoingBody> Http1<B> {
    /// Takes over a transport on which nothing has been said yet.
    pub(super) async fn open(transport: Transport, settings: &Settings) -> Result<Self, Cause> {
        let limits = Limits {
            header_bytes: usize::try_from(settings.header_bytes).unwrap_or(usize::MAX),
            header_count: settings.header_count,
        };
        let guard = ResponseGuard::new(transport, limits);
        let state = guard.state();
        let (sender, connection) = Builder::new()
            .preserve_header_case(true)
            .max_headers(settings.header_count)
            .handshake::<Guarded, Sent<B>>(TokioIo::new(guard))
            .await
            .map_err(|error| cause_of(&error))?;
        let (switch, switched) = oneshot::channel();
        spawn_local(drive(connection, state.clone(), switch));
        Ok(Self {
            sender,
            state,
            switched,
        })
    }

    /// Sends a request. An error that holds the request was found before its first byte was
    /// written.
    pub(super) fn send(
        &mut self,
        request: Request<Sent<B>>,
    ) -> impl Future<Output = Result<Response<Incoming>, TrySendError<Request<Sent<B>>>>> + use<B>
    {
        self.state.expect(request.method());
        self.sender.try_send_request(request)
    }
}

impl<B> Http1<B> {
    /// True when the next request can be written at once.
    pub(super) fn is_ready(&self) -> bool {
        self.sender.is_ready()
    }

    /// True when the connection has ended.
    pub(super) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    /// Waits for the connection to become ready; false when it ended instead.
    pub(super) async fn becomes_ready(&mut self) -> bool {
        self.sender.ready().await.is_ok()
    }

    /// What `error` means, said by the guard where it saw more than hyper tells.
    pub(super) fn cause_of(&self, error: &hyper::Error) -> Cause {
        match self.seen_break() {
            Some(seen) if !error.is_user() => seen.into(),
            _ => cause_of(error),
        }
    }

    /// How the answer's body broke off.
    pub(super) fn break_of(&self, error: &hyper::Error) -> Break {
        self.seen_break().unwrap_or_else(|| break_of(error))
    }

    fn seen_break(&self) -> Option<Break> {
        if let Some(framing) = self.state.error() {
            return Some(Break::Framing(framing.to_string()));
        }
        match self.state.end()? {
            End::Error(io::ErrorKind::ConnectionReset) => Some(Break::Reset),
            End::Fin | End::Error(_) => Some(Break::Closed),
        }
    }

    /// The connection behind a 101.
    pub(super) fn into_switched(self) -> oneshot::Receiver<Switched> {
        self.switched
    }
}

async fn drive<B: OutgoingBody>(
    mut connection: Connection<Guarded, Sent<B>>,
    state: Rc<ResponseState>,
    switch: oneshot::Sender<Switched>,
) {
    if let Err(error) = poll_fn(|cx| connection.poll_without_shutdown(cx)).await {
        // Whoever has an exchange on it was told by hyper; an idle connection's end is no news.
        tracing::trace!(error = &error as &dyn Error, "an upstream connection ended");
    }
    let Parts { io, read_buf, .. } = connection.into_parts();
    let (mut transport, held) = io.into_inner().into_rewind().into_parts();
    if state.position() == Position::Switched {
        let unread = Switched(Rewind::new(transport, joined(read_buf, held)));
        // Nobody takes it when the agent went away meanwhile; dropping it closes it.
        let _: Result<(), Switched> = switch.send(unread);
    } else if transport.has_farewell() {
        // Best effort: the upstream may have stopped reading.
        let _farewell = timeout(FAREWELL, transport.shutdown()).await;
    }
}

fn joined(first: Bytes, second: Bytes) -> Bytes {
    if first.is_empty() {
        return second;
    }
    if second.is_empty() {
        return first;
    }
    let mut both = BytesMut::from(first);
    both.extend_from_slice(&second);
    both.freeze()
}

impl AsyncRead for Switched {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Switched {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().0).poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_shutdown(cx)
    }
}
