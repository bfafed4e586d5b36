//! One JSON document per line (NDJSON).

use std::ops::Range;

use memchr::memchr;

use super::{FrameCut, FrameKind, Scan};

#[derive(Debug, Default)]
pub(super) struct Scanner {
    /// Number of pending bytes that were searched for the end of the line.
    searched: usize,
}

impl Scan for Scanner {
    fn next(&mut self, pending: &[u8]) -> Option<FrameCut> {
        let Some(at) = memchr(b'\n', &pending[self.searched..]) else {
            self.searched = pending.len();
            return None;
        };
        let length = std::mem::take(&mut self.searched) + at + 1;
        let body = document(&pending[..length]);
        if body.is_empty() {
            return Some(FrameCut::unread(FrameKind::Filler, length));
        }
        Some(FrameCut {
            kind: FrameKind::Event,
            length,
            body,
        })
    }

    fn skip(&mut self, _length: usize) {
        self.searched = 0;
    }

    fn unfinished(&self, rest: &[u8]) -> Range<usize> {
        document(rest)
    }
}

/// The range of a line's document.
fn document(line: &[u8]) -> Range<usize> {
    let start = line.len() - line.trim_ascii_start().len();
    start..start + line.trim_ascii().len()
}
