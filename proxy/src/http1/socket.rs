//! The TCP connection of an agent.
//!
//! A [`Socket`] may be wrapped by TLS and an HTTP codec, but its [`Control`] stays accessible.
//! Through it, faults can reset the connection (a plain RST), and idle connections can be ended.

use std::cell::{Cell, RefCell};
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use crate::peer::Peer;

/// Idle time before TCP keepalive probes an agent.
const SILENT_FOR: Duration = Duration::from_mins(2);

/// A TCP connection with counters and control.
///
/// Bytes go directly to and from the socket, without buffering.
pub(crate) struct Socket {
    stream: TcpStream,
    control: Rc<Control>,
}

impl Socket {
    /// Wraps a connected socket, disables Nagle's algorithm and enables TCP keepalive.
    ///
    /// It fails if the socket is already closed (its addresses cannot be read).
    pub(crate) fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        // An exchange may wait long for its upstream, but not for an agent that is gone.
        SockRef::from(&stream).set_tcp_keepalive(&TcpKeepalive::new().with_time(SILENT_FOR))?;
        let control = Control::new(
            Arc::new(Peer::new(stream.peer_addr()?.ip())),
            stream.local_addr()?,
        );
        Ok(Self { stream, control })
    }

    /// The control of this connection.
    pub(crate) fn control(&self) -> Rc<Control> {
        Rc::clone(&self.control)
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // Linger zero turns the following close into an RST and discards the kernel's buffer.
        if self.control.resetting.get()
            && let Err(error) = self.stream.set_zero_linger()
        {
            tracing::debug!(peer = %self.control.peer.address, %error, "the socket is gone before its reset");
        }
    }
}

/// Switches and counters of one connection, shared by all stages.
pub(crate) struct Control {
    peer: Arc<Peer>,
    local: SocketAddr,
    moved: Cell<u64>,
    resetting: Cell<bool>,
    aborted: Cell<bool>,
    idle: Cell<bool>,
    /// Exchanges that wait for parties other than the agent.
    waits: Cell<usize>,
    /// Wakers of the last pending read and write, so that an abort can wake them.
    reader: RefCell<Option<Waker>>,
    writer: RefCell<Option<Waker>>,
}

impl Control {
    fn new(peer: Arc<Peer>, local: SocketAddr) -> Rc<Self> {
        Rc::new(Self {
            peer,
            local,
            moved: Cell::new(0),
            resetting: Cell::new(false),
            aborted: Cell::new(false),
            idle: Cell::new(false),
            waits: Cell::new(0),
            reader: RefCell::new(None),
            writer: RefCell::new(None),
        })
    }

    /// The control of one HTTP/2 stream, which does not end its connection.
    pub(crate) fn of_stream(&self) -> Rc<Self> {
        Self::new(Arc::clone(&self.peer), self.local)
    }

    /// Ends this connection with an RST.
    ///
    /// From now on writes are discarded (they report success) and a shutdown does nothing. So no
    /// HTTP bytes and no TLS `close_notify` are sent. Dropping the connection sends the RST, and
    /// discards bytes that the kernel has not delivered.
    pub(crate) fn reset_on_close(&self) {
        self.resetting.set(true);
        wake(&self.writer);
    }

    /// Whether [`Self::reset_on_close`] was called.
    pub(crate) fn is_resetting(&self) -> bool {
        self.resetting.get()
    }

    /// Ends the connection from outside: reads and writes fail with
    /// [`io::ErrorKind::ConnectionAborted`], including pending ones.
    ///
    /// The connection's task then drops it, which closes it; with an earlier
    /// [`Self::reset_on_close`], by an RST.
    pub(crate) fn abort(&self) {
        self.aborted.set(true);
        wake(&self.reader);
        wake(&self.writer);
    }

    /// Ends an idle connection, like [`Self::abort`].
    pub(crate) fn abort_idle(&self) {
        self.idle.set(true);
        self.abort();
    }

    /// Whether [`Self::abort_idle`] was called.
    pub(crate) fn was_idle(&self) -> bool {
        self.idle.get()
    }

    /// Whether an exchange waits for a party other than the agent; then the agent does not count as
    /// idle.
    pub(crate) fn waits_for_others(&self) -> bool {
        self.waits.get() > 0
    }

    /// The program at the other end.
    pub(crate) fn peer(&self) -> &Arc<Peer> {
        &self.peer
    }

    /// The local address.
    pub(crate) fn local(&self) -> SocketAddr {
        self.local
    }

    /// Bytes read from the socket or passed to it so far, without discarded ones.
    pub(crate) fn moved(&self) -> u64 {
        self.moved.get()
    }

    fn moves(&self, bytes: usize) {
        self.moved.set(self.moved.get() + bytes as u64);
    }

    fn check(&self) -> io::Result<()> {
        if self.aborted.get() {
            return Err(io::Error::new(io::ErrorKind::ConnectionAborted, Aborted));
        }
        Ok(())
    }
}

/// The party that an exchange waits for; initially not the agent.
pub(crate) struct Waits {
    control: Rc<Control>,
    for_agent: Cell<bool>,
}

impl Waits {
    /// For a new exchange on this connection.
    pub(crate) fn on(control: &Rc<Control>) -> Self {
        control.waits.set(control.waits.get() + 1);
        Self {
            control: Rc::clone(control),
            for_agent: Cell::new(false),
        }
    }

    /// Sets whether the exchange waits for the agent to send or receive, or for another party.
    pub(crate) fn for_agent(&self, for_agent: bool) {
        let waits = &self.control.waits;
        match (self.for_agent.replace(for_agent), for_agent) {
            (false, true) => waits.set(waits.get() - 1),
            (true, false) => waits.set(waits.get() + 1),
            _ => {}
        }
    }

    /// Whether the connection was ended because it was idle.
    pub(crate) fn in_vain(&self) -> bool {
        self.control.was_idle()
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        self.for_agent(true);
    }
}

/// The connection was ended by [`Control::abort`].
#[derive(Debug, thiserror::Error)]
#[error("the connection was ended from within the proxy")]
pub(crate) struct Aborted;

fn wake(parked: &RefCell<Option<Waker>>) {
    // Taken out first: a waker may call this function again.
    let waker = parked.borrow_mut().take();
    if let Some(waker) = waker {
        waker.wake();
    }
}

fn park(parked: &RefCell<Option<Waker>>, context: &Context<'_>) {
    let mut parked = parked.borrow_mut();
    match &mut *parked {
        Some(waker) => waker.clone_from(context.waker()),
        none => *none = Some(context.waker().clone()),
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.control.check()?;
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        let control = &self.control;
        match &read {
            Poll::Pending => park(&control.reader, context),
            Poll::Ready(_) => {
                control.moves(buffer.filled().len() - before);
            }
        }
        read
    }
}

impl Socket {
    fn poll_write_with(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        length: usize,
        write: impl FnOnce(Pin<&mut TcpStream>, &mut Context<'_>) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.control.check()?;
        if this.control.resetting.get() {
            return Poll::Ready(Ok(length));
        }
        let written = write(Pin::new(&mut this.stream), context);
        match &written {
            Poll::Pending => park(&this.control.writer, context),
            Poll::Ready(Ok(n)) => this.control.moves(*n),
            Poll::Ready(Err(_)) => {}
        }
        written
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_with(context, bytes.len(), |stream, cx| {
            stream.poll_write(cx, bytes)
        })
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let length = slices.iter().map(|slice| slice.len()).sum();
        self.poll_write_with(context, length, |stream, cx| {
            stream.poll_write_vectored(cx, slices)
        })
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.control.resetting.get() {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.control.resetting.get() {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests;
