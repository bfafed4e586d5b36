//! Response bodies: their common type, scripted bodies, buffered bodies, and delayed aborts.

pub(crate) mod agent;
pub(crate) mod buffer;
pub(crate) mod decoding;
pub(crate) mod scripted;
pub(crate) mod tapped;
pub(crate) mod trailers;
pub(crate) mod whole;

use std::pin::Pin;

use bytes::Bytes;
use http_body::Body;
use http_body_util::{BodyExt as _, Full};

use crate::abort::Abort;

/// A response body on its way to the agent.
///
/// It passes trailers and keeps a known length, so hyper frames the response as the head announces.
pub(crate) type AgentBody = Pin<Box<dyn Body<Data = Bytes, Error = Abort>>>;

/// An empty body.
pub(crate) fn empty() -> AgentBody {
    full(Bytes::new())
}

/// A body of these bytes.
pub(crate) fn full(bytes: impl Into<Bytes>) -> AgentBody {
    boxed(Full::new(bytes.into()).map_err(|never| match never {}))
}

/// Any other body.
pub(crate) fn boxed(body: impl Body<Data = Bytes, Error = Abort> + 'static) -> AgentBody {
    Box::pin(body)
}
