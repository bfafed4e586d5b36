//! Streams of events, in every way in which providers lay them out.
//!
//! ```text
//! chunks ─▶ Splitter ─▶ Frame ─┬─▶ Frame::name, Frame::data ─▶ what a dialect reads
//!                              ├─▶ Frame::bytes ──────────────▶ the bytes as they came
//!                              ├─▶ Frame::with ───────────────▶ the frame with other data
//!                              └─▶ Template::frame(Made) ─────▶ a further frame, made up
//! ```
//!
//! A [`Splitter`] is pushed chunks as they arrive and hands back [`Frame`]s. The frames' bytes put
//! together are the bytes that were pushed, for every chunking, and nothing is held back longer
//! than until its event is complete. Whoever leaves frames out or adds some passes what is left
//! through a [`Joiner`], which keeps the whole well-formed.
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
mod pending;
mod piece;
pub mod sse;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use bytes::Bytes;

use self::piece::Piece;

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

/// What a stretch of a stream is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameKind {
    /// A whole event (or comment), with what ends it.
    Event,
    /// An event longer than the limit, or a piece of one; or bytes that are not of the framing.
    /// Not read.
    Oversize,
    /// What stands after the last whole event when the stream ends. Browsers drop it, some clients
    /// read it.
    Unfinished,
    /// Bytes between events that say nothing: the LF of a CRLF whose CR ended the frame before, an
    /// empty line, a list's closing bracket.
    Filler,
}

/// A stretch of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame(Layout);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Layout {
    Sse(sse::Frame),
    Line(Piece),
    Item(Piece),
    Aws(aws::Message),
}

/// An event that no provider sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Made {
    /// Its name, where the framing has names. `None`: the template's name, or none.
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
            data: data.into(),
            exception: false,
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

/// What a made-up frame is made after.
#[derive(Debug, Clone, Copy)]
pub enum Template<'a> {
    /// A frame of the same stream: its further fields and line breaks are carried over.
    Like(&'a Frame),
    /// Nothing: the stream has none yet.
    Fresh(Framing),
}

impl Template<'_> {
    /// `event` as a frame.
    pub fn frame(&self, event: &Made) -> Bytes {
        let name = event.name.as_deref();
        match self {
            Self::Like(frame) => match &frame.0 {
                Layout::Sse(frame) => frame.another(name, &event.data),
                Layout::Line(line) => lines::another(line, &event.data),
                Layout::Item(item) => array::another(item, &event.data),
                Layout::Aws(message) => message.another(name, &event.data, event.exception),
            },
            Self::Fresh(framing) => match framing {
                Framing::Sse => {
                    let frame =
                        sse::Frame::new(Bytes::from_static(b"data: \n\n"), FrameKind::Event, false);
                    frame.another(name, &event.data)
                }
                Framing::Lines => Bytes::from([&event.data[..], b"\n"].concat()),
                Framing::Array => Bytes::from([b"[", &event.data[..]].concat()),
                Framing::AwsEvents => aws::fresh(name, &event.data, event.exception, false),
                Framing::AwsChunks => aws::fresh(name, &event.data, event.exception, true),
            },
        }
    }
}

impl<'a> From<&'a Frame> for Template<'a> {
    fn from(frame: &'a Frame) -> Self {
        Self::Like(frame)
    }
}

impl Frame {
    /// The bytes as they came.
    pub fn bytes(&self) -> &Bytes {
        match &self.0 {
            Layout::Sse(frame) => frame.bytes(),
            Layout::Line(piece) | Layout::Item(piece) => piece.bytes(),
            Layout::Aws(message) => message.bytes(),
        }
    }

    /// The bytes as they came.
    pub fn into_bytes(self) -> Bytes {
        match self.0 {
            Layout::Sse(frame) => frame.into_bytes(),
            Layout::Line(piece) | Layout::Item(piece) => piece.into_bytes(),
            Layout::Aws(message) => message.into_bytes(),
        }
    }

    /// What it is.
    pub fn kind(&self) -> FrameKind {
        match &self.0 {
            Layout::Sse(frame) => frame.kind(),
            Layout::Line(piece) | Layout::Item(piece) => piece.kind(),
            Layout::Aws(message) => message.kind(),
        }
    }

    /// The event's data, without anything that belongs to the framing. `None` when it has none.
    pub fn data(&self) -> Option<Cow<'_, [u8]>> {
        match &self.0 {
            Layout::Sse(frame) => frame.data(),
            Layout::Line(piece) | Layout::Item(piece) => piece.data().map(Cow::Borrowed),
            Layout::Aws(message) => message.data(),
        }
    }

    /// The event's name; `None` when it has none, or the framing has no names.
    pub fn name(&self) -> Option<&str> {
        match &self.0 {
            Layout::Sse(frame) => std::str::from_utf8(frame.event()?).ok(),
            Layout::Line(_) | Layout::Item(_) => None,
            Layout::Aws(message) => message.name(),
        }
    }

    /// This frame with other data and, where one is given and the framing has names, another name;
    /// everything else stays, lengths and checksums are made to fit. A frame without data stays as
    /// it is.
    pub fn with(&self, name: Option<&str>, data: &[u8]) -> Bytes {
        match &self.0 {
            Layout::Sse(frame) => match name {
                None => frame.with_data(data),
                Some(name) => frame.with(name, data),
            },
            Layout::Line(piece) | Layout::Item(piece) => piece.with_data(data),
            Layout::Aws(message) => message.with(name, data),
        }
    }
}

impl From<sse::Frame> for Frame {
    fn from(frame: sse::Frame) -> Self {
        Self(Layout::Sse(frame))
    }
}

/// Splits a stream of bytes into frames.
#[derive(Debug)]
pub struct Splitter(Split);

#[derive(Debug)]
enum Split {
    Sse(sse::Splitter),
    Lines(lines::Splitter),
    Array(array::Splitter),
    Aws(aws::Splitter),
}

impl Splitter {
    /// A splitter that holds at most `limit` bytes of one event back; longer ones pass in pieces,
    /// marked [`FrameKind::Oversize`].
    pub fn new(framing: Framing, limit: usize) -> Self {
        Self(match framing {
            Framing::Sse => Split::Sse(sse::Splitter::new(limit)),
            Framing::Lines => Split::Lines(lines::Splitter::new(limit)),
            Framing::Array => Split::Array(array::Splitter::new(limit)),
            Framing::AwsEvents => Split::Aws(aws::Splitter::new(limit, false)),
            Framing::AwsChunks => Split::Aws(aws::Splitter::new(limit, true)),
        })
    }

    /// Takes the next bytes of the stream; returns what they complete.
    pub fn push(&mut self, chunk: &[u8]) -> Vec<Frame> {
        self.push_shared(Bytes::copy_from_slice(chunk))
    }

    /// Takes the next bytes of the stream; returns what they complete. Frames that stand in `chunk`
    /// share it, nothing is copied.
    pub fn push_shared(&mut self, chunk: Bytes) -> Vec<Frame> {
        match &mut self.0 {
            Split::Sse(splitter) => splitter.push(chunk),
            Split::Lines(splitter) => splitter.push(chunk),
            Split::Array(splitter) => splitter.push(chunk),
            Split::Aws(splitter) => splitter.push(chunk),
        }
    }

    /// The stream is over: what was held back. The splitter is then as new.
    pub fn finish(&mut self) -> Vec<Frame> {
        match &mut self.0 {
            Split::Sse(splitter) => splitter.finish(),
            Split::Lines(splitter) => splitter.finish(),
            Split::Array(splitter) => splitter.finish(),
            Split::Aws(splitter) => splitter.finish(),
        }
    }
}

/// Keeps a stream well-formed from which frames are left out, or to which some are added.
///
/// Only a JSON list needs it: its first item comes behind the bracket, every other one behind a
/// comma, and a list that ends early still has to be closed.
#[derive(Debug)]
pub struct Joiner {
    framing: Framing,
    emitted: array::Emitted,
    /// The list is open.
    open: bool,
}

impl Joiner {
    /// For a stream of which nothing was emitted yet.
    pub fn new(framing: Framing) -> Self {
        Self {
            framing,
            emitted: array::Emitted::Nothing,
            open: false,
        }
    }

    /// Whether the framing needs it; if not, every frame is joined to itself.
    pub fn is_needed(&self) -> bool {
        self.framing == Framing::Array
    }

    /// The next frame as it may follow what was emitted before.
    pub fn join(&mut self, frame: Bytes) -> Bytes {
        if !self.is_needed() {
            return frame;
        }
        let joined = array::joined(frame, self.emitted);
        if let Some(first) = array::mark(&joined) {
            self.open = match first {
                b']' => false,
                _ => self.open || first == b'[',
            };
        }
        self.emitted = self.emitted.and(&joined);
        joined
    }

    /// What the framing itself still needs of a stream that ends here; mostly nothing.
    pub fn close(&mut self) -> Bytes {
        let open = std::mem::take(&mut self.open);
        let needed = open || self.emitted == array::Emitted::Nothing;
        match self.framing {
            Framing::Array if needed => Bytes::from_static(array::closing(self.emitted)),
            _ => Bytes::new(),
        }
    }
}
