//! A request's body on its way to the upstream.
//!
//! Normally it forwards the agent's body frame by frame. It may also hold bytes read ahead for a
//! rule.

use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

use super::log::ExchangeLog;
use crate::body::buffer::{Inspect, TooMuch};
use crate::headers;
use crate::upstream::BodyError;

/// The body that is sent upstream.
pub(crate) struct RequestBody {
    /// Bytes read ahead for a rule, not sent yet.
    ahead: Option<Bytes>,
    /// The part that the agent has not sent yet.
    rest: Option<Incoming>,
    trailers: Option<Box<HeaderMap>>,
    /// Set if the memory limit ended the read-ahead.
    full: Option<TooMuch>,
    log: Rc<ExchangeLog>,
}

impl RequestBody {
    /// The agent's body, forwarded as it arrives.
    pub(crate) fn passing(body: Incoming, log: Rc<ExchangeLog>) -> Self {
        Self {
            ahead: None,
            rest: Some(body),
            trailers: None,
            full: None,
            log,
        }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = &mut *self;
        if let Some(bytes) = this.ahead.take() {
            // Logged when it was read.
            return Poll::Ready(Some(Ok(Frame::data(bytes))));
        }
        if let Some(rest) = &mut this.rest {
            let polled = Pin::new(rest).poll_frame(cx);
            this.log.waits_for_agent(polled.is_pending());
            let frame = match ready!(polled) {
                Some(frame) => frame?,
                None => return Poll::Ready(None),
            };
            return Poll::Ready(Some(Ok(match frame.into_data() {
                Ok(bytes) => this.passed(bytes),
                Err(other) => {
                    let trailers = trailers(other).unwrap_or_default();
                    this.log.leaves_in_trailers(&trailers);
                    Frame::trailers(trailers)
                }
            })));
        }
        let trailers = this.trailers.take();
        if let Some(trailers) = &trailers {
            this.log.leaves_in_trailers(trailers);
        }
        Poll::Ready(trailers.map(|trailers| Ok(Frame::trailers(*trailers))))
    }

    fn is_end_stream(&self) -> bool {
        self.ahead.is_none()
            && self.trailers.is_none()
            && self.rest.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        if self.is_end_stream() {
            // HTTP/2 would announce an exact size as `content-length`, which the agent did not
            // send.
            return SizeHint::new();
        }
        let ahead = self.ahead.as_ref().map_or(0, |bytes| bytes.len() as u64);
        let rest = self
            .rest
            .as_ref()
            .map_or_else(|| SizeHint::with_exact(0), Body::size_hint);
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower() + ahead);
        if let Some(upper) = rest.upper() {
            hint.set_upper(upper + ahead);
        }
        hint
    }
}

impl RequestBody {
    /// Reads until the body is complete, exceeds `most` bytes, or `inspect` has no memory left.
    /// Returns the new bytes, which are not logged yet.
    pub(crate) async fn read_ahead(
        &mut self,
        most: usize,
        inspect: &Inspect,
    ) -> Result<Bytes, hyper::Error> {
        use http_body_util::BodyExt as _;
        let before = self.ahead.as_ref().map_or(0, Bytes::len);
        let Some(rest) = self.rest.as_ref().filter(|_| before <= most) else {
            return Ok(Bytes::new());
        };
        // Leases memory for the declared length first, so that a body without enough memory is not
        // read.
        let declared = usize::try_from(rest.size_hint().lower()).unwrap_or(usize::MAX);
        let room = before.saturating_add(declared).min(most);
        let mut lease = inspect.lease();
        let mut full = lease.cover(room).err();
        if full.is_none() {
            let mut bytes = BytesMut::with_capacity(room);
            bytes.extend_from_slice(&self.ahead.take().unwrap_or_default());
            while full.is_none()
                && bytes.len() <= most
                && let Some(rest) = &mut self.rest
            {
                match rest.frame().await {
                    None => self.rest = None,
                    Some(frame) => match frame?.into_data() {
                        Ok(data) => {
                            bytes.extend_from_slice(&data);
                            full = lease.cover(bytes.len()).err();
                        }
                        Err(frame) => self.trailers = trailers(frame).map(Box::new),
                    },
                }
            }
            self.ahead = (!bytes.is_empty()).then(|| lease.hold(bytes.freeze()));
        }
        self.full = full.filter(|_| self.rest.is_some());
        let read = self.ahead.as_ref().map(|bytes| bytes.slice(before..));
        Ok(read.unwrap_or_default())
    }

    /// The memory limit that ended the read-ahead, if one did.
    pub(crate) fn full(&self) -> Option<TooMuch> {
        self.full
    }

    /// The whole body after a read-ahead; `None` if the agent has more to send.
    pub(crate) fn read_whole(&self) -> Option<Bytes> {
        match self.rest {
            Some(_) => None,
            None => Some(self.ahead.clone().unwrap_or_default()),
        }
    }

    /// The bytes, if all of them were read ahead.
    pub(crate) fn whole(&self) -> Option<&Bytes> {
        self.ahead.as_ref().filter(|_| self.rest.is_none())
    }

    /// Replaces the bytes that were read ahead.
    pub(crate) fn replace(&mut self, bytes: Bytes) {
        self.ahead = (!bytes.is_empty()).then_some(bytes);
    }

    /// Counts bytes that are sent upstream.
    fn passed(&self, bytes: Bytes) -> Frame<Bytes> {
        self.log.sent_upstream(&bytes);
        Frame::data(bytes)
    }
}

/// The trailers of a frame without data, without those that may not be forwarded.
fn trailers(frame: Frame<Bytes>) -> Option<HeaderMap> {
    let mut trailers = frame.into_trailers().ok()?;
    headers::clean_trailers(&mut trailers);
    Some(trailers)
}
