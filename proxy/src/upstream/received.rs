//! Bodies to and from an upstream.
//!
//! [`SentBody`] wraps the agent's body and detects the request's end, where `response_timeout`
//! starts. [`Received`] is the upstream's body. Its end returns the connection to the pool, and a
//! break in it becomes an [`Abort`].

use std::fmt;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::io::DuplexStream;
use tokio_util::either::Either;

use super::error::break_of;
use super::http1::{Http1, Switched};
use super::pool::{OriginPool, Stream};
use crate::abort::Abort;
use crate::body::AgentBody;

/// An upstream's body.
///
/// Dropping it before its end closes the HTTP/1.1 connection, or resets the HTTP/2 stream.
pub(crate) struct Received(ReceivedFrom);

enum ReceivedFrom {
    /// A separate connection, returned to the pool at the end.
    Http1(Rc<OriginPool>, Http1),
    /// One stream of a shared connection.
    H2(
        Incoming,
        #[expect(dead_code, reason = "held for its drop")] Stream,
    ),
    /// After a 101: the connection in its new protocol.
    Switching(Http1),
    /// After a 101 without an upstream: a connection in memory.
    Switched(DuplexStream),
    /// A response that another connection carried.
    Carried(AgentBody),
    /// The body has ended.
    Over,
}

impl Received {
    /// The body of the response whose head `connection` has returned.
    pub(super) fn http1(endpoint: Rc<OriginPool>, connection: Http1) -> Self {
        let mut received = Self(ReceivedFrom::Http1(endpoint, connection));
        received.release_at_end();
        received
    }

    /// The body of a response on HTTP/2.
    pub(super) fn h2(body: Incoming, stream: Stream) -> Self {
        let mut received = Self(ReceivedFrom::H2(body, stream));
        received.release_at_end();
        received
    }

    /// The body of a response that another connection carried.
    pub(crate) fn carried(body: AgentBody) -> Self {
        Self(ReceivedFrom::Carried(body))
    }

    /// The empty body of a 101, with the connection in its new protocol.
    pub(super) fn switching(connection: Http1) -> Self {
        Self(ReceivedFrom::Switching(connection))
    }

    /// The empty body of a 101 without an upstream.
    pub(crate) fn switched(connection: DuplexStream) -> Self {
        Self(ReceivedFrom::Switched(connection))
    }

    /// The connection after a 101, in its new protocol; `None` for other statuses.
    pub(crate) fn into_switched(self) -> Option<Either<Switched, DuplexStream>> {
        match self.0 {
            ReceivedFrom::Switching(connection) => connection.link().switch().map(Either::Left),
            ReceivedFrom::Switched(connection) => Some(Either::Right(connection)),
            ReceivedFrom::Http1(..)
            | ReceivedFrom::H2(..)
            | ReceivedFrom::Carried(_)
            | ReceivedFrom::Over => None,
        }
    }

    fn release_at_end(&mut self) {
        if self.is_end_stream() {
            self.release();
        }
    }

    /// The response has ended and its connection is reusable.
    fn release(&mut self) {
        if let ReceivedFrom::Http1(endpoint, connection) =
            std::mem::replace(&mut self.0, ReceivedFrom::Over)
        {
            endpoint.keep(connection);
        }
    }
}

impl Body for Received {
    type Data = Bytes;
    type Error = Abort;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Abort>>> {
        let this = self.get_mut();
        if let ReceivedFrom::Carried(body) = &mut this.0 {
            return body.as_mut().poll_frame(cx);
        }
        let polled = match &mut this.0 {
            ReceivedFrom::Http1(_, connection) => ready!(connection.link().poll_frame(cx)),
            ReceivedFrom::H2(body, _) => ready!(Pin::new(body).poll_frame(cx))
                .map(|frame| frame.map_err(|error| break_of(&error))),
            ReceivedFrom::Switching(_)
            | ReceivedFrom::Switched(_)
            | ReceivedFrom::Carried(_)
            | ReceivedFrom::Over => None,
        };
        match polled {
            Some(Ok(frame)) => {
                // No further frame follows trailers.
                if frame.is_trailers() {
                    this.release();
                } else {
                    this.release_at_end();
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Some(Err(seen)) => {
                // Not released: a broken connection cannot be reused.
                this.0 = ReceivedFrom::Over;
                Poll::Ready(Some(Err(seen.in_answer())))
            }
            None => {
                this.release();
                Poll::Ready(None)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            ReceivedFrom::Http1(_, connection) => connection.link().is_over(),
            ReceivedFrom::H2(body, _) => body.is_end_stream(),
            ReceivedFrom::Carried(body) => body.is_end_stream(),
            ReceivedFrom::Switching(_) | ReceivedFrom::Switched(_) | ReceivedFrom::Over => true,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            ReceivedFrom::Http1(_, connection) => connection
                .link()
                .length()
                .map_or_else(SizeHint::new, SizeHint::with_exact),
            ReceivedFrom::H2(body, _) => body.size_hint(),
            ReceivedFrom::Carried(body) => body.size_hint(),
            ReceivedFrom::Switching(_) | ReceivedFrom::Switched(_) | ReceivedFrom::Over => {
                SizeHint::with_exact(0)
            }
        }
    }
}

impl fmt::Debug for Received {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Received")
            .field("over", &matches!(self.0, ReceivedFrom::Over))
            .finish_non_exhaustive()
    }
}
