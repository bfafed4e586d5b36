//! The one type of body that agents are given.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use super::flush::{AgentSide, Breaking};
use crate::broken::Broken;
use crate::upstream::Received;

/// A body on its way to an agent.
///
/// Trailers pass, and a length that is known stays known, so hyper frames the answer as the head
/// says.
pub struct AgentBody(Kind);

enum Kind {
    Full(Bytes),
    Passing(Breaking<Received>),
    Boxed(Boxed),
}

type Boxed = Pin<Box<dyn Body<Data = Bytes, Error = Broken>>>;

impl AgentBody {
    /// No body.
    pub fn empty() -> Self {
        Self::full(Bytes::new())
    }

    /// These bytes.
    pub fn full(bytes: impl Into<Bytes>) -> Self {
        Self(Kind::Full(bytes.into()))
    }

    /// An upstream's body as it comes, at no cost but a match. If it breaks off, it does so towards
    /// the agent in the same way.
    pub(crate) fn passing(body: Received, agent: AgentSide) -> Self {
        Self(Kind::Passing(Breaking::new(body, agent)))
    }

    /// Any other body.
    pub fn boxed(body: impl Body<Data = Bytes, Error = Broken> + 'static) -> Self {
        Self(Kind::Boxed(Box::pin(body)))
    }

    /// The bytes, when the body is in memory already.
    pub fn as_full(&self) -> Option<&Bytes> {
        match &self.0 {
            Kind::Full(bytes) => Some(bytes),
            Kind::Passing(_) | Kind::Boxed(_) => None,
        }
    }
}

impl From<Bytes> for AgentBody {
    fn from(bytes: Bytes) -> Self {
        Self::full(bytes)
    }
}

impl fmt::Debug for AgentBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Full(bytes) => write!(f, "AgentBody::Full({} bytes)", bytes.len()),
            Kind::Passing(_) => f.write_str("AgentBody::Passing"),
            Kind::Boxed(_) => f.write_str("AgentBody::Boxed"),
        }
    }
}

impl Body for AgentBody {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        match &mut self.0 {
            Kind::Full(bytes) if bytes.is_empty() => Poll::Ready(None),
            Kind::Full(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Kind::Passing(body) => Pin::new(body).poll_frame(cx),
            Kind::Boxed(body) => body.as_mut().poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Full(bytes) => bytes.is_empty(),
            Kind::Passing(body) => body.is_end_stream(),
            Kind::Boxed(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Kind::Passing(body) => body.size_hint(),
            Kind::Boxed(body) => body.size_hint(),
        }
    }
}
