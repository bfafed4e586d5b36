//! Holding a whole body back, within bounds.
//!
//! Only a rule that needs a whole body does this. What is over the bounds goes on untouched: the
//! frames collected so far, then the rest as it comes.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};

/// How much may be held back: by one body, and by all of them.
#[derive(Debug, Clone)]
pub struct Inspect {
    limit: u64,
    memory: Arc<Memory>,
}

#[derive(Debug)]
struct Memory {
    total: u64,
    free: AtomicU64,
}

impl Inspect {
    /// At most `limit` bytes a body (`inspect_limit`) and `memory` bytes in all
    /// (`inspect_memory`). Clones share the memory.
    pub fn new(limit: u64, memory: u64) -> Self {
        let memory = Memory {
            total: memory,
            free: AtomicU64::new(memory),
        };
        Self {
            limit,
            memory: Arc::new(memory),
        }
    }

    /// The largest body that may be held back, bytes.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// A lease of no memory yet.
    pub fn lease(&self) -> Lease {
        Lease {
            memory: Arc::clone(&self.memory),
            taken: 0,
        }
    }
}

/// Memory taken for a body that is held back; given back when this is dropped.
#[derive(Debug)]
pub struct Lease {
    memory: Arc<Memory>,
    taken: u64,
}

impl Lease {
    /// Takes `bytes` more, if there are that many.
    pub fn grow(&mut self, bytes: u64) -> Result<(), TooMuch> {
        self.memory
            .free
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |free| {
                free.checked_sub(bytes)
            })
            .map_err(|_| TooMuch::Memory(self.memory.total))?;
        self.taken += bytes;
        Ok(())
    }

    /// Takes as much more as there is to be `bytes` in all.
    pub(crate) fn cover(&mut self, bytes: usize) -> Result<(), TooMuch> {
        self.grow((bytes as u64).saturating_sub(self.taken))
    }

    /// The same bytes; the memory is given back when the last handle to them is gone.
    pub(crate) fn hold(self, bytes: Bytes) -> Bytes {
        struct Held(
            Bytes,
            #[expect(dead_code, reason = "held for its drop")] Lease,
        );
        impl AsRef<[u8]> for Held {
            fn as_ref(&self) -> &[u8] {
                &self.0
            }
        }
        Bytes::from_owner(Held(bytes, self))
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.memory.free.fetch_add(self.taken, Ordering::Relaxed);
    }
}

/// Why a body cannot be held back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TooMuch {
    /// It is longer than `inspect_limit`, given here.
    Body(u64),
    /// It would take more than is left of `inspect_memory`, given here.
    Memory(u64),
}

impl fmt::Display for TooMuch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Body(limit) => {
                write!(f, "the body is longer than `inspect_limit` ({limit} bytes)")
            }
            Self::Memory(total) => write!(
                f,
                "other bodies that are held back take up `limits.inspect_memory` ({total} bytes)"
            ),
        }
    }
}

/// What came of [`collect`].
pub enum Collected<B: Body> {
    /// All of it.
    Whole(Whole<B>),
    /// It is over the bounds, or broke off before its end: it goes on as it is.
    Partly(Rejoined<B>, Unfinished),
}

/// Why a body was not collected to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unfinished {
    /// It is over the bounds.
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
pub struct Whole<B: Body> {
    /// The memory it takes.
    pub lease: Lease,
    held: Rejoined<B>,
}

impl<B: Body<Data = Bytes>> Whole<B> {
    /// Its bytes in one piece; no copy when it came in one.
    pub fn bytes(&self) -> Bytes {
        let data = || self.held.frames.iter().filter_map(Frame::data_ref);
        let mut pieces = data();
        match (pieces.next(), pieces.next()) {
            (None, _) => Bytes::new(),
            (Some(only), None) => only.clone(),
            _ => {
                let mut all = BytesMut::with_capacity(data().map(Bytes::len).sum());
                data().for_each(|piece| all.extend_from_slice(piece));
                all.freeze()
            }
        }
    }

    /// Its trailers, if it has some.
    pub fn trailers(&self) -> Option<&HeaderMap> {
        self.held.frames.iter().find_map(Frame::trailers_ref)
    }

    /// The body as it came, frame for frame.
    pub fn unchanged(mut self) -> Rejoined<B> {
        self.held.lease = Some(self.lease);
        self.held
    }

    /// Another body in its place, with its trailers.
    pub fn replaced_by(self, bytes: Bytes) -> Rejoined<B> {
        let mut rejoined = self.unchanged();
        rejoined.frames.retain(Frame::is_trailers);
        if !bytes.is_empty() {
            rejoined.frames.push_front(Frame::data(bytes));
        }
        rejoined
    }
}

/// Collects `body` to its end, or as much as the bounds allow.
pub async fn collect<B>(body: B, inspect: &Inspect) -> Collected<B>
where
    B: Body<Data = Bytes> + Unpin,
{
    let mut lease = inspect.lease();
    let mut held = Rejoined {
        frames: VecDeque::new(),
        failed: None,
        rest: Some(body),
        lease: None,
    };
    let declared_too_much =
        held.rest.as_ref().and_then(|body| body.size_hint().exact()) > Some(inspect.limit);
    let mut length = 0;
    let unfinished = loop {
        if declared_too_much {
            break Unfinished::TooMuch(TooMuch::Body(inspect.limit));
        }
        let Some(body) = &mut held.rest else {
            return Collected::Whole(Whole { lease, held });
        };
        match poll_fn(|cx| pin!(&mut *body).poll_frame(cx)).await {
            None => held.rest = None,
            Some(Err(error)) => {
                held.rest = None;
                held.failed = Some(error);
                break Unfinished::BrokeOff;
            }
            Some(Ok(frame)) => {
                let more = frame.data_ref().map_or(0, |data| data.len() as u64);
                held.frames.push_back(frame);
                length += more;
                if length > inspect.limit {
                    break Unfinished::TooMuch(TooMuch::Body(inspect.limit));
                }
                if let Err(why) = lease.grow(more) {
                    break Unfinished::TooMuch(why);
                }
            }
        }
    };
    held.lease = Some(lease);
    Collected::Partly(held, unfinished)
}

/// A body of which the beginning was read ahead: the same frames, then the rest.
pub struct Rejoined<B: Body> {
    frames: VecDeque<Frame<Bytes>>,
    failed: Option<B::Error>,
    rest: Option<B>,
    /// Given back when the last frame that was held has gone.
    lease: Option<Lease>,
}

impl<B: Body> Rejoined<B> {
    /// The bytes read ahead, in pieces.
    pub fn read_ahead(&self) -> impl Iterator<Item = &Bytes> {
        self.frames.iter().filter_map(Frame::data_ref)
    }
}

impl<B> Body for Rejoined<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Unpin,
{
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        if let Some(frame) = self.frames.pop_front() {
            return Poll::Ready(Some(Ok(frame)));
        }
        self.lease = None;
        if let Some(error) = self.failed.take() {
            return Poll::Ready(Some(Err(error)));
        }
        match &mut self.rest {
            Some(rest) => Pin::new(rest).poll_frame(cx),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.frames.is_empty()
            && self.failed.is_none()
            && self.rest.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let held: u64 = self.read_ahead().map(|data| data.len() as u64).sum();
        if self.failed.is_some() {
            let mut hint = SizeHint::new();
            hint.set_lower(held);
            return hint;
        }
        let rest = self
            .rest
            .as_ref()
            .map_or(SizeHint::with_exact(0), Body::size_hint);
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower() + held);
        if let Some(upper) = rest.upper() {
            hint.set_upper(upper + held);
        }
        hint
    }
}
