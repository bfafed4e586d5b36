//! One JSON document a line (NDJSON).

use bytes::Bytes;
use memchr::memchr;

use super::pending::Pending;
use super::piece::Piece;
use super::{Frame, FrameKind, Layout};

/// Splits a stream into lines.
#[derive(Debug)]
pub(super) struct Splitter {
    limit: usize,
    pending: Pending,
    /// How far `pending` was searched for the line's end.
    searched: usize,
    /// The line at hand is over the limit and passes in pieces.
    oversize: bool,
}

impl Splitter {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            pending: Pending::new(),
            searched: 0,
            oversize: false,
        }
    }

    pub(super) fn push(&mut self, chunk: Bytes) -> Vec<Frame> {
        let mut frames = Vec::new();
        self.pending.push(chunk);
        while let Some(length) = memchr(b'\n', &self.pending[self.searched..]) {
            let end = self.searched + length + 1;
            let over = std::mem::take(&mut self.oversize) || end > self.limit;
            let kind = if over {
                FrameKind::Oversize
            } else {
                FrameKind::Event
            };
            frames.push(self.take(end, kind));
        }
        self.searched = self.pending.len();
        if self.searched > self.limit || (self.oversize && self.searched > 0) {
            self.oversize = true;
            frames.push(self.take(self.searched, FrameKind::Oversize));
        }
        frames
    }

    pub(super) fn finish(&mut self) -> Vec<Frame> {
        let rest = self.pending.len();
        let kind = if self.oversize {
            FrameKind::Oversize
        } else {
            FrameKind::Unfinished
        };
        let rest = (rest > 0).then(|| self.take(rest, kind));
        *self = Self::new(self.limit);
        Vec::from_iter(rest)
    }

    fn take(&mut self, end: usize, kind: FrameKind) -> Frame {
        let bytes = self.pending.take(end);
        self.searched = 0;
        let start = bytes.len() - bytes.trim_ascii_start().len();
        let data = start..start + bytes.trim_ascii().len();
        let piece = match kind {
            FrameKind::Oversize => Piece::new(bytes, kind, 0..0),
            _ if data.is_empty() => Piece::new(bytes, FrameKind::Filler, 0..0),
            _ => Piece::new(bytes, kind, data),
        };
        Frame(Layout::Line(piece))
    }
}

/// A further line, ended like `line`.
pub(super) fn another(line: &Piece, data: &[u8]) -> Bytes {
    let end: &[u8] = if line.after().ends_with(b"\r\n") {
        b"\r\n"
    } else {
        b"\n"
    };
    Bytes::from([data, end].concat())
}
