//! One JSON list whose items arrive one by one.
//!
//! A frame is an item and what stands before it: the list's bracket, or the comma; with it goes the
//! white space behind the item that has come by then, so that a chunk that ends with its line leaves
//! nothing behind. The closing bracket is a frame of its own. A document that is no list is read as
//! one item, so that an error in place of the list is an event, too.

use bytes::Bytes;
use memchr::memchr2;

use super::pending::Pending;
use super::piece::Piece;
use super::{Frame, FrameKind, Layout};

/// Splits a list into items. Objects and lists are items; anything else passes unread.
#[derive(Debug)]
pub(super) struct Splitter {
    limit: usize,
    pending: Pending,
    /// How far `pending` was read.
    read: usize,
    /// Objects and lists that are open.
    depth: usize,
    /// The outermost list's share of `depth`.
    outer: usize,
    /// Where the item at hand begins.
    item: Option<usize>,
    /// The frame before ended with white space: what there is more of it stands for itself.
    spaced: bool,
    text: Text,
    /// The item at hand is over the limit and passes in pieces.
    oversize: bool,
}

/// Whether what is read stands in a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Text {
    Outside,
    Inside,
    /// Behind a backslash.
    Escaped,
}

impl Splitter {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            pending: Pending::new(),
            read: 0,
            depth: 0,
            outer: 0,
            item: None,
            spaced: false,
            text: Text::Outside,
            oversize: false,
        }
    }

    pub(super) fn push(&mut self, chunk: Bytes) -> Vec<Frame> {
        let mut frames = Vec::new();
        self.pending.push(chunk);
        frames.extend(self.further_space());
        loop {
            self.skip();
            let Some(&byte) = self.pending.get(self.read) else {
                break;
            };
            self.read += 1;
            if self.ends_frame(byte) {
                frames.push(self.complete());
            }
        }
        // Outside of everything there is nothing to wait for.
        if self.depth == 0 && self.read > 0 {
            frames.push(self.take(FrameKind::Filler, self.read));
        }
        if self.read > self.limit || (self.oversize && self.read > 0) {
            self.oversize = true;
            frames.push(self.take(FrameKind::Oversize, self.read));
        }
        frames
    }

    /// White space behind the white space that a frame ended with.
    fn further_space(&mut self) -> Option<Frame> {
        let space = space(&self.pending);
        if !self.spaced || self.read > 0 || space == 0 {
            return None;
        }
        self.read = space;
        Some(self.take(FrameKind::Filler, space))
    }

    pub(super) fn finish(&mut self) -> Vec<Frame> {
        let rest = (!self.pending.is_empty()).then(|| self.take(FrameKind::Unfinished, self.read));
        *self = Self::new(self.limit);
        Vec::from_iter(rest)
    }

    /// Reads on to the next byte that has a meaning.
    fn skip(&mut self) {
        let rest = &self.pending[self.read..];
        let meant = match self.text {
            Text::Inside => memchr2(b'"', b'\\', rest),
            Text::Escaped => Some(0),
            Text::Outside => rest
                .iter()
                .position(|byte| matches!(byte, b'"' | b'{' | b'}' | b'[' | b']')),
        };
        self.read += meant.unwrap_or(rest.len());
    }

    /// Reads a byte; tells whether a frame ends with it.
    fn ends_frame(&mut self, byte: u8) -> bool {
        match (self.text, byte) {
            (Text::Inside, b'\\') => self.text = Text::Escaped,
            (Text::Inside, b'"') => self.text = Text::Outside,
            (Text::Escaped, _) | (Text::Outside, b'"') => self.text = Text::Inside,
            (Text::Outside, b'[') if self.depth == 0 => {
                self.depth = 1;
                self.outer = 1;
            }
            (Text::Outside, b'{' | b'[') => {
                if self.depth == self.outer && self.item.is_none() {
                    self.item = Some(self.read - 1);
                }
                self.depth += 1;
            }
            (Text::Outside, b'}' | b']') => {
                self.depth = self.depth.saturating_sub(1);
                if self.depth == 0 {
                    self.outer = 0;
                }
                return self.depth == self.outer;
            }
            (Text::Inside | Text::Outside, _) => {}
        }
        false
    }

    /// The frame that is complete: an item, or the end of the list.
    fn complete(&mut self) -> Frame {
        let end = self.read;
        let over = std::mem::take(&mut self.oversize) || end > self.limit;
        self.read += space(&self.pending[end..]);
        match (over, self.item) {
            (true, _) => self.take(FrameKind::Oversize, end),
            (false, Some(_)) => self.take(FrameKind::Event, end),
            (false, None) => self.take(FrameKind::Filler, end),
        }
    }

    /// All that was read, as a frame; its item, if it has one, goes to `end`.
    fn take(&mut self, kind: FrameKind, end: usize) -> Frame {
        let bytes = self.pending.take(self.read);
        self.read = 0;
        self.spaced = bytes.last().is_some_and(u8::is_ascii_whitespace);
        let item = self.item.take().unwrap_or(end);
        let data = match kind {
            FrameKind::Event => item..end,
            FrameKind::Oversize | FrameKind::Unfinished | FrameKind::Filler => 0..0,
        };
        Frame(Layout::Item(Piece::new(bytes, kind, data)))
    }
}

/// How many bytes of white space `bytes` begin with.
fn space(bytes: &[u8]) -> usize {
    bytes.len() - bytes.trim_ascii_start().len()
}

/// A further item behind a comma, spaced like `item` if that has one.
pub(super) fn another(item: &Piece, data: &[u8]) -> Bytes {
    let comma = match item.before().trim_ascii_start() {
        before if before.starts_with(b",") => before,
        _ => b",\r\n",
    };
    // The line before ends here, unless it has already: `joined` looks.
    let line: &[u8] = if comma.contains(&b'\n') { b"\n" } else { b"" };
    Bytes::from([line, comma, data, item.after()].concat())
}

/// The first byte of a frame that is no white space.
pub(super) fn mark(frame: &[u8]) -> Option<u8> {
    frame.trim_ascii_start().first().copied()
}

/// What was emitted of a list, as far as it matters to what comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Emitted {
    /// Nothing but white space.
    Nothing,
    /// Something that ended in the middle of a line.
    Text,
    /// Something that ended with its line.
    Line,
}

impl Emitted {
    /// With `frame` behind it.
    pub(super) fn and(self, frame: &[u8]) -> Self {
        match (self, frame.last()) {
            (before, None) => before,
            (Self::Nothing, Some(_)) if frame.trim_ascii().is_empty() => Self::Nothing,
            (_, Some(b'\n')) => Self::Line,
            (_, Some(_)) => Self::Text,
        }
    }
}

/// The frame behind a bracket or a comma, whichever it needs, and behind one line's end.
pub(super) fn joined(frame: Bytes, emitted: Emitted) -> Bytes {
    let rest = &frame[space(&frame)..];
    let joined = match (emitted, rest.first()) {
        (Emitted::Nothing, Some(b',')) => [b"[", rest[1..].trim_ascii_start()].concat(),
        (Emitted::Nothing, Some(b']')) => [b"[", rest].concat(),
        (Emitted::Text, Some(b'[')) => [b"\n,\r\n", &rest[1..]].concat(),
        (Emitted::Line, Some(b'[')) => [b",\r\n", &rest[1..]].concat(),
        (Emitted::Line, Some(_)) if frame.starts_with(b"\n") => return frame.slice(1..),
        _ => return frame,
    };
    Bytes::from(joined)
}

/// What closes an open list.
pub(super) fn closing(emitted: Emitted) -> &'static [u8] {
    match emitted {
        Emitted::Nothing => b"[]\n",
        Emitted::Text => b"\n]\n",
        Emitted::Line => b"]\n",
    }
}
