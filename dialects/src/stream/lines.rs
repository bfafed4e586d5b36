//! One JSON document a line (NDJSON).

use std::ops::Range;

use memchr::memchr;

use super::{Cut, FrameKind, Scan};

#[derive(Debug, Default)]
pub(super) struct Scanner {
    /// How far the pending bytes were searched for the line's end.
    searched: usize,
}

impl Scan for Scanner {
    fn next(&mut self, pending: &[u8]) -> Option<Cut> {
        let Some(at) = memchr(b'\n', &pending[self.searched..]) else {
            self.searched = pending.len();
            return None;
        };
        let length = std::mem::take(&mut self.searched) + at + 1;
        let body = document(&pending[..length]);
        if body.is_empty() {
            return Some(Cut::unread(FrameKind::Filler, length));
        }
        Some(Cut {
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

/// Where a line's document is.
fn document(line: &[u8]) -> Range<usize> {
    let start = line.len() - line.trim_ascii_start().len();
    start..start + line.trim_ascii().len()
}
