//! Ensures that bytes before an abort are sent first.
//!
//! hyper discards its buffer when a body fails. So a body that is cut after N bytes must not fail
//! before the kernel has those N bytes.
//!
//! - On HTTP/1.1 the connection's IO is wrapped in [`FlushWatched`], which counts completed flushes:
//!   hyper flushes the IO only after it has written all it had, TLS records included.
//! - On HTTP/2 a flush says nothing about one stream, whose data may wait for the agent's window.
//!   There the last piece is watched instead: it is dropped when h2 has framed it.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::rt::{Read, ReadBufCursor, Write};
use squall_profiles::plan::Ending;
use tokio::sync::oneshot;
use tokio::task::yield_now;

use super::trailers::LastChunk;
use crate::abort::Abort;
use crate::http1::Control;

/// The connection to the agent, for bodies that abort.
#[derive(Clone)]
pub(crate) enum AgentSide {
    /// HTTP/1.x: an abort closes or resets the connection.
    Http1(Rc<Http1Side>),
    /// HTTP/2: an abort resets the stream; other streams are not affected.
    Http2,
}

/// An HTTP/1.x connection to an agent.
pub(crate) struct Http1Side {
    control: Rc<Control>,
    /// Completed flushes.
    flushes: Cell<u64>,
    waiting: RefCell<Option<Waker>>,
    last_chunk: RefCell<LastChunk>,
}

/// Resolves when a watched piece has been sent. HTTP/1 uses flushes instead.
#[derive(Default)]
pub(crate) struct FlushReceipt(Option<oneshot::Receiver<()>>);

impl AgentSide {
    /// The side of an HTTP/1.x connection, and its IO with counted flushes. hyper must use the
    /// returned IO, or aborts wait forever.
    pub(crate) fn http1<IO>(control: Rc<Control>, io: IO) -> (Self, FlushWatched<IO>) {
        let side = Rc::new(Http1Side {
            control,
            flushes: Cell::new(0),
            waiting: RefCell::default(),
            last_chunk: RefCell::default(),
        });
        (Self::Http1(Rc::clone(&side)), FlushWatched { io, side })
    }

    /// Prepares the connection for the end that `broken` describes. Call it immediately before
    /// hyper gets the error.
    pub(crate) fn prepare(&self, broken: &Abort) {
        match (self, broken.ending()) {
            (Self::Http1(side), Ending::Reset) => side.control.reset_on_close(),
            (Self::Http1(_), Ending::Close) | (Self::Http2, _) => {}
        }
    }

    /// Watches the last piece before a break; what is returned goes out in its place.
    pub(crate) fn watch(&self, last: Bytes) -> (FlushReceipt, Bytes) {
        match self {
            Self::Http1(_) => (FlushReceipt::default(), last),
            Self::Http2 => {
                let (gone, wait) = oneshot::channel();
                let last = Bytes::from_owner(LastPiece {
                    bytes: last,
                    _gone: gone,
                });
                (FlushReceipt(Some(wait)), last)
            }
        }
    }

    /// Waits until everything before the abort is sent, including the watched piece. Then hyper may
    /// get the error.
    pub(crate) async fn break_off(self, broken: Abort, gone: FlushReceipt) -> Abort {
        match (&self, gone.0) {
            (Self::Http1(side), _) => side.flushed().await,
            (Self::Http2, Some(gone)) => drop(gone.await),
            // Lets hyper pass the head and its other buffered data to h2.
            (Self::Http2, None) => yield_now().await,
        }
        self.prepare(&broken);
        broken
    }
}

impl Http1Side {
    /// Waits until the connection has been flushed once more.
    async fn flushed(&self) {
        let before = self.flushes.get();
        poll_fn(|cx| {
            if self.flushes.get() != before {
                return Poll::Ready(());
            }
            self.waiting.replace(Some(cx.waker().clone()));
            Poll::Pending
        })
        .await;
    }

    /// Ends a body with trailers: waits until everything before the end is sent. Then `bytes`
    /// replace hyper's last chunk.
    pub(crate) async fn end_with(self: Rc<Self>, bytes: Bytes) {
        self.flushed().await;
        self.last_chunk.replace(LastChunk::Of(bytes));
    }
}

/// A connection's IO that counts completed flushes.
pub(crate) struct FlushWatched<IO> {
    io: IO,
    side: Rc<Http1Side>,
}

impl<IO> FlushWatched<IO> {
    /// The inner IO, once hyper has finished with it.
    pub(crate) fn into_inner(self) -> IO {
        self.io
    }
}

impl<IO: Read + Unpin> Read for FlushWatched<IO> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buf)
    }
}

impl<IO: Write + Unpin> Write for FlushWatched<IO> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        let mut instead = this.side.last_chunk.borrow_mut();
        if instead.takes(&[io::IoSlice::new(buf)]) {
            return instead.poll_write(&mut this.io, cx);
        }
        Pin::new(&mut this.io).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.io).poll_flush(cx);
        if let Poll::Ready(Ok(())) = flushed {
            self.side
                .flushes
                .set(self.side.flushes.get().wrapping_add(1));
            if let Some(waker) = self.side.waiting.take() {
                waker.wake();
            }
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        let mut instead = this.side.last_chunk.borrow_mut();
        if instead.takes(bufs) {
            return instead.poll_write(&mut this.io, cx);
        }
        Pin::new(&mut this.io).poll_write_vectored(cx, bufs)
    }
}

/// A body whose failure reaches hyper only after everything before it is sent.
///
/// Required for every body that may return data and fail immediately afterwards.
pub(crate) struct AbortAfterFlush<B> {
    /// `None` once it has failed.
    body: Option<B>,
    agent: AgentSide,
    end: Option<Pin<Box<dyn Future<Output = Abort>>>>,
}

impl<B> AbortAfterFlush<B> {
    pub(crate) fn new(body: B, agent: AgentSide) -> Self {
        Self {
            body: Some(body),
            agent,
            end: None,
        }
    }
}

impl<B> Body for AbortAfterFlush<B>
where
    B: Body<Data = Bytes, Error = Abort> + Unpin,
{
    type Data = Bytes;
    type Error = Abort;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Abort>>> {
        if let Some(body) = &mut self.body {
            let broken = match ready!(Pin::new(body).poll_frame(cx)) {
                Some(Err(broken)) => broken,
                given => return Poll::Ready(given),
            };
            self.body = None;
            self.end = Some(Box::pin(
                self.agent
                    .clone()
                    .break_off(broken, FlushReceipt::default()),
            ));
        }
        let Some(end) = &mut self.end else {
            return Poll::Ready(None);
        };
        let broken = ready!(end.as_mut().poll(cx));
        self.end = None;
        Poll::Ready(Some(Err(broken)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_some_and(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body
            .as_ref()
            .map_or_else(SizeHint::new, Body::size_hint)
    }
}

/// The last piece before an abort; dropping the bytes drops the sender.
struct LastPiece {
    bytes: Bytes,
    _gone: oneshot::Sender<()>,
}

impl AsRef<[u8]> for LastPiece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}
