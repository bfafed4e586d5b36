//! A stretch of a stream and the fields in it.

use std::borrow::Cow;
use std::ops::Range;

use bytes::{Bytes, BytesMut};
use memchr::{memchr, memchr2};

use super::FrameKind;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A stretch of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    bytes: Bytes,
    kind: FrameKind,
    /// Where its lines begin: after a byte order mark, if it is the first one and has one.
    begin: usize,
}

impl Frame {
    pub(in crate::stream) fn new(bytes: Bytes, kind: FrameKind, first: bool) -> Self {
        let marked = first && bytes.starts_with(BYTE_ORDER_MARK);
        Self {
            bytes,
            kind,
            begin: if marked { BYTE_ORDER_MARK.len() } else { 0 },
        }
    }

    /// The bytes as they came.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The bytes as they came.
    pub fn into_bytes(self) -> Bytes {
        self.bytes
    }

    /// What it is.
    pub fn kind(&self) -> FrameKind {
        self.kind
    }

    /// The event's data: its `data` lines joined by LF. `None` when it has none.
    pub fn data(&self) -> Option<Cow<'_, [u8]>> {
        let mut values = self.fields(b"data");
        let first = values.next()?;
        let Some(second) = values.next() else {
            return Some(Cow::Borrowed(first));
        };
        let mut joined = first.to_vec();
        for value in std::iter::once(second).chain(values) {
            joined.push(b'\n');
            joined.extend_from_slice(value);
        }
        Some(Cow::Owned(joined))
    }

    /// The event's name; `None` when it has none.
    pub fn event(&self) -> Option<&[u8]> {
        self.fields(b"event").last()
    }

    /// This frame with other data; every other line stays. New lines in `data` become lines of
    /// their own. A frame without data stays as it is.
    pub fn with_data(&self, data: &[u8]) -> Bytes {
        let mut lines = self
            .lines()
            .filter(|line| &self.bytes[line.name.clone()] == b"data");
        let Some(first) = lines.next() else {
            return self.bytes.clone();
        };
        let line_break = match &self.bytes[first.value.end..first.end] {
            b"" => b"\n",
            line_break => line_break,
        };
        let mut edited = BytesMut::with_capacity(self.bytes.len() + data.len());
        edited.extend_from_slice(&self.bytes[..first.value.start]);
        if first.name.end == first.value.start {
            edited.extend_from_slice(b": ");
        }
        for (index, line) in data.split(|&byte| byte == b'\n').enumerate() {
            if index > 0 {
                edited.extend_from_slice(line_break);
                edited.extend_from_slice(b"data: ");
            }
            edited.extend_from_slice(line);
        }
        let mut copied = first.value.end;
        for line in lines {
            edited.extend_from_slice(&self.bytes[copied..line.name.start]);
            copied = line.end;
        }
        edited.extend_from_slice(&self.bytes[copied..]);
        edited.freeze()
    }

    /// This frame with another name: its last `event` line says `name`, or a first line is added
    /// that does.
    pub fn with_name(&self, name: &str) -> Bytes {
        let named = |line: &Line| &self.bytes[line.name.clone()] == b"event";
        let mut edited = BytesMut::with_capacity(self.bytes.len() + name.len() + 8);
        if let Some(line) = self.lines().filter(named).last() {
            edited.extend_from_slice(&self.bytes[..line.name.end]);
            edited.extend_from_slice(b": ");
            edited.extend_from_slice(name.as_bytes());
            edited.extend_from_slice(&self.bytes[line.value.end..]);
        } else {
            let line_break = match self.lines().next() {
                Some(first) if first.value.end < first.end => {
                    &self.bytes[first.value.end..first.end]
                }
                _ => b"\n",
            };
            edited.extend_from_slice(&self.bytes[..self.begin]);
            edited.extend_from_slice(b"event: ");
            edited.extend_from_slice(name.as_bytes());
            edited.extend_from_slice(line_break);
            edited.extend_from_slice(&self.bytes[self.begin..]);
        }
        edited.freeze()
    }

    /// This frame with another name and other data. A frame without data stays as it is.
    pub fn with(&self, name: &str, data: &[u8]) -> Bytes {
        let edited = self.with_data(data);
        if self.data().is_none() {
            return edited;
        }
        let begin = self.begin;
        let kind = self.kind;
        Self {
            bytes: edited,
            kind,
            begin,
        }
        .with_name(name)
    }

    /// A further frame, laid out like this one, with other data: the same fields and line breaks,
    /// but no byte order mark, which only the first frame of a stream may have. Without a `name`
    /// it has this one's.
    pub fn another(&self, name: Option<&str>, data: &[u8]) -> Bytes {
        let bytes = self.with_data(data).slice(self.begin..);
        match name {
            None => bytes,
            Some(name) => Self::new(bytes, FrameKind::Event, false).with_name(name),
        }
    }

    fn fields<'a>(&'a self, name: &'static [u8]) -> impl Iterator<Item = &'a [u8]> {
        let lines = self
            .lines()
            .filter(move |line| &self.bytes[line.name.clone()] == name);
        lines.map(|line| &self.bytes[line.value])
    }

    fn lines(&self) -> Lines<'_> {
        match self.kind {
            FrameKind::Event | FrameKind::Unfinished => Lines {
                bytes: &self.bytes,
                at: self.begin,
            },
            FrameKind::Oversize | FrameKind::Filler => Lines { bytes: &[], at: 0 },
        }
    }
}

/// One line, as spans of its frame.
struct Line {
    /// The field's name; the line begins with it.
    name: Range<usize>,
    /// The field's value; empty behind the name when there is no colon.
    value: Range<usize>,
    /// Where the next line begins.
    end: usize,
}

struct Lines<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Iterator for Lines<'_> {
    type Item = Line;

    fn next(&mut self) -> Option<Line> {
        let start = self.at;
        let rest = &self.bytes[start..];
        if rest.is_empty() {
            return None;
        }
        let length = memchr2(b'\r', b'\n', rest).unwrap_or(rest.len());
        let line_break = if rest[length..].starts_with(b"\r\n") {
            2
        } else {
            1
        };
        let stop = start + length;
        self.at = (stop + line_break).min(self.bytes.len());
        let line = &rest[..length];
        let (name, value) = match memchr(b':', line) {
            None => (start..stop, stop..stop),
            Some(colon) => {
                let space = usize::from(line.get(colon + 1) == Some(&b' '));
                (start..start + colon, start + colon + 1 + space..stop)
            }
        };
        Some(Line {
            name,
            value,
            end: self.at,
        })
    }
}
