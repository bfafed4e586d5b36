//! Streams of events, in every framing that providers use.
//!
//! A [`Splitter`] takes chunks as they arrive and returns [`Frame`]s. The frames' bytes put
//! together are the bytes of the chunks, for every chunking, and nothing is held back longer
//! than until its event is complete. A stream from which frames are removed, or to which some are
//! added, passes through a [`Joiner`], which keeps it well-formed.
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

/// Bytes of one event up to which it is held back until it is complete.
pub const DEFAULT_LIMIT: usize = 1 << 20;

/// How events are laid out in a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Framing {
    /// Server-sent events (WHATWG HTML §9.2): `text/event-stream`.
    Sse,
    /// One JSON document a line: `application/x-ndjson`.
    Lines,
    /// One JSON list whose items arrive one by one: `application/json`, as Gemini streams without
    /// `alt=sse`.
    Array,
    /// Binary messages with checksums: `application/vnd.amazon.eventstream`.
    AwsEvents,
    /// The same, around the events of another provider: payloads `{"bytes": "<base64>"}` as of
    /// Bedrock's `InvokeModelWithResponseStream`. Data are what is inside.
    AwsChunks,
}

impl Framing {
    /// A synthetic event as the first frame of a stream.
    pub fn first_frame(self, event: &Made) -> Bytes {
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

/// What a stretch of a stream is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameKind {
    /// A whole event (or comment), with what ends it.
    Event,
    /// An event longer than the limit, or a piece of one; or bytes that are not of the framing.
    /// Not read.
    Oversize,
    /// What is left behind the last whole event when the stream ends. Browsers drop it, some clients
    /// read it.
    Unfinished,
    /// Bytes between events without meaning: the LF of a CRLF whose CR ended the frame before, an
    /// empty line, a list's closing bracket.
    Filler,
}

/// An event that no provider sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Made {
    /// Its name, where the framing has names. `None`: the name of the frame before, or none.
    pub name: Option<Cow<'static, str>>,
    /// Its data; JSON but for marks like `[DONE]`.
    pub data: Vec<u8>,
    /// Whether it is an exception in framings that tell those from events (AWS).
    pub exception: bool,
}

impl Made {
    /// An event without a name of its own.
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

    /// An exception: an event with a name, where the framing does not tell them apart.
    pub fn exception(name: impl Into<Cow<'static, str>>, data: impl Into<Vec<u8>>) -> Self {
        Self {
            exception: true,
            ..Self::event(name, data)
        }
    }
}

/// A stretch of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    framing: Framing,
    kind: FrameKind,
    bytes: Bytes,
    /// Where its lines, its JSON or its payload are; empty if it is not read.
    body: Range<usize>,
}

impl Frame {
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

    /// The event's data, without anything that belongs to the framing. `None` when it has none.
    pub fn data(&self) -> Option<Cow<'_, [u8]>> {
        let body = &self.bytes[self.body.clone()];
        match self.framing {
            _ if body.is_empty() => None,
            Framing::Sse => sse::data(body),
            Framing::Lines | Framing::Array => Some(Cow::Borrowed(body)),
            Framing::AwsEvents | Framing::AwsChunks => aws::data(body, self.is_chunk()),
        }
    }

    /// The event's name; `None` when it has none, or the framing has no names.
    pub fn name(&self) -> Option<&str> {
        match self.framing {
            Framing::Sse => sse::name(&self.bytes[self.body.clone()]),
            Framing::Lines | Framing::Array => None,
            Framing::AwsEvents | Framing::AwsChunks => {
                aws::name(self.head()).filter(|_| !self.is_chunk())
            }
        }
    }

    /// This frame with other data and, where one is given and the framing has names, another name;
    /// everything else stays, lengths and checksums are made to fit. A frame without data stays as
    /// it is.
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

    /// A synthetic event behind this one, laid out like it.
    pub fn following(&self, event: &Made) -> Bytes {
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

    /// What is before the body.
    fn head(&self) -> &[u8] {
        &self.bytes[..self.body.start]
    }

    /// Whether another provider's event is inside.
    fn is_chunk(&self) -> bool {
        self.framing == Framing::AwsChunks && aws::name(self.head()) == Some(aws::CHUNK)
    }
}

/// Finds out where the frames of one framing end.
trait Scan: Debug + Send {
    /// The next frame of the bytes that are pending; `None`: it is not complete.
    fn next(&mut self, pending: &[u8]) -> Option<Cut>;

    /// All pending bytes, so many, were passed on, though their frame is not complete.
    fn skip(&mut self, length: usize);

    /// Where the body is of what is left when the stream ends.
    fn unfinished(&self, rest: &[u8]) -> Range<usize> {
        let _ = rest;
        0..0
    }
}

/// A frame at the beginning of the pending bytes.
struct Cut {
    kind: FrameKind,
    length: usize,
    body: Range<usize>,
}

impl Cut {
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
    /// Bytes that are in no frame yet.
    pending: BytesMut,
    scan: Box<dyn Scan>,
    /// The event at hand is over the limit and passes in pieces.
    oversize: bool,
}

impl Splitter {
    /// A splitter that holds at most `limit` bytes of one event back; longer ones pass in pieces,
    /// marked [`FrameKind::Oversize`].
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

    /// Takes the next bytes of the stream; returns what they complete.
    pub fn push(&mut self, chunk: &[u8]) -> Vec<Frame> {
        self.pending.extend_from_slice(chunk);
        let mut frames = Vec::new();
        while let Some(mut cut) = self.scan.next(&self.pending) {
            if std::mem::take(&mut self.oversize) || cut.length > self.limit {
                cut = Cut::unread(FrameKind::Oversize, cut.length);
            }
            frames.push(self.take(cut));
        }
        let length = self.pending.len();
        if length > self.limit || (self.oversize && length > 0) {
            self.oversize = true;
            self.scan.skip(length);
            frames.push(self.take(Cut::unread(FrameKind::Oversize, length)));
        }
        frames
    }

    /// The stream is over: what was held back. The splitter is then as new.
    pub fn finish(&mut self) -> Vec<Frame> {
        let length = self.pending.len();
        let cut = if self.oversize {
            Cut::unread(FrameKind::Oversize, length)
        } else {
            Cut {
                kind: FrameKind::Unfinished,
                length,
                body: self.scan.unfinished(&self.pending),
            }
        };
        let rest = (length > 0).then(|| self.take(cut));
        *self = Self::new(self.framing, self.limit);
        Vec::from_iter(rest)
    }

    fn take(&mut self, cut: Cut) -> Frame {
        Frame {
            framing: self.framing,
            kind: cut.kind,
            bytes: self.pending.split_to(cut.length).freeze(),
            body: cut.body,
        }
    }
}
