//! An HTTP/1.1 connection that runs when its exchange is looked at.
//!
//! hyper's connection is a future beside the exchange's. Given to a task of its own, every step of
//! an exchange waits for that task's turn, behind all others of the worker, and finds cold caches.
//! Here the exchange polls it: waiting for the head, or for the next frame, is what moves the bytes.
//!
//! hyper wakes one side when the other has got on. Both are polled here, so such a wake is answered
//! by polling again at once; only wakes from outside, the reactor's, reach the task ([`Relay`]).

use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use bytes::{Bytes, BytesMut};
use futures_util::task::AtomicWaker;
use hyper::client::conn::http1::{Connection, Parts};
use hyper_util::rt::TokioIo;
use tokio::io::AsyncWrite;

use super::OutgoingBody;
use super::body::Sent;
use super::http1::Switched;
use super::transport::Transport;
use crate::h1::framing::Position;
use crate::h1::guard::{ResponseGuard, ResponseState};
use crate::wire::Rewind;

/// How often the two sides may wake each other before the task's other work has its turn.
const TURNS: usize = 16;

/// hyper's connection over the framing guard.
pub(super) type Wire<B> = Connection<TokioIo<ResponseGuard<Transport>>, Sent<B>>;

/// Who is polled first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum First {
    /// What is wanted: it may be there already.
    Wanted,
    /// The connection: without it what is wanted cannot be there.
    Connection,
}

/// A connection, and whom to wake for it.
pub(super) struct Driven<B: OutgoingBody> {
    /// `None` once it has ended.
    wire: Option<Wire<B>>,
    state: Rc<ResponseState>,
    relay: Arc<Relay>,
    waker: Waker,
    /// What it became after a 101.
    switched: Option<Switched>,
}

impl<B: OutgoingBody> Driven<B> {
    pub(super) fn new(wire: Wire<B>, state: Rc<ResponseState>) -> Self {
        let relay = Arc::<Relay>::default();
        Self {
            wire: Some(wire),
            state,
            waker: Waker::from(Arc::clone(&relay)),
            relay,
            switched: None,
        }
    }

    /// Polls `wanted`, and the connection as long as that lets `wanted` get on.
    pub(super) fn poll<T>(
        &mut self,
        cx: &Context<'_>,
        first: First,
        mut wanted: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        self.relay.task.register(cx.waker());
        for _ in 0..TURNS {
            self.relay.begin();
            let mut within = Context::from_waker(&self.waker);
            let mut got = match first {
                First::Wanted => wanted(&mut within),
                First::Connection => Poll::Pending,
            };
            if got.is_pending() {
                self.turn();
                got = wanted(&mut Context::from_waker(&self.waker));
            }
            // Whoever got something comes again for more, so a wake is no loss then.
            let woken = self.relay.end();
            if got.is_ready() || !woken {
                return got;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Lets the connection notice what has come, or that it was closed; nobody is woken for more.
    pub(super) fn look(&mut self) {
        self.relay.task.take();
        self.relay.stirred.store(false, Ordering::Relaxed);
        self.relay.begin();
        self.turn();
        self.relay.end();
    }

    /// Whether anything has come since [`Self::look`].
    pub(super) fn is_stirred(&self) -> bool {
        self.relay.stirred.load(Ordering::Relaxed)
    }

    /// Resolves when the connection has ended: to what it became after a 101, or `None`.
    pub(super) fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<Option<Switched>> {
        if let Some(wire) = &mut self.wire {
            let ended = std::task::ready!(wire.poll_without_shutdown(cx));
            self.end(ended);
        }
        Poll::Ready(self.switched.take())
    }

    fn turn(&mut self) {
        let Some(wire) = &mut self.wire else { return };
        let ended = wire.poll_without_shutdown(&mut Context::from_waker(&self.waker));
        if let Poll::Ready(ended) = ended {
            self.end(ended);
        }
    }

    fn end(&mut self, ended: hyper::Result<()>) {
        if let Err(error) = ended {
            // Whoever has an exchange on it was told by hyper; an idle connection's end is no news.
            tracing::trace!(error = &error as &dyn Error, "an upstream connection ended");
        }
        self.close();
    }

    /// Takes the connection apart: hyper's side hears that it is closed.
    fn close(&mut self) {
        let Some(wire) = self.wire.take() else { return };
        let Parts { io, read_buf, .. } = wire.into_parts();
        let (mut transport, held) = io.into_inner().into_rewind().into_parts();
        if self.state.position() == Position::Switched {
            self.switched = Some(Switched::new(Rewind::new(
                transport,
                joined(read_buf, held),
            )));
        } else if transport.has_farewell() {
            // Best effort, and at once: whoever has stopped reading does not wait for it.
            let mut cx = Context::from_waker(Waker::noop());
            let _sent = Pin::new(&mut transport).poll_shutdown(&mut cx);
        }
    }
}

impl<B: OutgoingBody> Drop for Driven<B> {
    fn drop(&mut self) {
        self.close();
    }
}

impl<B: OutgoingBody> fmt::Debug for Driven<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driven")
            .field("open", &self.wire.is_some())
            .finish_non_exhaustive()
    }
}

/// Wakes the task that looks at a connection, unless that is what it does right now.
#[derive(Default)]
struct Relay {
    state: AtomicU8,
    /// Woken while nobody polled.
    stirred: AtomicBool,
    task: AtomicWaker,
}

/// Nobody polls: a wake is for the task.
const AWAY: u8 = 0;
/// The connection and its exchange are being polled.
const POLLING: u8 = 1;
/// One of them was woken meanwhile.
const WOKEN: u8 = 2;

impl Relay {
    fn begin(&self) {
        self.state.store(POLLING, Ordering::Release);
    }

    /// Whether there was a wake since [`Self::begin`].
    fn end(&self) -> bool {
        self.state.swap(AWAY, Ordering::AcqRel) == WOKEN
    }
}

impl Wake for Relay {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let within = |state| (state != AWAY).then_some(WOKEN);
        let noted = self
            .state
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, within);
        if noted.is_err() {
            self.stirred.store(true, Ordering::Relaxed);
            self.task.wake();
        }
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
