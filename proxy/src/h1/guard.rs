//! The checkpoint between a byte stream and hyper.
//!
//! A [`Guard`] lets through what its tracker passes. In the common case (whole heads in a read) the
//! bytes go from the socket straight into hyper's buffer and are only looked at; only the beginning
//! of a head that is not complete yet is held back, so that hyper never sees part of a bad head.
//!
//! A refused *request head* cannot be answered on the spot, for earlier requests of the connection
//! may still be in work. So hyper is given a request of our own in its place (the sentinel), which
//! the service recognises when its turn comes ([`RequestState::take_rejection`]) and answers.
//! Everything else that is refused fails the read, with the [`FramingError`] inside.

mod requests;

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep, sleep_until};
use tokio_util::io::poll_read_buf;

use super::FramingError;
use super::framing::{Next, Progress};
use crate::wire::Rewind;

pub use self::requests::{Rejection, RequestSide, RequestState};

/// How long a connection on which something was refused is still read after its last answer, so
/// that unread bytes do not turn the close into an RST that overtakes the answer (RFC 9112 §9.6).
const LINGER: Duration = Duration::from_secs(1);

/// What is read (and thrown away) at a time while lingering.
const DRAIN_BYTES: usize = 8 * 1024;

/// A stream whose incoming HTTP/1.1 messages are checked.
#[derive(Debug)]
pub struct Guard<T, S> {
    inner: T,
    side: S,
    /// Bytes read and not yet given on: first `ready` bytes that may go, then a partial head.
    held: BytesMut,
    ready: usize,
    /// What the next read fails with.
    failure: Option<FramingError>,
    /// Runs while a head has begun and not ended.
    head_timer: Option<Pin<Box<Sleep>>>,
    closing: Closing,
}

/// The agent's side of the proxy: a stream on which requests come.
pub type RequestGuard<T> = Guard<T, RequestSide>;

/// How far a shutdown has come.
#[derive(Debug)]
enum Closing {
    Open,
    Lingering(Pin<Box<Sleep>>),
    Done,
}

/// What a guard does with the next read.
#[derive(Debug, PartialEq, Eq)]
pub enum Gate {
    /// Look at it.
    Check,
    /// Look at what is held first: what was not HTTP for sure now is.
    Recheck,
    /// Let it pass.
    Open,
    /// Keep it until the side's state says how to go on; the reader is parked there.
    Hold,
    /// Leave it unread.
    Shut,
}

/// The direction-specific half of a guard.
pub trait Side: Unpin {
    /// Shows bytes to the tracker.
    fn advance(&mut self, bytes: &[u8]) -> Progress;
    /// What to do with the next read.
    fn gate(&mut self, context: &Context<'_>) -> Gate;
    /// What begins with `rest` is refused: what is read in its place, or `None` when the read fails.
    fn refused(&mut self, error: FramingError, rest: &[u8]) -> Option<Bytes>;
    /// The stream ended or failed.
    fn ended(&mut self, how: Result<(), &io::Error>);
    /// When a head that begins now has to be complete.
    fn head_deadline(&self) -> Option<Instant>;
    /// Makes the tracker refuse what is not passed yet.
    fn time_out(&mut self) -> FramingError;
    /// Whether something was refused that the peer is told about.
    fn lingers(&self) -> bool;
}

impl<T, S> Guard<T, S> {
    fn with_side(inner: T, side: S) -> Self {
        Self {
            inner,
            side,
            held: BytesMut::new(),
            ready: 0,
            failure: None,
            head_timer: None,
            closing: Closing::Open,
        }
    }

    /// The stream below.
    pub fn get_ref(&self) -> &T {
        &self.inner
    }

    /// Ends the checking and gives the stream back for the new protocol after an upgrade, with the
    /// bytes that are held here in front. What hyper has read and not used goes in front of those.
    pub fn into_rewind(self) -> Rewind<T> {
        Rewind::new(self.inner, self.held.freeze())
    }
}

impl<T, S: Side> Guard<T, S> {
    /// Acts on what the tracker said about the bytes behind those it passed.
    fn note(&mut self, progress: Progress) {
        match progress.next {
            Next::More | Next::Undecided => {}
            Next::Refused(error) => {
                let instead = self.side.refused(error, &self.held[self.ready..]);
                self.held.truncate(self.ready);
                match instead {
                    Some(instead) => {
                        self.held.extend_from_slice(&instead);
                        self.ready = self.held.len();
                    }
                    None => self.failure = Some(error),
                }
            }
        }
        if progress.passed > 0 || self.held.len() == self.ready {
            self.head_timer = None;
        }
    }

    fn release(&mut self, buffer: &mut ReadBuf<'_>) {
        let length = self.ready.min(buffer.remaining());
        buffer.put_slice(&self.held[..length]);
        self.held.advance(length);
        self.ready -= length;
        if self.held.is_empty() {
            // An idle connection keeps no buffer.
            self.held = BytesMut::new();
        }
    }
}

impl<T: AsyncRead + Unpin, S: Side> Guard<T, S> {
    /// Reads into `buffer` and takes out of it again what may not be passed on yet.
    fn poll_direct(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<usize>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(context, buffer))?;
        let new = &buffer.filled()[before..];
        let read = new.len();
        if read > 0 {
            let progress = self.side.advance(new);
            if progress.passed < read {
                self.held.extend_from_slice(&new[progress.passed..]);
                buffer.set_filled(before + progress.passed);
            }
            self.note(progress);
        }
        Poll::Ready(Ok(read))
    }

    /// Reads behind what is held.
    fn poll_held(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let read = ready!(poll_read_buf(
            Pin::new(&mut self.inner),
            context,
            &mut self.held
        ))?;
        if read > 0 {
            self.check_held();
        }
        Poll::Ready(Ok(read))
    }

    fn check_held(&mut self) {
        let progress = self.side.advance(&self.held);
        self.ready = progress.passed;
        self.note(progress);
    }

    /// Parks a read that found nothing: until the next bytes, or until the head is late.
    fn poll_late(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.head_timer.is_none() && !self.held.is_empty() {
            self.head_timer = self
                .side
                .head_deadline()
                .map(|at| Box::pin(sleep_until(at)));
        }
        match &mut self.head_timer {
            None => Poll::Pending,
            Some(timer) => {
                ready!(timer.as_mut().poll(context));
                let error = self.side.time_out();
                self.note(Progress {
                    passed: 0,
                    next: Next::Refused(error),
                });
                Poll::Ready(())
            }
        }
    }

    /// Reads until the stream ends, an error or the end of [`LINGER`], and throws it away.
    fn poll_linger(&mut self, context: &mut Context<'_>) -> Poll<()> {
        loop {
            match &mut self.closing {
                Closing::Open => self.closing = Closing::Lingering(Box::pin(sleep(LINGER))),
                Closing::Done => return Poll::Ready(()),
                Closing::Lingering(timer) => {
                    let late = timer.as_mut().poll(context).is_ready();
                    let mut scratch = [0; DRAIN_BYTES];
                    let mut scratch = ReadBuf::new(&mut scratch);
                    let read = Pin::new(&mut self.inner).poll_read(context, &mut scratch);
                    let over = match read {
                        Poll::Pending if !late => return Poll::Pending,
                        Poll::Pending | Poll::Ready(Err(_)) => true,
                        Poll::Ready(Ok(())) => late || scratch.filled().is_empty(),
                    };
                    if over {
                        self.closing = Closing::Done;
                    }
                }
            }
        }
    }
}

impl<T: AsyncRead + Unpin, S: Side> AsyncRead for Guard<T, S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        loop {
            if this.ready > 0 {
                this.release(buffer);
                return Poll::Ready(Ok(()));
            }
            if let Some(error) = this.failure {
                return Poll::Ready(Err(error.into_io()));
            }
            let read = match this.side.gate(context) {
                Gate::Shut => return Poll::Pending,
                Gate::Recheck => {
                    this.check_held();
                    continue;
                }
                Gate::Open if this.held.is_empty() => Pin::new(&mut this.inner)
                    .poll_read(context, buffer)
                    .map_ok(|()| buffer.filled().len() - before),
                Gate::Open => {
                    this.ready = this.held.len();
                    continue;
                }
                // One read at most: it tells whether the peer is still there.
                Gate::Hold if !this.held.is_empty() => return Poll::Pending,
                Gate::Hold => poll_read_buf(Pin::new(&mut this.inner), context, &mut this.held),
                Gate::Check if this.held.is_empty() => this.poll_direct(context, buffer),
                Gate::Check => this.poll_held(context),
            };
            match read {
                Poll::Ready(Ok(0)) => {
                    this.side.ended(Ok(()));
                    return Poll::Ready(Ok(()));
                }
                Poll::Ready(Err(error)) => {
                    this.side.ended(Err(&error));
                    return Poll::Ready(Err(error));
                }
                Poll::Ready(Ok(_)) if buffer.filled().len() > before => {
                    return Poll::Ready(Ok(()));
                }
                Poll::Ready(Ok(_)) => {}
                Poll::Pending => ready!(this.poll_late(context)),
            }
        }
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin, S: Side> AsyncWrite for Guard<T, S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if let Closing::Open = this.closing {
            ready!(Pin::new(&mut this.inner).poll_shutdown(context))?;
        }
        if this.side.lingers() {
            ready!(this.poll_linger(context));
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests;
