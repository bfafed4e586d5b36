//! Server-sent events, split without losing a byte.
//!
//! A [`Splitter`] is pushed chunks as they arrive and hands back [`Frame`]s; the frames' bytes put
//! together are the bytes that were pushed, for every chunking. Lines may end in LF, CRLF or CR,
//! comments and unknown fields pass, a byte order mark may come first (WHATWG HTML §9.2). Nothing
//! is held back longer than until its event is complete.

mod frame;
#[cfg(test)]
mod tests;

use bytes::Bytes;
pub use frame::Frame;
use memchr::memchr2;

pub use super::FrameKind;

pub use super::DEFAULT_LIMIT;
use super::pending::Pending;

/// Where in a line a byte stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    /// Before its first character.
    Start,
    /// Before its first character, and the chunk ends with the CR that ended the line before: an
    /// LF that comes next belongs to that.
    AfterReturn,
    /// Further on.
    Middle,
}

/// Splits a stream of bytes into frames.
#[derive(Debug)]
pub struct Splitter {
    limit: usize,
    /// The event at hand, as far as it has come.
    pending: Pending,
    /// How far `pending` was searched for line breaks.
    searched: usize,
    /// Where in a line `searched` stands.
    at: At,
    /// The line before ended in CRLF.
    crlf: bool,
    /// The event at hand is over the limit and passes in pieces.
    oversize: bool,
    /// No frame was handed back yet: a byte order mark may come.
    first: bool,
}

impl Default for Splitter {
    fn default() -> Self {
        Self::new(DEFAULT_LIMIT)
    }
}

impl Splitter {
    /// A splitter that holds at most `limit` bytes back; longer events pass in pieces, marked
    /// [`FrameKind::Oversize`].
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            pending: Pending::new(),
            searched: 0,
            at: At::Start,
            crlf: false,
            oversize: false,
            first: true,
        }
    }

    /// Takes the next bytes of the stream; returns what they complete.
    pub fn push<F: From<Frame>>(&mut self, chunk: Bytes) -> Vec<F> {
        let mut frames = Vec::new();
        let chunk = self.push_line_feed(chunk, &mut frames);
        self.pending.push(chunk);
        while let Some(line_is_empty) = self.next_line() {
            if line_is_empty {
                let over = self.oversize || self.searched > self.limit;
                let kind = if over {
                    FrameKind::Oversize
                } else {
                    FrameKind::Event
                };
                frames.push(F::from(self.take(kind)));
                self.oversize = false;
            }
        }
        if self.pending.len() > self.limit || (self.oversize && !self.pending.is_empty()) {
            self.oversize = true;
            frames.push(F::from(self.take(FrameKind::Oversize)));
        }
        frames
    }

    /// The stream is over: what was held back. The splitter is then as new.
    pub fn finish<F: From<Frame>>(&mut self) -> Vec<F> {
        self.searched = self.pending.len();
        let rest = (self.searched > 0).then(|| F::from(self.take(FrameKind::Unfinished)));
        *self = Self::new(self.limit);
        Vec::from_iter(rest)
    }

    /// Takes the second half of a CRLF that two chunks share; returns the rest of the chunk.
    fn push_line_feed<F: From<Frame>>(&mut self, mut chunk: Bytes, frames: &mut Vec<F>) -> Bytes {
        if self.at != At::AfterReturn || chunk.is_empty() {
            return chunk;
        }
        self.at = At::Start;
        self.crlf = chunk.starts_with(b"\n");
        if !self.crlf {
            return chunk;
        }
        let between_events = self.pending.is_empty();
        self.pending.push(chunk.split_to(1));
        self.searched += 1;
        if between_events {
            frames.push(F::from(self.take(FrameKind::Filler)));
        }
        chunk
    }

    /// Searches on to the end of the line at hand; tells whether the line was empty. `None`: it
    /// has not come yet.
    fn next_line(&mut self) -> Option<bool> {
        let rest = &self.pending[self.searched..];
        let Some(length) = memchr2(b'\r', b'\n', rest) else {
            if !rest.is_empty() {
                self.at = At::Middle;
            }
            self.searched = self.pending.len();
            return None;
        };
        let line_is_empty = self.at != At::Middle && length == 0;
        let (line_break, at) = match &rest[length..] {
            [b'\r', b'\n', ..] => (2, At::Start),
            // Where lines end in CRLF the LF is on its way. Where they do not, an event must not
            // wait for a byte that never comes.
            [b'\r'] if line_is_empty && self.crlf && !self.oversize => return None,
            [b'\r'] => (1, At::AfterReturn),
            _ => (1, At::Start),
        };
        self.crlf = line_break == 2;
        self.searched += length + line_break;
        self.at = at;
        Some(line_is_empty)
    }

    /// Hands out what was searched.
    fn take(&mut self, kind: FrameKind) -> Frame {
        let bytes = self.pending.take(self.searched);
        self.searched = 0;
        let first = std::mem::take(&mut self.first);
        Frame::new(bytes, kind, first)
    }
}
