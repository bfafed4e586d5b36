//! Splits server-sent events without losing a byte.
//!
//! Lines may end in LF, CRLF or CR. Comments and unknown fields are kept. The stream may start with a byte order
//! mark (WHATWG HTML §9.2).

use std::borrow::Cow;
use std::ops::Range;

use memchr::{memchr, memchr2};

use super::{FrameCut, FrameKind, Scan};

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The position of the search in a line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum SsePlace {
    /// Before its first character.
    #[default]
    Start,
    /// At the start of a line, after a CR that ended the previous one: an LF that follows belongs to that line end.
    AfterReturn,
    /// Inside the line.
    Middle,
}

#[derive(Debug, Default)]
pub(super) struct Scanner {
    /// Number of pending bytes that were searched for line breaks.
    searched: usize,
    at: SsePlace,
    /// The previous line ended in CRLF.
    crlf: bool,
    /// The first frame is complete, so no byte order mark may follow.
    begun: bool,
    /// The bytes so far end with a frame.
    between_frames: bool,
}

impl Scan for Scanner {
    fn next(&mut self, pending: &[u8]) -> Option<FrameCut> {
        if self.at == SsePlace::AfterReturn {
            self.crlf = *pending.get(self.searched)? == b'\n';
            self.at = SsePlace::Start;
            if self.crlf && self.between_frames {
                self.between_frames = false;
                return Some(FrameCut::unread(FrameKind::Filler, 1));
            }
            self.searched += usize::from(self.crlf);
        }
        self.between_frames &= pending.is_empty();
        while !self.next_line(pending)? {}
        let length = std::mem::take(&mut self.searched);
        let body = self.lines(&pending[..length]);
        (self.begun, self.between_frames) = (true, true);
        Some(FrameCut {
            kind: FrameKind::Event,
            length,
            body,
        })
    }

    fn skip(&mut self, _length: usize) {
        self.searched = 0;
        (self.begun, self.between_frames) = (true, false);
    }

    fn unfinished(&self, rest: &[u8]) -> Range<usize> {
        self.lines(rest)
    }
}

impl Scanner {
    /// Searches for the end of the current line; returns whether the line is empty. `None`: it is incomplete.
    fn next_line(&mut self, pending: &[u8]) -> Option<bool> {
        let rest = &pending[self.searched..];
        let Some(length) = memchr2(b'\r', b'\n', rest) else {
            if !rest.is_empty() {
                self.at = SsePlace::Middle;
            }
            self.searched = pending.len();
            return None;
        };
        let is_empty = self.at != SsePlace::Middle && length == 0;
        let (line_break, at) = match &rest[length..] {
            [b'\r', b'\n', ..] => (2, SsePlace::Start),
            // If lines end in CRLF, the LF follows. Otherwise the event must not wait for a byte that is never
            // sent.
            [b'\r'] if is_empty && self.crlf => return None,
            [b'\r'] => (1, SsePlace::AfterReturn),
            _ => (1, SsePlace::Start),
        };
        self.crlf = line_break == 2;
        self.searched += length + line_break;
        self.at = at;
        Some(is_empty)
    }

    /// The range of a frame's lines; in the first frame it starts after the byte order mark.
    fn lines(&self, frame: &[u8]) -> Range<usize> {
        let marked = !self.begun && frame.starts_with(BYTE_ORDER_MARK);
        let start = if marked { BYTE_ORDER_MARK.len() } else { 0 };
        start..frame.len()
    }
}

/// One line of a frame.
struct Line<'a> {
    field: &'a [u8],
    /// The field name with colon and space.
    prefix: &'a [u8],
    value: &'a [u8],
    end: &'a [u8],
    raw: &'a [u8],
}

fn lines(mut rest: &[u8]) -> impl Iterator<Item = Line<'_>> {
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let length = memchr2(b'\r', b'\n', rest).unwrap_or(rest.len());
        let line_break = match &rest[length..] {
            [b'\r', b'\n', ..] => 2,
            behind => behind.len().min(1),
        };
        let (raw, behind) = rest.split_at(length + line_break);
        rest = behind;
        let (line, end) = raw.split_at(length);
        let colon = memchr(b':', line).unwrap_or(length);
        let value = match &line[colon..] {
            [b':', b' ', ..] => colon + 2,
            behind => colon + behind.len().min(1),
        };
        Some(Line {
            field: &line[..colon],
            prefix: &line[..value],
            value: &line[value..],
            end,
            raw,
        })
    })
}

/// The `data` lines of a frame, joined by LF. `None` when it has none.
pub(super) fn data(frame: &[u8]) -> Option<Cow<'_, [u8]>> {
    let lines = lines(frame).filter(|line| line.field == b"data");
    let values: Vec<&[u8]> = lines.map(|line| line.value).collect();
    match values.as_slice() {
        [] => None,
        [one] => Some(Cow::Borrowed(one)),
        several => Some(Cow::Owned(several.join(&b'\n'))),
    }
}

/// The event's name; `None` when it has none.
pub(super) fn name(frame: &[u8]) -> Option<&str> {
    let named = lines(frame).filter(|line| line.field == b"event").last()?;
    std::str::from_utf8(named.value).ok()
}

/// A frame with other data and optionally another name; all other lines stay. Line breaks in `data` start new
/// `data` lines.
pub(super) fn edited(frame: &[u8], name: Option<&str>, data: &[u8]) -> Vec<u8> {
    let line_break = match lines(frame).next() {
        Some(first) if !first.end.is_empty() => first.end,
        _ => b"\n",
    };
    let mut edited = Vec::with_capacity(frame.len() + data.len());
    if let Some(name) = name
        && !lines(frame).any(|line| line.field == b"event")
    {
        edited.extend([b"event: ", name.as_bytes(), line_break].concat());
    }
    let mut is_first = true;
    for line in lines(frame) {
        match (line.field, name) {
            (b"data", _) => {
                if std::mem::take(&mut is_first) {
                    let prefix: &[u8] = match line.prefix {
                        b"data" => b"data: ",
                        prefix => prefix,
                    };
                    for (number, piece) in data.split(|&byte| byte == b'\n').enumerate() {
                        let before: &[u8] = if number > 0 { line_break } else { b"" };
                        edited.extend([before, prefix, piece].concat());
                    }
                    edited.extend_from_slice(line.end);
                }
            }
            (b"event", Some(name)) => {
                edited.extend([b"event: ", name.as_bytes(), line.end].concat());
            }
            _ => edited.extend_from_slice(line.raw),
        }
    }
    edited
}
