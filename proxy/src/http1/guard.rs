//! Checks incoming requests before hyper parses them.
//!
//! A [`RequestGuard`] passes what its tracker accepts. Usually (whole heads per read) the bytes are
//! read directly into hyper's buffer and only inspected. The start of an incomplete head is held
//! back, so that hyper never sees part of an invalid head.
//!
//! A rejected *request head* cannot be answered immediately, because earlier requests may be in
//! progress. So hyper gets a substitute request (the sentinel). The service recognises it in its
//! turn ([`RequestState::take_rejection`]) and responds. Any other rejection fails the read, with
//! the [`FramingError`] inside.

mod state;

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};
use tokio_util::io::poll_read_buf;

use super::framing::{FramingProgress, NextStep, Requests};
use super::{FramingError, HeadLimits};
use crate::http1::Rewind;

pub(crate) use self::state::RequestState;

/// The agent's side of the proxy: a stream whose incoming HTTP/1.1 requests are checked.
#[derive(Debug)]
pub(crate) struct RequestGuard<T> {
    inner: T,
    tracker: Requests,
    state: Rc<RequestState>,
    /// Bytes that were read but not passed on: `ready` accepted bytes, then a partial head.
    held: BytesMut,
    ready: usize,
    head_timeout: Duration,
    /// Runs while a head is incomplete.
    head_timer: Option<Pin<Box<Sleep>>>,
}

impl<T> RequestGuard<T> {
    /// Checks the requests on `inner`.
    ///
    /// An incomplete head is rejected with 408 after `head_timeout`. It needs a runtime with a
    /// clock.
    pub(crate) fn new(inner: T, limits: HeadLimits, head_timeout: Duration) -> Self {
        Self {
            inner,
            tracker: Requests::new(limits),
            state: Rc::default(),
            held: BytesMut::new(),
            ready: 0,
            head_timeout,
            head_timer: None,
        }
    }

    /// The state shared with the service.
    pub(crate) fn state(&self) -> Rc<RequestState> {
        Rc::clone(&self.state)
    }

    /// Ends the checks and returns the stream, with the bytes held here in front.
    pub(crate) fn into_rewind(self) -> Rewind<T> {
        Rewind::new(self.inner, self.held.freeze())
    }

    /// Applies the tracker's result; bytes that it did not pass are held.
    fn note(&mut self, progress: FramingProgress) {
        self.state.passed(self.tracker.take_names());
        if let NextStep::Refused(error) = progress.next {
            let rest = self.held.split_off(self.ready);
            if self.tracker.is_head_refused() {
                let instead = self.state.reject_head(error, &rest);
                self.held.extend_from_slice(instead.as_bytes());
                self.ready = self.held.len();
            } else {
                self.state.reject_body(error);
            }
        }
        if progress.passed > 0 || self.held.len() == self.ready {
            self.head_timer = None;
        }
    }

    fn check_held(&mut self) {
        let progress = self.tracker.advance(&self.held);
        self.ready = progress.passed;
        self.note(progress);
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

    /// Registers a pending read: woken by the next bytes, or when the head is late.
    fn poll_late(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if !self.tracker.is_in_head() || self.held.is_empty() {
            return Poll::Pending;
        }
        let timer = self
            .head_timer
            .get_or_insert_with(|| Box::pin(sleep(self.head_timeout)));
        ready!(timer.as_mut().poll(context));
        self.tracker.refuse_head(FramingError::HeadTimeout);
        self.note(FramingProgress {
            passed: 0,
            next: NextStep::Refused(FramingError::HeadTimeout),
        });
        Poll::Ready(())
    }
}

impl<T: AsyncRead + Unpin> RequestGuard<T> {
    /// Reads into `buffer`, and removes what must not be passed on yet.
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
            let progress = self.tracker.advance(new);
            if progress.passed < read {
                self.held.extend_from_slice(&new[progress.passed..]);
                buffer.set_filled(before + progress.passed);
            }
            self.note(progress);
        }
        Poll::Ready(Ok(read))
    }

    /// Reads and appends to the held bytes.
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
}

impl<T: AsyncRead + Unpin> AsyncRead for RequestGuard<T> {
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
            if let Some(error) = this.state.body_error() {
                return Poll::Ready(Err(error.into_io()));
            }
            if this.tracker.is_refused() {
                return Poll::Pending;
            }
            let read = if this.tracker.is_undecided() {
                if let Some(granted) = this.state.decision(context) {
                    if granted {
                        this.tracker.upgraded();
                    } else {
                        this.tracker.not_upgraded();
                    }
                    this.check_held();
                    continue;
                }
                // At most one read, which shows whether the peer is still connected.
                if !this.held.is_empty() {
                    return Poll::Pending;
                }
                poll_read_buf(Pin::new(&mut this.inner), context, &mut this.held)
            } else if this.held.is_empty() {
                this.poll_direct(context, buffer)
            } else {
                this.poll_held(context)
            };
            match read {
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Ready(Ok(read)) if read == 0 || buffer.filled().len() > before => {
                    return Poll::Ready(Ok(()));
                }
                Poll::Ready(Ok(_)) => {}
                Poll::Pending => ready!(this.poll_late(context)),
            }
        }
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for RequestGuard<T> {
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

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests;
