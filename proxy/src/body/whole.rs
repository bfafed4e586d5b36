//! Buffers whole bodies, within limits.
//!
//! Only rules that need a whole body use it. A body beyond the limits passes unchanged: first the
//! collected frames, then the rest as it arrives.

use std::fmt;

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body as _, SizeHint};
use http_body_util::BodyExt as _;

use super::buffer::{Inspect, Lease, TooMuch};
use super::scripted::Scripted;
use super::{AgentBody, boxed, empty};

/// Why a body was not collected completely.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unfinished {
    /// It exceeds the limits.
    TooMuch(TooMuch),
    /// It broke off.
    BrokeOff,
}

impl fmt::Display for Unfinished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooMuch(why) => why.fmt(f),
            Self::BrokeOff => f.write_str("the upstream broke off before the end of the body"),
        }
    }
}

/// A whole body in memory.
pub(crate) struct Whole {
    /// The memory it takes.
    pub(crate) lease: Lease,
    pieces: Vec<Bytes>,
    trailers: Option<HeaderMap>,
}

impl Whole {
    /// Its bytes in one piece; no copy when it came in one.
    pub(crate) fn bytes(&self) -> Bytes {
        match &*self.pieces {
            [only] => only.clone(),
            pieces => pieces.concat().into(),
        }
    }

    /// Its trailers, if it has some.
    pub(crate) fn trailers(&self) -> Option<&HeaderMap> {
        self.trailers.as_ref()
    }

    /// The unchanged body, piece by piece.
    pub(crate) fn unchanged(self) -> AgentBody {
        let length = self.pieces.iter().map(|piece| piece.len() as u64).sum();
        let has_trailers = self.trailers.is_some();
        if length == 0 && !has_trailers {
            return empty();
        }
        boxed(Scripted::new(
            SizeHint::with_exact(length),
            |out| async move {
                let mut pieces = self.pieces.into_iter().peekable();
                while let Some(piece) = pieces.next() {
                    let is_last = pieces.peek().is_none() && !has_trailers;
                    out.data(piece, is_last).await;
                }
                drop(self.lease);
                if let Some(trailers) = self.trailers {
                    out.trailers(trailers).await;
                }
                Ok(())
            },
        ))
    }

    /// Another body with the same trailers.
    pub(crate) fn replaced_by(mut self, bytes: Bytes) -> AgentBody {
        self.pieces = Vec::from_iter((!bytes.is_empty()).then_some(bytes));
        self.unchanged()
    }
}

/// Collects `body` to its end. If it exceeds the limits or breaks off, it is returned unchanged:
/// the collected pieces, then the rest.
pub(crate) async fn collect(
    mut body: AgentBody,
    inspect: &Inspect,
) -> Result<Whole, (AgentBody, Unfinished)> {
    let hint = body.size_hint();
    let too_long = Unfinished::TooMuch(TooMuch::Body(inspect.limit()));
    if hint.exact() > Some(inspect.limit()) {
        return Err((body, too_long));
    }
    let mut whole = Whole {
        lease: inspect.lease(),
        pieces: Vec::new(),
        trailers: None,
    };
    let mut length = 0;
    let (why, failed) = loop {
        match body.frame().await {
            None => return Ok(whole),
            Some(Err(broken)) => break (Unfinished::BrokeOff, Some(broken)),
            Some(Ok(frame)) => match frame.into_data() {
                Err(frame) => whole.trailers = frame.into_trailers().ok(),
                Ok(data) => {
                    let more = data.len() as u64;
                    length += more;
                    whole.pieces.push(data);
                    if length > inspect.limit() {
                        break (too_long, None);
                    }
                    if let Err(why) = whole.lease.grow(more) {
                        break (Unfinished::TooMuch(why), None);
                    }
                }
            },
        }
    };
    let rejoined = Scripted::new(hint, |out| async move {
        let mut pieces = whole.pieces.into_iter().peekable();
        while let Some(piece) = pieces.next() {
            let is_last = pieces.peek().is_none() && failed.is_none() && body.is_end_stream();
            out.data(piece, is_last).await;
        }
        drop(whole.lease);
        if let Some(broken) = failed {
            return Err(broken);
        }
        while let Some(frame) = body.frame().await {
            out.pass(frame?, &body).await;
        }
        Ok(())
    });
    Err((boxed(rejoined), why))
}
