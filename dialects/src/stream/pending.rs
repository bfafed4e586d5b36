//! Bytes of a stream that are in no frame yet.

use std::ops::Deref;

use bytes::{Bytes, BytesMut};

/// Bytes that came and are in no frame yet.
///
/// Frames share the chunk that they came in; only what a later chunk completes is copied, once.
#[derive(Debug)]
pub(super) enum Pending {
    /// What is left of a chunk.
    Shared(Bytes),
    /// Put together from several chunks.
    Grown(BytesMut),
}

impl Pending {
    pub(super) fn new() -> Self {
        Self::Shared(Bytes::new())
    }

    pub(super) fn push(&mut self, chunk: Bytes) {
        match self {
            _ if chunk.is_empty() => {}
            _ if self.is_empty() => *self = Self::Shared(chunk),
            Self::Shared(held) => {
                let mut grown = BytesMut::with_capacity(held.len() + chunk.len());
                grown.extend_from_slice(held);
                grown.extend_from_slice(&chunk);
                *self = Self::Grown(grown);
            }
            Self::Grown(held) => held.extend_from_slice(&chunk),
        }
    }

    /// The first bytes, which are a frame. Panics when there are not so many.
    pub(super) fn take(&mut self, length: usize) -> Bytes {
        match self {
            Self::Shared(held) => held.split_to(length),
            Self::Grown(held) => held.split_to(length).freeze(),
        }
    }

    pub(super) fn take_all(&mut self) -> Bytes {
        self.take(self.len())
    }
}

impl Deref for Pending {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Shared(held) => held,
            Self::Grown(held) => held,
        }
    }
}
