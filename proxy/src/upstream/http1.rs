//! One HTTP/1.1 connection to an upstream: hyper above the framing guard, moved by its exchange.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::oneshot;
use tokio::task::spawn_local;

use super::OutgoingBody;
use super::body::Sent;
use super::driven::{Driven, First};
use super::error::{Break, Cause, break_of, cause_of};
use super::settings::Settings;
use super::transport::Transport;
use crate::h1::Limits;
use crate::h1::guard::{End, ResponseGuard, ResponseState};
use crate::wire::Rewind;

/// A connection and the client's end of it.
pub(super) struct Http1<B: OutgoingBody> {
    sender: SendRequest<Sent<B>>,
    state: Rc<ResponseState>,
    driver: Driver<B>,
    /// Shared with the latest request's body for as long as that is not written.
    uploading: Rc<()>,
}

/// Who moves the bytes.
enum Driver<B: OutgoingBody> {
    /// Whoever waits for them.
    // Boxed: hyper's side of a connection is a kilobyte, and this moves with the exchange.
    Exchange(Box<Driven<B>>),
    /// A task, for a request is still being sent while its answer is read, or not read; it tells
    /// what the connection became after a 101.
    Task(oneshot::Receiver<Switched>),
}

/// A connection after `101 Switching Protocols`: what the upstream sends next, and where to send.
#[derive(Debug)]
pub struct Switched(Rewind<Transport>);

impl Switched {
    pub(super) fn new(transport: Rewind<Transport>) -> Self {
        Self(transport)
    }
}

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
            .handshake(TokioIo::new(guard))
            .await
            .map_err(|error| cause_of(&error))?;
        Ok(Self {
            sender,
            driver: Driver::Exchange(Box::new(Driven::new(connection, Rc::clone(&state)))),
            state,
            uploading: Rc::default(),
        })
    }

    /// Sends a request and waits for the answer's head. An error that holds the request was found
    /// before its first byte was written.
    pub(super) async fn send(
        &mut self,
        mut request: Box<Request<Sent<B>>>,
    ) -> Result<Response<Incoming>, TrySendError<Request<Sent<B>>>> {
        self.state.expect(request.method());
        request.body_mut().uploading(&self.uploading);
        let mut head = pin!(self.sender.try_send_request(*request));
        let driver = &mut self.driver;
        poll_fn(|cx| driver.poll(cx, First::Connection, |cx| head.as_mut().poll(cx))).await
    }

    /// Polls what the connection has to do something for: an answer's body.
    pub(super) fn poll<T>(
        &mut self,
        cx: &mut Context<'_>,
        wanted: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        self.driver.poll(cx, First::Wanted, wanted)
    }

    /// Sees to it that the request is sent on, however slowly its answer is read.
    pub(super) fn send_on(&mut self) {
        let Driver::Exchange(_) = self.driver else {
            return;
        };
        if Rc::strong_count(&self.uploading) == 1 {
            return;
        }
        let (switch, switched) = oneshot::channel();
        let driver = std::mem::replace(&mut self.driver, Driver::Task(switched));
        if let Driver::Exchange(mut driven) = driver {
            spawn_local(async move {
                if let Some(switched) = poll_fn(|cx| driven.poll_end(cx)).await {
                    // Nobody takes it when the agent went away meanwhile; dropping it closes it.
                    let _: Result<(), Switched> = switch.send(switched);
                }
            });
        }
    }

    /// Lets an idle connection notice that it was closed.
    pub(super) fn look(&mut self) {
        if let Driver::Exchange(driven) = &mut self.driver {
            driven.look();
        }
    }

    /// The same, if anything has come since it was last looked at.
    pub(super) fn look_if_stirred(&mut self) {
        if let Driver::Exchange(driven) = &mut self.driver
            && driven.is_stirred()
        {
            driven.look();
        }
    }

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
        let Self { sender, driver, .. } = self;
        poll_fn(|cx| driver.poll(cx, First::Wanted, |cx| sender.poll_ready(cx)))
            .await
            .is_ok()
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

    /// The connection behind a 101; `None` when it broke right behind the head.
    pub(super) async fn into_switched(self) -> Option<Switched> {
        match self.driver {
            Driver::Exchange(mut driven) => poll_fn(|cx| driven.poll_end(cx)).await,
            Driver::Task(switched) => switched.await.ok(),
        }
    }
}

impl<B: OutgoingBody> Driver<B> {
    fn poll<T>(
        &mut self,
        cx: &mut Context<'_>,
        first: First,
        mut wanted: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        match self {
            Self::Exchange(driven) => driven.poll(cx, first, wanted),
            Self::Task(_) => wanted(cx),
        }
    }
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
