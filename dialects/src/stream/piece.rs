//! A stretch of a stream whose data stand in it as they are.

use std::ops::Range;

use bytes::{Bytes, BytesMut};

use super::FrameKind;

/// Bytes, and where in them the data are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Piece {
    bytes: Bytes,
    kind: FrameKind,
    /// Empty: there are none.
    data: Range<usize>,
}

impl Piece {
    pub(super) fn new(bytes: Bytes, kind: FrameKind, data: Range<usize>) -> Self {
        Self { bytes, kind, data }
    }

    pub(super) fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    pub(super) fn into_bytes(self) -> Bytes {
        self.bytes
    }

    pub(super) fn kind(&self) -> FrameKind {
        self.kind
    }

    pub(super) fn data(&self) -> Option<&[u8]> {
        (!self.data.is_empty()).then(|| &self.bytes[self.data.clone()])
    }

    pub(super) fn with_data(&self, data: &[u8]) -> Bytes {
        if self.data.is_empty() {
            return self.bytes.clone();
        }
        let mut edited = BytesMut::with_capacity(self.bytes.len() + data.len());
        edited.extend_from_slice(self.before());
        edited.extend_from_slice(data);
        edited.extend_from_slice(self.after());
        edited.freeze()
    }

    /// What stands before the data.
    pub(super) fn before(&self) -> &[u8] {
        &self.bytes[..self.data.start]
    }

    /// What stands behind the data.
    pub(super) fn after(&self) -> &[u8] {
        &self.bytes[self.data.end..]
    }
}
