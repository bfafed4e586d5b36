//! The two directions of an HTTP/1.1 connection to an upstream, driven by polling.

use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};

use bytes::{Bytes, BytesMut};
use http::{Response, StatusCode};
use http_body::Frame;
use tokio::io::{AsyncRead as _, AsyncWrite as _, ReadBuf};
use tokio::task::JoinHandle;
use tokio_util::io::poll_read_buf;

use super::super::error::{FailureCause, alert_of};
use super::super::transport::Transport;
use super::upload::{Upload, WriteFailure};
use super::{NotSent, Switched};
use crate::http1::Rewind;
use crate::http1::answers::{Answers, BodyPart, ParsedHead};
use crate::http1::{CasingCache, HeadLimits};

/// Initial read size, bytes; doubled while the upstream fills it.
const LEAST_READ: usize = 8 * 1024;

/// Largest read size, bytes; an exchange holds at most this much of a response.
const GREATEST_READ: usize = 256 * 1024;

/// Most interim responses (1xx) to one request.
const MOST_INTERIM: u32 = 100;

/// A connection, and the state of both directions.
pub(in crate::upstream) struct Link {
    /// `None` once it has ended.
    transport: Option<Transport>,
    /// Bytes that were read but not yet consumed.
    buffer: BytesMut,
    read_size: usize,
    answers: Answers,
    /// Interim responses to the current request.
    interim: u32,
    upload: Option<Box<Upload>>,
    /// The task that sends the rest of a request while its response arrives.
    pub(in crate::upstream) uploading: Option<JoinHandle<()>>,
    /// Woken when that task ends or the response's body can be read.
    reader: Option<Waker>,
    /// Why writing is no longer possible.
    unwritable: Option<FailureCause>,
}

impl Link {
    pub(in crate::upstream) fn new(
        transport: Transport,
        limits: HeadLimits,
        casings: Rc<CasingCache>,
    ) -> Self {
        Self {
            transport: Some(transport),
            buffer: BytesMut::new(),
            read_size: LEAST_READ,
            answers: Answers::new(limits, casings),
            interim: 0,
            upload: None,
            uploading: None,
            reader: None,
            unwritable: None,
        }
    }

    /// Starts an exchange.
    pub(in crate::upstream) fn begin(&mut self, upload: Box<Upload>) {
        self.answers.expect(upload.method());
        self.upload = Some(upload);
        self.interim = 0;
    }

    /// Sends the request and waits for its response's head.
    pub(in crate::upstream) fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Response<()>, NotSent>> {
        loop {
            match self.poll_upload(cx) {
                Poll::Ready(Err(WriteFailure::Body(why))) => {
                    self.close();
                    return Poll::Ready(Err(FailureCause::RequestBody(why).into()));
                }
                // The response may have arrived before the error.
                Poll::Ready(Err(WriteFailure::Connection(error))) => self.cannot_write(&error),
                Poll::Ready(Ok(())) | Poll::Pending => {}
            }
            match self.answers.head(&mut self.buffer) {
                Ok(Some(ParsedHead::Interim(status))) => {
                    if status == StatusCode::CONTINUE
                        && let Some(upload) = &mut self.upload
                    {
                        upload.release();
                    }
                    self.interim += 1;
                    if self.interim <= MOST_INTERIM {
                        continue;
                    }
                    self.close();
                    let why =
                        format!("more than {MOST_INTERIM} interim answers (1xx) came before it");
                    return Poll::Ready(Err(FailureCause::Framing(why).into()));
                }
                Ok(Some(ParsedHead::Final(response))) => {
                    if let Some(upload) = &mut self.upload {
                        upload.answered();
                    }
                    return Poll::Ready(Ok(response));
                }
                Ok(None) => {}
                Err(error) => {
                    self.close();
                    return Poll::Ready(Err(FailureCause::Framing(error.to_string()).into()));
                }
            }
            if let Err(seen) = ready!(self.poll_fill(cx)) {
                self.close();
                let unsent = self.upload.take().filter(|upload| !upload.has_begun());
                return Poll::Ready(Err(NotSent {
                    cause: seen,
                    unsent,
                }));
            }
        }
    }

    /// The next frame of the response's body.
    pub(in crate::upstream) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, FailureCause>>> {
        loop {
            match self.answers.body(&mut self.buffer) {
                Ok(Some(BodyPart::Data(bytes))) => {
                    return Poll::Ready(Some(Ok(Frame::data(bytes))));
                }
                Ok(Some(BodyPart::Trailers(fields))) => {
                    return Poll::Ready(Some(Ok(Frame::trailers(fields))));
                }
                Ok(Some(BodyPart::End)) => return Poll::Ready(None),
                Ok(None) => {}
                Err(error) => return self.broke(FailureCause::Framing(error.to_string())),
            }
            if self.uploading.is_some() {
                self.reader = Some(cx.waker().clone());
            }
            if let Err(seen) = ready!(self.poll_fill(cx)) {
                if matches!(seen, FailureCause::Closed) && self.answers.close() {
                    self.close();
                    return Poll::Ready(None);
                }
                return self.broke(seen);
            }
        }
    }

    /// Sends the rest of the request; ready when all is sent.
    pub(in crate::upstream) fn poll_upload(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), WriteFailure>> {
        let (Some(upload), Some(transport)) = (&mut self.upload, &mut self.transport) else {
            return Poll::Ready(Ok(()));
        };
        if self.unwritable.is_some() {
            return Poll::Ready(Ok(()));
        }
        ready!(upload.poll(cx, transport))?;
        self.upload = None;
        Poll::Ready(Ok(()))
    }

    /// The same in a separate task; ready when it has nothing left to do.
    pub(in crate::upstream) fn poll_upload_on(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match ready!(self.poll_upload(cx)) {
            Ok(()) => {}
            Err(WriteFailure::Connection(error)) => self.cannot_write(&error),
            Err(WriteFailure::Body(_)) => {
                // The request is incomplete, so its response must break off too.
                self.close();
                if let Some(reader) = self.reader.take() {
                    reader.wake();
                }
            }
        }
        Poll::Ready(())
    }

    /// Whether part of the request remains to be sent, and may be.
    pub(in crate::upstream) fn sends_on(&self) -> bool {
        let upload = self.upload.as_ref();
        self.unwritable.is_none() && upload.is_some_and(|upload| !upload.is_held())
    }

    /// Resolves when the connection is ready for a request (true) or has ended (false).
    pub(in crate::upstream) fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        if !self.is_closed() {
            match self.poll_upload(cx) {
                Poll::Ready(Ok(())) => return Poll::Ready(self.is_ready()),
                Poll::Ready(Err(_)) => self.close(),
                Poll::Pending => {
                    self.poll_watch(cx);
                    if !self.is_closed() {
                        return Poll::Pending;
                    }
                }
            }
        }
        Poll::Ready(false)
    }

    /// Lets an idle connection detect that it was closed, without a wake-up.
    pub(in crate::upstream) fn look(&mut self) {
        self.poll_watch(&mut Context::from_waker(Waker::noop()));
    }

    /// Closes the connection if unrequested bytes or the end arrive.
    fn poll_watch(&mut self, cx: &mut Context<'_>) {
        let Some(transport) = &mut self.transport else {
            return;
        };
        let mut byte = [0];
        let read = Pin::new(transport).poll_read(cx, &mut ReadBuf::new(&mut byte));
        if read.is_ready() {
            self.close();
        }
    }

    /// True if the next request can be written immediately.
    pub(in crate::upstream) fn is_ready(&self) -> bool {
        self.transport.is_some()
            && self.answers.is_over()
            && self.answers.may_go_on()
            && self.buffer.is_empty()
            && self.upload.is_none()
    }

    /// True if the connection has ended, or will end with this exchange.
    pub(in crate::upstream) fn is_closed(&self) -> bool {
        self.transport.is_none()
            || !self.answers.may_go_on()
            || self.unwritable.is_some()
            || !self.buffer.is_empty()
            || self.upload.as_ref().is_some_and(|upload| upload.is_held())
    }

    /// Whether the whole response was returned.
    pub(in crate::upstream) fn is_over(&self) -> bool {
        self.answers.is_over()
    }

    /// Remaining bytes of the response's body, if known.
    pub(in crate::upstream) fn length(&self) -> Option<u64> {
        self.answers.length()
    }

    /// An idle connection keeps no buffer.
    pub(in crate::upstream) fn rest(&mut self) {
        self.buffer = BytesMut::new();
        self.read_size = LEAST_READ;
        self.reader = None;
    }

    /// The connection in its new protocol, after a 101.
    pub(in crate::upstream) fn switch(&mut self) -> Option<Switched> {
        self.upload = None;
        let held = self.buffer.split().freeze();
        let transport = self.transport.take()?;
        Some(Rewind::new(transport, held))
    }

    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), FailureCause>> {
        let Some(transport) = &mut self.transport else {
            return Poll::Ready(Err(FailureCause::Closed));
        };
        if self.buffer.capacity() - self.buffer.len() < self.read_size / 2 {
            self.buffer.reserve(self.read_size);
        }
        let room = self.buffer.capacity() - self.buffer.len();
        match ready!(poll_read_buf(Pin::new(transport), cx, &mut self.buffer)) {
            Ok(0) => Poll::Ready(Err(self.unwritable.take().unwrap_or(FailureCause::Closed))),
            Ok(read) => {
                if read == room {
                    self.read_size = (2 * self.read_size).min(GREATEST_READ);
                }
                Poll::Ready(Ok(()))
            }
            Err(error) => Poll::Ready(Err(break_of(&error))),
        }
    }

    fn broke(&mut self, seen: FailureCause) -> Poll<Option<Result<Frame<Bytes>, FailureCause>>> {
        self.close();
        Poll::Ready(Some(Err(seen)))
    }

    /// Writing is not retried; bytes that can be read still count.
    fn cannot_write(&mut self, error: &io::Error) {
        self.unwritable = Some(break_of(error));
    }

    fn close(&mut self) {
        let Some(mut transport) = self.transport.take() else {
            return;
        };
        if transport.has_farewell() {
            // One immediate attempt: a peer that no longer reads must not delay the close.
            let mut cx = Context::from_waker(Waker::noop());
            let _sent = Pin::new(&mut transport).poll_shutdown(&mut cx);
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        if let Some(uploading) = self.uploading.take() {
            uploading.abort();
        }
        self.close();
    }
}

/// How an upstream broke off, according to a socket error. A broken pipe is an RST after a FIN.
fn break_of(error: &io::Error) -> FailureCause {
    if let Some(why) = alert_of(error) {
        return FailureCause::TlsHandshake(why);
    }
    match error.kind() {
        io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted => FailureCause::Reset,
        _ => FailureCause::Closed,
    }
}
