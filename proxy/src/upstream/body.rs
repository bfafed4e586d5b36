//! Bodies on their way to and from an upstream.
//!
//! [`Sent`] wraps the agent's body: it knows when the request has ended, which is when
//! `response_timeout` begins, and holds back a body that waits for `100 Continue`. [`Received`]
//! wraps the upstream's: at its end the connection goes back to the pool, and a break in it is
//! told as a [`Broken`].

use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures_util::task::AtomicWaker;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::sync::oneshot;
use tokio::time::Sleep;

use super::OutgoingBody;
use super::error::break_of;
use super::http1::{Http1, Switched};
use super::pool::Lease;
use crate::broken::Broken;

/// How long `100 Continue` is waited for before the body is sent all the same, as an agent of
/// its own would (RFC 9110 §10.1.1); curl's figure.
const CONTINUE_PATIENCE: Duration = Duration::from_secs(1);

/// The agent's body as an upstream connection takes it.
pub(super) struct Sent<B> {
    body: B,
    /// Dropped at the body's end, which its receiver hears.
    ended: Option<oneshot::Sender<()>>,
    held: Option<Held>,
    /// Tells the connection that there is more to be sent; dropped with the body.
    uploading: Option<Rc<()>>,
}

/// A body that is held back for `100 Continue`.
struct Held {
    gate: Arc<Gate>,
    patience: Pin<Box<Sleep>>,
}

impl<B: Body> Sent<B> {
    pub(super) fn new(body: B) -> Self {
        Self {
            body,
            ended: None,
            held: None,
            uploading: None,
        }
    }

    /// Holds on to `token` until the connection has taken all of the body.
    pub(super) fn uploading(&mut self, token: &Rc<()>) {
        self.uploading = Some(Rc::clone(token));
    }

    /// Resolves (to an error) when the body has been handed over to its end.
    pub(super) fn watch_end(&mut self) -> oneshot::Receiver<()> {
        let (ended, watch) = oneshot::channel();
        self.ended = Some(ended).filter(|_| !self.body.is_end_stream());
        watch
    }

    /// Holds the body back until the gate opens or patience runs out.
    pub(super) fn hold(&mut self, gate: Arc<Gate>) {
        self.held = Some(Held {
            gate,
            patience: Box::pin(tokio::time::sleep(CONTINUE_PATIENCE)),
        });
    }
}

type BodyError = Box<dyn Error + Send + Sync>;

impl<B> Body for Sent<B>
where
    B: Body<Data = Bytes, Error: Into<BodyError>> + Unpin,
{
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = self.get_mut();
        if let Some(held) = &mut this.held {
            ready!(held.poll(cx))?;
            this.held = None;
        }
        let frame = ready!(Pin::new(&mut this.body).poll_frame(cx));
        if this.body.is_end_stream() || !matches!(&frame, Some(Ok(frame)) if frame.is_data()) {
            this.ended = None;
        }
        Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Held {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BodyError>> {
        self.gate.waker.register(cx.waker());
        match self.gate.state.load(Ordering::Acquire) {
            WAITING => self.patience.as_mut().poll(cx).map(Ok),
            OPEN => Poll::Ready(Ok(())),
            ANSWERED => Poll::Pending,
            _ => Poll::Ready(Err(Box::new(NotWanted))),
        }
    }
}

/// Where the answer to `Expect: 100-continue` is noted, for the body that waits for it.
#[derive(Debug, Default)]
pub(super) struct Gate {
    state: AtomicU8,
    waker: AtomicWaker,
}

const WAITING: u8 = 0;
/// 100 came.
const OPEN: u8 = 1;
/// A final answer came first: the body is not wanted, but the answer is still being read.
const ANSWERED: u8 = 2;
/// That answer is over: so is the connection.
const SHUT: u8 = 3;

impl Gate {
    /// `100 Continue` has come.
    pub(super) fn open(&self) {
        self.move_on(WAITING, OPEN);
    }

    /// The answer's head has come.
    pub(super) fn answered(&self) {
        self.move_on(WAITING, ANSWERED);
    }

    /// The answer is over.
    pub(super) fn shut(&self) {
        self.move_on(ANSWERED, SHUT);
    }

    fn move_on(&self, from: u8, to: u8) {
        let moved = self
            .state
            .compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire);
        if moved.is_ok() {
            self.waker.wake();
        }
    }
}

/// Ends a request whose body was held back and never asked for.
#[derive(Debug)]
struct NotWanted;

impl fmt::Display for NotWanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the upstream answered without asking for the body")
    }
}

impl Error for NotWanted {}

/// An upstream's body. `B` is the type of the requests' bodies.
///
/// Dropping it before its end closes the HTTP/1.1 connection, or resets the HTTP/2 stream.
pub struct Received<B: OutgoingBody> {
    body: Incoming,
    lease: Option<Lease<B>>,
    gate: Option<Arc<Gate>>,
    switching: Option<Box<Http1<B>>>,
}

impl<B: OutgoingBody> Received<B> {
    pub(super) fn new(body: Incoming, lease: Lease<B>, gate: Option<Arc<Gate>>) -> Self {
        let mut received = Self {
            body,
            lease: Some(lease),
            gate,
            switching: None,
        };
        received.release_at_end();
        received
    }

    /// The body of a 101: none, and the connection in its new protocol.
    pub(super) fn switching(body: Incoming, connection: Http1<B>) -> Self {
        Self {
            body,
            lease: None,
            gate: None,
            switching: Some(Box::new(connection)),
        }
    }

    /// After a 101: the connection, to be read and written in the new protocol. `None` when the
    /// status was another, or when the connection broke right behind the head.
    pub async fn into_switched(mut self) -> Option<Switched> {
        self.switching.take()?.into_switched().await
    }

    fn release_at_end(&mut self) {
        if self.body.is_end_stream() {
            self.release();
        }
    }

    fn release(&mut self) {
        self.shut_gate();
        if let Some(lease) = self.lease.take() {
            lease.end();
        }
    }

    /// The next frame. Where the connection is this exchange's own, waiting for it reads it.
    fn poll_incoming(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let body = &mut self.body;
        match &mut self.lease {
            Some(Lease::Http1(_, connection)) => {
                connection.poll(cx, |cx| Pin::new(&mut *body).poll_frame(cx))
            }
            Some(Lease::H2(_)) | None => Pin::new(body).poll_frame(cx),
        }
    }

    fn shut_gate(&mut self) {
        if let Some(gate) = self.gate.take() {
            gate.shut();
        }
    }
}

impl<B: OutgoingBody> Body for Received<B> {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        let this = self.get_mut();
        match ready!(this.poll_incoming(cx)) {
            Some(Ok(frame)) => {
                // Nobody has to ask for what comes after trailers.
                if frame.is_trailers() {
                    this.release();
                } else {
                    this.release_at_end();
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Some(Err(error)) => {
                // Not released: a connection that broke is nobody's any more.
                let seen = match this.lease.take() {
                    Some(Lease::Http1(_, connection)) => connection.break_of(&error),
                    Some(Lease::H2(_)) | None => break_of(&error),
                };
                Poll::Ready(Some(Err(seen.into())))
            }
            None => {
                this.release();
                Poll::Ready(None)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl<B: OutgoingBody> Drop for Received<B> {
    fn drop(&mut self) {
        self.shut_gate();
    }
}

impl<B: OutgoingBody> fmt::Debug for Received<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Received")
            .field("body", &self.body)
            .finish_non_exhaustive()
    }
}
