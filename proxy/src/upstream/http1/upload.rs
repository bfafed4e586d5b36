//! Writes a request in HTTP/1.1 format: its head, then its body frame by frame.
//!
//! Small frames are copied after the head, so that one write sends them together. A large frame is
//! written without a copy. The next frame is polled once the kernel has all earlier ones.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use http::header::{EXPECT, HeaderMap};
use http::{Method, Request};
use http_body::{Body as _, Frame};
use tokio::io::AsyncWrite;
use tokio::time::Sleep;

use super::super::error::innermost;
use super::super::sent::SentBody;
use super::head::{UploadFraming, write_fields, write_head};
use crate::http1::framing::OriginalNames;

/// Time to wait for `100 Continue` before the body is sent anyway, as a client does (RFC 9110
/// §10.1.1). curl uses the same value.
const CONTINUE_PATIENCE: Duration = Duration::from_secs(1);

/// Frames up to this size are copied together, bytes.
const SMALL: usize = 4 * 1024;

/// From this many copied bytes on, they are written before more are added.
const GATHERED: usize = 16 * 1024;

/// A request that is being written.
pub(in crate::upstream) struct Upload {
    method: Method,
    /// Written next: the head, small frames, chunk framing.
    copied: BytesMut,
    /// Written afterwards: a large frame.
    large: Bytes,
    after: &'static [u8],
    /// `None` once all of it was taken.
    body: Option<SentBody>,
    framing: UploadFraming,
    hold: Hold,
    begun: bool,
}

/// Why a request could not be written.
#[derive(Debug)]
pub(in crate::upstream) enum WriteFailure {
    /// The agent's body broke off.
    Body(String),
    /// The connection broke off.
    Connection(io::Error),
}

/// Whether the body may be sent.
enum Hold {
    Free,
    /// The upstream must request it first.
    Waiting(Pin<Box<Sleep>>),
    /// The upstream has responded without requesting the body.
    Unwanted,
}

impl Upload {
    /// Prepares `request`, with the agent's original field names.
    pub(in crate::upstream) fn new(
        request: Request<SentBody>,
        original: &OriginalNames,
    ) -> Box<Self> {
        let (head, body) = request.into_parts();
        let framing = UploadFraming::of(&head.headers, &body);
        let mut copied = BytesMut::with_capacity(512);
        write_head(&mut copied, &head, original, framing);
        let mut upload = Box::new(Self {
            hold: Hold::Free,
            copied,
            large: Bytes::new(),
            after: b"",
            framing,
            begun: false,
            body: None,
            method: head.method,
        });
        if !body.is_end_stream() {
            upload.body = Some(body);
            if head.headers.contains_key(EXPECT) {
                upload.hold = Hold::Waiting(Box::pin(tokio::time::sleep(CONTINUE_PATIENCE)));
            }
        } else if framing == UploadFraming::Chunked {
            upload.copied.put_slice(b"0\r\n\r\n");
        }
        upload
    }

    /// The request's method.
    pub(super) fn method(&self) -> &Method {
        &self.method
    }

    /// Whether any byte of it was written.
    pub(super) fn has_begun(&self) -> bool {
        self.begun
    }

    /// Whether the body waits for `100 Continue`, or is not wanted.
    pub(super) fn is_held(&self) -> bool {
        !matches!(self.hold, Hold::Free)
    }

    /// `100 Continue` has arrived.
    pub(super) fn release(&mut self) {
        if let Hold::Waiting(_) = self.hold {
            self.hold = Hold::Free;
        }
    }

    /// The final response has arrived: an unrequested body is not sent.
    pub(super) fn answered(&mut self) {
        if let Hold::Waiting(_) = self.hold {
            self.hold = Hold::Unwanted;
        }
    }

    /// Writes as much as is available and `io` accepts; ready when all is written.
    pub(super) fn poll<IO: AsyncWrite + Unpin>(
        &mut self,
        cx: &mut Context<'_>,
        io: &mut IO,
    ) -> Poll<Result<(), WriteFailure>> {
        loop {
            let gathered = self.gather(cx).map_err(WriteFailure::Body);
            while self.has_bytes() {
                match self.poll_write(cx, io) {
                    Poll::Ready(Ok(written)) => self.advance(written),
                    // Bytes before a break are sent first, if possible without waiting.
                    _ if gathered.is_err() => break,
                    Poll::Ready(Err(error)) => {
                        return Poll::Ready(Err(WriteFailure::Connection(error)));
                    }
                    Poll::Pending => return Poll::Pending,
                }
            }
            if gathered? {
                continue;
            }
            let flushed = Pin::new(&mut *io).poll_flush(cx);
            if self.body.is_some() {
                if let Poll::Ready(flushed) = flushed {
                    flushed.map_err(WriteFailure::Connection)?;
                }
                return Poll::Pending;
            }
            return flushed.map_err(WriteFailure::Connection);
        }
    }

    /// Takes available frames of the body until a write is full. Returns whether more may be
    /// available immediately.
    fn gather(&mut self, cx: &mut Context<'_>) -> Result<bool, String> {
        while let Some(body) = &mut self.body {
            if self.copied.len() >= GATHERED || !self.large.is_empty() {
                return Ok(true);
            }
            match &mut self.hold {
                Hold::Free => {}
                Hold::Unwanted => return Ok(false),
                Hold::Waiting(patience) => match patience.as_mut().poll(cx) {
                    Poll::Ready(()) => self.hold = Hold::Free,
                    Poll::Pending => return Ok(false),
                },
            }
            match Pin::new(&mut *body).poll_frame(cx) {
                Poll::Pending => return Ok(false),
                Poll::Ready(None) => self.end(None)?,
                Poll::Ready(Some(Err(error))) => return Err(innermost(&*error)),
                Poll::Ready(Some(Ok(frame))) => {
                    let ends = body.is_end_stream();
                    self.take(frame)?;
                    if ends {
                        self.end(None)?;
                    }
                }
            }
        }
        Ok(false)
    }

    fn take(&mut self, frame: Frame<Bytes>) -> Result<(), String> {
        match frame.into_data() {
            Ok(data) if data.is_empty() => Ok(()),
            Ok(data) => self.take_data(data),
            Err(frame) => match frame.into_trailers() {
                Ok(trailers) => self.end(Some(&trailers)),
                Err(_unknown) => Ok(()),
            },
        }
    }

    fn take_data(&mut self, data: Bytes) -> Result<(), String> {
        let mut after: &[u8] = b"";
        match &mut self.framing {
            UploadFraming::Length(left) => {
                *left = left
                    .checked_sub(data.len() as u64)
                    .ok_or("the body is longer than its Content-Length")?;
            }
            UploadFraming::Chunked => {
                // A size of sixteen digits and a line end always fit.
                let mut size = [0; 18];
                let free = {
                    use std::io::Write as _;
                    let mut rest = &mut size[..];
                    let written = write!(rest, "{:X}\r\n", data.len());
                    debug_assert!(written.is_ok(), "18 bytes hold every size");
                    rest.len()
                };
                self.copied.put_slice(&size[..size.len() - free]);
                after = b"\r\n";
            }
        }
        if data.len() <= SMALL {
            self.copied.put_slice(&data);
            self.copied.put_slice(after);
        } else {
            self.large = data;
            self.after = after;
        }
        Ok(())
    }

    /// The body has ended, with or without trailers.
    fn end(&mut self, trailers: Option<&HeaderMap>) -> Result<(), String> {
        if self.body.take().is_none() {
            return Ok(());
        }
        match self.framing {
            UploadFraming::Length(0) => Ok(()),
            UploadFraming::Length(left) => Err(format!(
                "the body ended {left} bytes before its Content-Length"
            )),
            UploadFraming::Chunked => {
                if !self.large.is_empty() {
                    // The body announced its end, so there are no trailers.
                    self.after = b"\r\n0\r\n\r\n";
                    return Ok(());
                }
                self.copied.put_slice(b"0\r\n");
                if let Some(trailers) = trailers {
                    write_fields(&mut self.copied, trailers.iter());
                }
                self.copied.put_slice(b"\r\n");
                Ok(())
            }
        }
    }

    fn has_bytes(&self) -> bool {
        !self.copied.is_empty() || !self.large.is_empty() || !self.after.is_empty()
    }

    fn poll_write<IO: AsyncWrite + Unpin>(
        &mut self,
        cx: &mut Context<'_>,
        io: &mut IO,
    ) -> Poll<io::Result<usize>> {
        let io = Pin::new(io);
        let written = if self.large.is_empty() && self.after.is_empty() {
            ready!(io.poll_write(cx, &self.copied))
        } else {
            let slices = [&self.copied[..], &self.large[..], self.after].map(IoSlice::new);
            let begin = usize::from(self.copied.is_empty());
            ready!(io.poll_write_vectored(cx, &slices[begin..]))
        };
        Poll::Ready(match written {
            Ok(0) => Err(io::ErrorKind::WriteZero.into()),
            written => written,
        })
    }

    fn advance(&mut self, mut written: usize) {
        self.begun = true;
        let copied = written.min(self.copied.len());
        self.copied.advance(copied);
        written -= copied;
        let large = written.min(self.large.len());
        self.large.advance(large);
        self.after = &self.after[written - large..];
        if self.large.is_empty() {
            // Let go of the memory behind it.
            self.large = Bytes::new();
        }
    }
}
