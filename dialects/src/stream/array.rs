//! One JSON list whose items arrive one by one.
//!
//! A frame is an item and what stands before it: the list's bracket, or the comma. The closing
//! bracket is a frame of its own. A document that is no list is read as one item, so that an error
//! in place of the list is an event, too.

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
            text: Text::Outside,
            oversize: false,
        }
    }

    pub(super) fn push(&mut self, chunk: Bytes) -> Vec<Frame> {
        let mut frames = Vec::new();
        self.pending.push(chunk);
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
            frames.push(self.take(FrameKind::Filler));
        }
        if self.read > self.limit || (self.oversize && self.read > 0) {
            self.oversize = true;
            frames.push(self.take(FrameKind::Oversize));
        }
        frames
    }

    pub(super) fn finish(&mut self) -> Vec<Frame> {
        let rest = (!self.pending.is_empty()).then(|| self.take(FrameKind::Unfinished));
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
        let over = std::mem::take(&mut self.oversize) || self.read > self.limit;
        match (over, self.item) {
            (true, _) => self.take(FrameKind::Oversize),
            (false, Some(_)) => self.take(FrameKind::Event),
            (false, None) => self.take(FrameKind::Filler),
        }
    }

    fn take(&mut self, kind: FrameKind) -> Frame {
        let bytes = self.pending.take(self.read);
        self.read = 0;
        let item = self.item.take().unwrap_or(bytes.len());
        let data = match kind {
            FrameKind::Event => item..bytes.len(),
            FrameKind::Oversize | FrameKind::Unfinished | FrameKind::Filler => 0..0,
        };
        Frame(Layout::Item(Piece::new(bytes, kind, data)))
    }
}

/// A further item behind a comma, spaced like `item` if that has one.
pub(super) fn another(item: &Piece, data: &[u8]) -> Bytes {
    let before: &[u8] = match item.before() {
        before if before.trim_ascii_start().starts_with(b",") => before,
        _ => b"\n,\r\n",
    };
    Bytes::from([before, data].concat())
}

/// The first byte of a frame that is no white space.
pub(super) fn mark(frame: &[u8]) -> Option<u8> {
    frame.trim_ascii_start().first().copied()
}

/// The frame behind a bracket or a comma, whichever it needs.
pub(super) fn joined(frame: Bytes, began: bool) -> Bytes {
    let space = frame.len() - frame.trim_ascii_start().len();
    match (began, mark(&frame)) {
        (false, Some(b',')) => Bytes::from([b"[", frame[space + 1..].trim_ascii_start()].concat()),
        (true, Some(b'[')) => Bytes::from([b"\n,\r\n", &frame[space + 1..]].concat()),
        (false, Some(b']')) => Bytes::from([b"[", &frame[space..]].concat()),
        _ => frame,
    }
}
