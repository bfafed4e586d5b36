//! Splits streams into events, for every framing that providers use.
//!
//! A [`Splitter`] takes chunks as they arrive and returns [`Frame`]s. The concatenated frames equal the
//! concatenated chunks, for every chunking. No byte is held back after its event is complete. If frames are removed
//! or added, the stream passes through a [`Joiner`], which keeps it well-formed.
//!
//! | framing | an event is | its name | what ends the stream |
//! |---|---|---|---|
//! | [`Framing::Sse`] | lines up to an empty one | the `event` field | nothing |
//! | [`Framing::Lines`] | a line | none | nothing |
//! | [`Framing::Array`] | an item of one JSON list | none | the closing bracket |
//! | [`Framing::AwsEvents`] | a binary message | `:event-type`, `:exception-type` | nothing |
//! | [`Framing::AwsChunks`] | a provider's event inside a binary message | `:exception-type` only | nothing |

mod array;
mod aws;
mod lines;
mod sse;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt::Debug;
use std::ops::Range;

use bytes::{Bytes, BytesMut};

pub use self::array::Joiner;

/// Longest event that is held back until it is complete, in bytes.
pub const DEFAULT_LIMIT: usize = 1 << 20;

/// The layout of events in a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Framing {
    /// Server-sent events (WHATWG HTML §9.2): `text/event-stream`.
    Sse,
    /// One JSON document a line: `application/x-ndjson`.
    Lines,
    /// One JSON list whose items arrive one by one: `application/json`, used by Gemini without `alt=sse`.
    Array,
    /// Binary messages with checksums: `application/vnd.amazon.eventstream`.
    AwsEvents,
    /// Binary messages around the events of another provider: payloads `{"bytes": "<base64>"}`, as in Bedrock's
    /// `InvokeModelWithResponseStream`. The data is the inner event.
    AwsChunks,
}

impl Framing {
    /// A synthetic event as the first frame of a stream.
    pub fn first_frame(self, event: &SyntheticEvent) -> Bytes {
        let (name, data) = (event.name.as_deref(), &event.data[..]);
        Bytes::from(match self {
            Self::Sse => sse::edited(b"data: \n\n", name, data),
            Self::Lines => [data, b"\n"].concat(),
            Self::Array => [b"[", data].concat(),
            Self::AwsEvents => aws::message(name, data, event.exception, false),
            Self::AwsChunks => aws::message(name, data, event.exception, true),
        })
    }
}

/// The kind of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameKind {
    /// A complete event or comment, with its terminator.
    Event,
    /// An event longer than the limit or a piece of one, or bytes that do not match the framing. It is not read.
    Oversize,
    /// The bytes after the last complete event at the end of a stream. Browsers drop them, some clients read them.
    Unfinished,
    /// Meaningless bytes between events: the LF of a CRLF whose CR ended the frame before, an empty line, a list's
    /// closing bracket.
    Filler,
}

/// A synthetic event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntheticEvent {
    /// Its name, if the framing has names. `None`: the name of the previous frame, or none.
    pub name: Option<Cow<'static, str>>,
    /// Its data: JSON, or a mark like `[DONE]`.
    pub data: Vec<u8>,
    /// Whether it is an exception, in framings that distinguish those from events (AWS).
    pub exception: bool,
}

impl SyntheticEvent {
    /// An event without its own name.
    pub fn data(data: impl Into<Vec<u8>>) -> Self {
        Self {
            name: None,
            data: data.into(),
            exception: false,
        }
    }

    /// An event with a name.
    pub fn event(name: impl Into<Cow<'static, str>>, data: impl Into<Vec<u8>>) -> Self {
        Self {
            name: Some(name.into()),
            ..Self::data(data)
        }
    }

    /// An exception. In framings without exceptions, it is an event with a name.
    pub fn exception(name: impl Into<Cow<'static, str>>, data: impl Into<Vec<u8>>) -> Self {
        Self {
            exception: true,
            ..Self::event(name, data)
        }
    }
}

/// A part of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    framing: Framing,
    kind: FrameKind,
    bytes: Bytes,
    /// The range of its lines, its JSON or its payload; empty if it is not read.
    body: Range<usize>,
}

impl Frame {
    /// The original bytes.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The original bytes.
    pub fn into_bytes(self) -> Bytes {
        self.bytes
    }

    /// The kind of the frame.
    pub fn kind(&self) -> FrameKind {
        self.kind
    }

    /// The event's data without the framing. `None` if it has none.
    pub fn data(&self) -> Option<Cow<'_, [u8]>> {
        let body = &self.bytes[self.body.clone()];
        match self.framing {
            _ if body.is_empty() => None,
            Framing::Sse => sse::data(body),
            Framing::Lines | Framing::Array => Some(Cow::Borrowed(body)),
            Framing::AwsEvents | Framing::AwsChunks => aws::data(body, self.is_chunk()),
        }
    }

    /// The event's name; `None` if it has none, or the framing has no names.
    pub fn name(&self) -> Option<&str> {
        match self.framing {
            Framing::Sse => sse::name(&self.bytes[self.body.clone()]),
            Framing::Lines | Framing::Array => None,
            Framing::AwsEvents | Framing::AwsChunks => {
                aws::name(self.head()).filter(|_| !self.is_chunk())
            }
        }
    }

    /// This frame with other data, and with another name if one is given and the framing has names. Everything else
    /// stays; lengths and checksums are updated. A frame without data is returned unchanged.
    pub fn with(&self, name: Option<&str>, data: &[u8]) -> Bytes {
        if self.data().is_none() {
            return self.bytes.clone();
        }
        let body = &self.bytes[self.body.clone()];
        let edited = match self.framing {
            Framing::Sse => sse::edited(body, name, data),
            Framing::Lines | Framing::Array => data.to_vec(),
            Framing::AwsEvents | Framing::AwsChunks => {
                return aws::edited(self.head(), body, name, data, self.is_chunk()).into();
            }
        };
        let behind = &self.bytes[self.body.end..];
        [self.head(), &edited, behind].concat().into()
    }

    /// A synthetic event after this one, with the same layout.
    pub fn following(&self, event: &SyntheticEvent) -> Bytes {
        let (name, data) = (event.name.as_deref(), &event.data[..]);
        if self.data().is_none() {
            return self.framing.first_frame(event);
        }
        match self.framing {
            // Only the first frame of a stream may have a byte order mark.
            Framing::Sse => self.with(name, data).slice(self.body.start..),
            Framing::Lines => self.framing.first_frame(event),
            Framing::Array => [b"\n,\r\n", data].concat().into(),
            Framing::AwsEvents | Framing::AwsChunks => {
                if event.exception || !aws::is_event(self.head()) {
                    self.framing.first_frame(event)
                } else {
                    self.with(name, data)
                }
            }
        }
    }

    /// The bytes before the body.
    fn head(&self) -> &[u8] {
        &self.bytes[..self.body.start]
    }

    /// Whether it contains another provider's event.
    fn is_chunk(&self) -> bool {
        self.framing == Framing::AwsChunks && aws::name(self.head()) == Some(aws::CHUNK)
    }
}

/// Finds the ends of frames in one framing.
trait Scan: Debug + Send {
    /// The next frame in the pending bytes; `None`: it is incomplete.
    fn next(&mut self, pending: &[u8]) -> Option<FrameCut>;

    /// All pending bytes (`length`) were forwarded, although their frame is incomplete.
    fn skip(&mut self, length: usize);

    /// The body of the bytes that remain when the stream ends.
    fn unfinished(&self, rest: &[u8]) -> Range<usize> {
        let _ = rest;
        0..0
    }
}

/// A frame at the start of the pending bytes.
struct FrameCut {
    kind: FrameKind,
    length: usize,
    body: Range<usize>,
}

impl FrameCut {
    /// A frame that is not read.
    fn unread(kind: FrameKind, length: usize) -> Self {
        Self {
            kind,
            length,
            body: 0..0,
        }
    }
}

/// Splits a stream of bytes into frames.
#[derive(Debug)]
pub struct Splitter {
    framing: Framing,
    limit: usize,
    /// Bytes that are not in a frame yet.
    pending: BytesMut,
    scan: Box<dyn Scan>,
    /// The current event is over the limit and is forwarded in pieces.
    oversize: bool,
}

impl Splitter {
    /// A splitter that holds back at most `limit` bytes of one event. Longer ones are returned in pieces, marked
    /// [`FrameKind::Oversize`].
    pub fn new(framing: Framing, limit: usize) -> Self {
        let scan: Box<dyn Scan> = match framing {
            Framing::Sse => Box::new(sse::Scanner::default()),
            Framing::Lines => Box::new(lines::Scanner::default()),
            Framing::Array => Box::new(array::Scanner::default()),
            Framing::AwsEvents | Framing::AwsChunks => Box::new(aws::Scanner::default()),
        };
        Self {
            framing,
            limit,
            pending: BytesMut::new(),
            scan,
            oversize: false,
        }
    }

    /// Adds the next bytes of the stream; returns the frames that they complete.
    pub fn push(&mut self, chunk: &[u8]) -> Vec<Frame> {
        self.pending.extend_from_slice(chunk);
        let mut frames = Vec::new();
        while let Some(mut cut) = self.scan.next(&self.pending) {
            if std::mem::take(&mut self.oversize) || cut.length > self.limit {
                cut = FrameCut::unread(FrameKind::Oversize, cut.length);
            }
            frames.push(self.take(cut));
        }
        let length = self.pending.len();
        if length > self.limit || (self.oversize && length > 0) {
            self.oversize = true;
            self.scan.skip(length);
            frames.push(self.take(FrameCut::unread(FrameKind::Oversize, length)));
        }
        frames
    }

    /// Ends the stream; returns the remaining bytes. The splitter can then be reused.
    pub fn finish(&mut self) -> Vec<Frame> {
        let length = self.pending.len();
        let cut = if self.oversize {
            FrameCut::unread(FrameKind::Oversize, length)
        } else {
            FrameCut {
                kind: FrameKind::Unfinished,
                length,
                body: self.scan.unfinished(&self.pending),
            }
        };
        let rest = (length > 0).then(|| self.take(cut));
        *self = Self::new(self.framing, self.limit);
        Vec::from_iter(rest)
    }

    fn take(&mut self, cut: FrameCut) -> Frame {
        Frame {
            framing: self.framing,
            kind: cut.kind,
            bytes: self.pending.split_to(cut.length).freeze(),
            body: cut.body,
        }
    }
}
