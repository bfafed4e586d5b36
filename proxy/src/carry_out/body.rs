//! The one type of body that agents are given.

use std::pin::Pin;

use bytes::Bytes;
use http_body::Body;
use http_body_util::{BodyExt as _, Full};

use crate::broken::Broken;

/// A body on its way to an agent.
///
/// Trailers pass, and a length that is known stays known, so hyper frames the answer as the head
/// says.
pub(crate) type AgentBody = Pin<Box<dyn Body<Data = Bytes, Error = Broken>>>;

/// No body.
pub(crate) fn empty() -> AgentBody {
    full(Bytes::new())
}

/// These bytes.
pub(crate) fn full(bytes: impl Into<Bytes>) -> AgentBody {
    boxed(Full::new(bytes.into()).map_err(|never| match never {}))
}

/// Any other body.
pub(crate) fn boxed(body: impl Body<Data = Bytes, Error = Broken> + 'static) -> AgentBody {
    Box::pin(body)
}
