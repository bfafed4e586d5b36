//! One JSON list whose items arrive one by one.
//!
//! A frame is an item with the bytes before it: the list's bracket or the comma. The closing bracket is a separate
//! frame. A document that is not a list is read as one item, so that an error in place of the list is an event too.

use bytes::Bytes;
use memchr::memchr2;

use super::{FrameCut, FrameKind, Framing, Scan};

/// Objects and lists are items; other bytes are skipped.
#[derive(Debug, Default)]
pub(super) struct Scanner {
    /// Number of pending bytes that were read.
    read: usize,
    /// Number of open objects and lists.
    depth: usize,
    /// The outermost list's share of `depth`.
    outer: usize,
    /// Start of the current item.
    item: Option<usize>,
    text: Text,
}

/// Whether the scanner is inside a string.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Text {
    #[default]
    Outside,
    Inside,
    /// After a backslash.
    Escaped,
}

impl Scan for Scanner {
    fn next(&mut self, pending: &[u8]) -> Option<FrameCut> {
        loop {
            self.pass_over(&pending[self.read..]);
            let Some(&byte) = pending.get(self.read) else {
                break;
            };
            self.read += 1;
            if self.ends_frame(byte) {
                let end = self.read;
                let item = self.item.take();
                self.read = 0;
                return Some(match item {
                    Some(item) => FrameCut {
                        kind: FrameKind::Event,
                        length: end,
                        body: item..end,
                    },
                    None => FrameCut::unread(FrameKind::Filler, end),
                });
            }
        }
        // Outside of all values, no byte needs to be held back.
        let nothing_open = self.depth == 0 && self.read > 0;
        nothing_open.then(|| FrameCut::unread(FrameKind::Filler, std::mem::take(&mut self.read)))
    }

    fn skip(&mut self, _length: usize) {
        (self.read, self.item) = (0, self.item.map(|_| 0));
    }
}

impl Scanner {
    /// Passes over bytes that change nothing.
    fn pass_over(&mut self, rest: &[u8]) {
        let next = match self.text {
            Text::Outside => rest
                .iter()
                .position(|byte| matches!(byte, b'"' | b'{' | b'}' | b'[' | b']')),
            Text::Inside => memchr2(b'"', b'\\', rest),
            Text::Escaped => Some(0),
        };
        self.read += next.unwrap_or(rest.len());
    }

    /// Reads a byte; returns whether it ends a frame.
    fn ends_frame(&mut self, byte: u8) -> bool {
        match (self.text, byte) {
            (Text::Inside, b'\\') => self.text = Text::Escaped,
            (Text::Inside, b'"') => self.text = Text::Outside,
            (Text::Escaped, _) | (Text::Outside, b'"') => self.text = Text::Inside,
            (Text::Outside, b'[') if self.depth == 0 => (self.depth, self.outer) = (1, 1),
            (Text::Outside, b'{' | b'[') => {
                if self.depth == self.outer {
                    self.item = Some(self.read - 1);
                }
                self.depth += 1;
            }
            (Text::Outside, b'}' | b']') => {
                self.depth = self.depth.saturating_sub(1);
                self.outer = self.outer.min(self.depth);
                return self.depth == self.outer;
            }
            (Text::Inside | Text::Outside, _) => {}
        }
        false
    }
}

/// Keeps a stream well-formed when frames are removed or added.
///
/// Only JSON lists need it. The first item follows the bracket, every other one follows a comma, and a list that
/// ends early must be closed.
#[derive(Debug)]
pub struct Joiner {
    framing: Framing,
    /// Whether anything other than white space was emitted.
    begun: bool,
    /// Whether the list is open.
    open: bool,
}

impl Joiner {
    /// For a new stream.
    pub fn new(framing: Framing) -> Self {
        Self {
            framing,
            begun: false,
            open: false,
        }
    }

    /// Whether the framing needs it; otherwise frames are returned unchanged.
    pub fn is_needed(&self) -> bool {
        self.framing == Framing::Array
    }

    /// The next frame, with the separator it needs after the emitted bytes.
    pub fn join(&mut self, frame: Bytes) -> Bytes {
        let rest = frame.trim_ascii_start();
        let Some(&first) = rest.first().filter(|_| self.is_needed()) else {
            return frame;
        };
        let begun = std::mem::replace(&mut self.begun, true);
        self.open = first != b']' && (self.open || matches!(first, b'[' | b','));
        match (begun, first) {
            (false, b',') => [b"[", rest[1..].trim_ascii_start()].concat().into(),
            (false, b']') => [b"[", rest].concat().into(),
            (true, b'[') => [b"\n,\r\n", &rest[1..]].concat().into(),
            _ => frame,
        }
    }

    /// The bytes that end a well-formed stream here; usually none.
    pub fn close(&mut self) -> Bytes {
        Bytes::from_static(match (self.is_needed(), self.begun, self.open) {
            (true, false, _) => b"[]\n",
            (true, true, true) => b"\n]\n",
            _ => b"",
        })
    }
}
