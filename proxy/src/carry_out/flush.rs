//! Knowing what has left before something breaks.
//!
//! hyper throws away what it still buffers when a body fails, so a body that is to be cut after N
//! bytes must not fail before those N are with the kernel.
//!
//! - On HTTP/1.1 the connection's IO is wrapped in [`Watched`], which counts completed flushes:
//!   hyper flushes the IO only after it has written all it had, TLS records included.
//! - On HTTP/2 a flush says nothing about one stream, whose data may wait for the agent's window.
//!   There the last piece is watched instead: it is dropped when h2 has framed it.

use std::cell::{Cell, RefCell};
use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::rt::{Read, ReadBufCursor, Write};
use squall_profiles::plan::Ending;
use tokio::sync::oneshot;

use super::trailers::Instead;
use crate::broken::Broken;
use crate::wire::Control;

/// Resets the connection to the agent (RST) when it is closed, instead of a FIN.
pub trait ResetOnClose {
    /// From now on whatever is written is dropped, and closing sends an RST.
    fn reset_on_close(&self);
}

impl ResetOnClose for Control {
    fn reset_on_close(&self) {
        Control::reset_on_close(self);
    }
}

/// The connection to the agent, as far as bodies that break off need to know it.
#[derive(Clone)]
pub enum AgentSide {
    /// HTTP/1.x: breaking off is closing or resetting the connection.
    Http1(Rc<Http1Side>),
    /// HTTP/2: breaking off is resetting the stream; its siblings are not hurt.
    Http2,
}

/// An HTTP/1.x connection to an agent.
pub struct Http1Side {
    socket: Rc<dyn ResetOnClose>,
    flushes: Flushes,
    last_chunk: RefCell<Instead>,
}

impl AgentSide {
    /// The side of an HTTP/1.x connection, and its IO wrapped so that flushes are noticed. hyper
    /// must be given the wrapped IO, or answers that break off wait for ever.
    pub fn http1<IO>(socket: Rc<dyn ResetOnClose>, io: IO) -> (Self, Watched<IO>) {
        let side = Rc::new(Http1Side {
            socket,
            flushes: Flushes::default(),
            last_chunk: RefCell::default(),
        });
        (Self::Http1(Rc::clone(&side)), Watched { io, side })
    }

    /// Prepares the connection for the end that `broken` describes. To be called right before it
    /// is given to hyper.
    pub fn prepare(&self, broken: &Broken) {
        match (self, broken.ending()) {
            (Self::Http1(side), Ending::Reset) => side.socket.reset_on_close(),
            (Self::Http1(_), Ending::Close) | (Self::Http2, _) => {}
        }
    }
}

/// Completed flushes of one connection.
#[derive(Default)]
struct Flushes {
    count: Cell<u64>,
    waiting: RefCell<Option<Waker>>,
}

impl Flushes {
    fn note(&self) {
        self.count.set(self.count.get().wrapping_add(1));
        if let Some(waker) = self.waiting.borrow_mut().take() {
            waker.wake();
        }
    }
}

/// A connection's IO whose flushes are noticed.
pub struct Watched<IO> {
    io: IO,
    side: Rc<Http1Side>,
}

impl<IO> Watched<IO> {
    /// The IO itself, once hyper is through with it.
    pub fn into_inner(self) -> IO {
        self.io
    }
}

impl<IO: Read + Unpin> Read for Watched<IO> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buf)
    }
}

impl<IO: Write + Unpin> Write for Watched<IO> {
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
            self.side.flushes.note();
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

/// The end of an HTTP/1 body with trailers: waits until everything before it has left.
pub(crate) struct LastChunk {
    side: Rc<Http1Side>,
    /// Completed flushes when it began to wait.
    before: Option<u64>,
    bytes: Bytes,
}

impl LastChunk {
    /// `bytes` go out in the place of the chunk that hyper ends the body with.
    pub(crate) fn new(side: &Rc<Http1Side>, bytes: Bytes) -> Self {
        Self {
            side: Rc::clone(side),
            before: None,
            bytes,
        }
    }

    /// Ready when hyper may be told that the body ends.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let flushes = &self.side.flushes;
        let now = flushes.count.get();
        if *self.before.get_or_insert(now) == now {
            flushes.waiting.replace(Some(cx.waker().clone()));
            return Poll::Pending;
        }
        let bytes = std::mem::take(&mut self.bytes);
        self.side.last_chunk.replace(Instead::Of(bytes));
        Poll::Ready(())
    }
}

/// An end that waits until everything before it has left.
pub(crate) struct Break {
    agent: AgentSide,
    broken: Option<Broken>,
    wait: Wait,
}

enum Wait {
    /// Begins when it is first polled.
    Begin,
    /// Until the connection has been flushed once more than this often.
    Flush(u64),
    /// Until the last piece is gone.
    Piece(oneshot::Receiver<()>),
    /// Until the task was polled once more.
    Turn,
}

impl Break {
    /// Breaks off as `broken` says.
    pub(crate) fn new(agent: AgentSide, broken: Broken) -> Self {
        Self {
            agent,
            broken: Some(broken),
            wait: Wait::Begin,
        }
    }

    /// The same, given the last piece that is to arrive; what is returned goes out in its place.
    pub(crate) fn after(agent: AgentSide, broken: Broken, last: Bytes) -> (Self, Bytes) {
        match &agent {
            AgentSide::Http1(_) => (Self::new(agent, broken), last),
            AgentSide::Http2 => {
                let (gone, wait) = oneshot::channel();
                let piece = Bytes::from_owner(LastPiece {
                    bytes: last,
                    _gone: gone,
                });
                (
                    Self {
                        agent,
                        broken: Some(broken),
                        wait: Wait::Piece(wait),
                    },
                    piece,
                )
            }
        }
    }

    /// Ready with the error when it may be given to hyper; `None` after that.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Broken>> {
        let left = match (&mut self.wait, &self.agent) {
            (Wait::Begin, AgentSide::Http1(side)) => {
                self.wait = Wait::Flush(side.flushes.count.get());
                side.flushes.waiting.replace(Some(cx.waker().clone()));
                false
            }
            (Wait::Begin, AgentSide::Http2) => {
                // Lets hyper hand the head and what else it holds to h2.
                self.wait = Wait::Turn;
                cx.waker().wake_by_ref();
                false
            }
            (Wait::Flush(before), AgentSide::Http1(side)) => {
                let flushed = side.flushes.count.get() != *before;
                if !flushed {
                    side.flushes.waiting.replace(Some(cx.waker().clone()));
                }
                flushed
            }
            (Wait::Piece(gone), _) => Pin::new(gone).poll(cx).is_ready(),
            (Wait::Turn | Wait::Flush(_), _) => true,
        };
        if !left {
            return Poll::Pending;
        }
        if let Some(broken) = &self.broken {
            self.agent.prepare(broken);
        }
        Poll::Ready(self.broken.take())
    }
}

/// A body whose failure reaches hyper only after everything before it has left.
///
/// Needed around every body that may give data and fail in one go.
pub(crate) struct Breaking<B> {
    body: B,
    agent: AgentSide,
    end: Option<Box<Break>>,
}

impl<B> Breaking<B> {
    pub(crate) fn new(body: B, agent: AgentSide) -> Self {
        Self {
            body,
            agent,
            end: None,
        }
    }
}

impl<B> Body for Breaking<B>
where
    B: Body<Data = Bytes, Error = Broken> + Unpin,
{
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        if let Some(end) = &mut self.end {
            return Poll::Ready(ready!(end.poll(cx)).map(Err));
        }
        match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
            Some(Ok(frame)) => Poll::Ready(Some(Ok(frame))),
            None => Poll::Ready(None),
            Some(Err(broken)) => {
                let end = Box::new(Break::new(self.agent.clone(), broken));
                Poll::Ready(ready!(self.end.insert(end).poll(cx)).map(Err))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.end.is_none() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The last piece before a break; the sender goes when the bytes do.
struct LastPiece {
    bytes: Bytes,
    _gone: oneshot::Sender<()>,
}

impl AsRef<[u8]> for LastPiece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}
