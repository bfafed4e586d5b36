//! Amazon's event stream: binary messages with headers and checksums.
//!
//! ```text
//! total length u32 │ headers' length u32 │ CRC of these │ headers │ payload │ CRC of all before
//! ```
//!
//! Numbers are big-endian, checksums CRC-32 as of zlib. A header is a name (a length byte first), a
//! type byte and a value. Source: the event stream encoding of Amazon's Smithy protocols.

use std::borrow::Cow;
use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::{Buf, BufMut, Bytes, BytesMut};

use super::pending::Pending;
use super::{Frame, FrameKind, Layout};
use crate::json::{Document, Edits, quote};

/// Lengths and their checksum.
const PRELUDE: usize = 12;
/// The checksum at the end.
const TRAILER: usize = 4;
/// The header type of strings.
const STRING: u8 = 7;

const MESSAGE_TYPE: &str = ":message-type";
const EVENT_TYPE: &str = ":event-type";
const EXCEPTION_TYPE: &str = ":exception-type";
const ERROR_CODE: &str = ":error-code";
const CONTENT_TYPE: &str = ":content-type";

/// The event that holds another provider's event.
const CHUNK: &str = "chunk";

/// A message, or bytes that are none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Message {
    bytes: Bytes,
    kind: FrameKind,
    headers: Range<usize>,
    payload: Range<usize>,
    /// Other providers' events are inside.
    chunks: bool,
}

/// One header, as spans of the message's bytes.
struct Header<'a> {
    name: &'a str,
    /// `None`: the value is no string.
    text: Option<&'a str>,
    /// The header as a whole.
    raw: &'a [u8],
}

impl Message {
    /// Bytes that are not read.
    fn unread(bytes: Bytes, kind: FrameKind, chunks: bool) -> Self {
        Self {
            bytes,
            kind,
            headers: 0..0,
            payload: 0..0,
            chunks,
        }
    }

    /// A whole message; unread if its checksum is wrong.
    fn read(bytes: Bytes, headers_length: usize, chunks: bool) -> Self {
        let end = bytes.len() - TRAILER;
        let checksum = (&bytes[end..]).get_u32();
        if crc32fast::hash(&bytes[..end]) != checksum {
            return Self::unread(bytes, FrameKind::Oversize, chunks);
        }
        let payload = PRELUDE + headers_length..end;
        Self {
            bytes,
            kind: FrameKind::Event,
            headers: PRELUDE..payload.start,
            payload,
            chunks,
        }
    }

    pub(super) fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    pub(super) fn into_bytes(self) -> Bytes {
        self.bytes
    }

    pub(super) fn kind(&self) -> FrameKind {
        self.kind
    }

    pub(super) fn name(&self) -> Option<&str> {
        let name = self.type_name()?;
        let inside = self.holds_a_chunk(name);
        (!inside).then_some(name)
    }

    pub(super) fn data(&self) -> Option<Cow<'_, [u8]>> {
        let payload = &self.bytes[self.payload.clone()];
        if payload.is_empty() {
            return None;
        }
        if !self
            .type_name()
            .is_some_and(|name| self.holds_a_chunk(name))
        {
            return Some(Cow::Borrowed(payload));
        }
        let document = Document::parse(payload).ok()?;
        let encoded = document.root().get("bytes")?.as_str()?;
        STANDARD.decode(&*encoded).ok().map(Cow::Owned)
    }

    /// This message with another payload and, if one is given, another name.
    pub(super) fn with(&self, name: Option<&str>, data: &[u8]) -> Bytes {
        if self.payload.is_empty() {
            return self.bytes.clone();
        }
        let chunk = self
            .type_name()
            .is_some_and(|name| self.holds_a_chunk(name));
        let payload = if chunk {
            Cow::Owned(self.with_chunk(data))
        } else {
            Cow::Borrowed(data)
        };
        let name = name.filter(|_| !chunk);
        let mut headers = BytesMut::new();
        for header in self.headers() {
            match name {
                Some(name) if matches!(header.name, EVENT_TYPE | EXCEPTION_TYPE) => {
                    put_header(&mut headers, header.name, name);
                }
                _ => headers.extend_from_slice(header.raw),
            }
        }
        message(&headers, &payload)
    }

    /// A further message like this one; exceptions have headers of their own.
    pub(super) fn another(&self, name: Option<&str>, data: &[u8], exception: bool) -> Bytes {
        let is_event = self.headers().any(|header| header.name == EVENT_TYPE);
        if exception || !is_event || self.payload.is_empty() {
            return fresh(name, data, exception, self.chunks);
        }
        self.with(name, data)
    }

    /// The payload around other inner data; its further members stay.
    fn with_chunk(&self, data: &[u8]) -> Vec<u8> {
        let payload = &self.bytes[self.payload.clone()];
        let Ok(document) = Document::parse(payload) else {
            return chunk(data);
        };
        let Some(place) = document.root().get("bytes") else {
            return chunk(data);
        };
        let mut edits = Edits::new(&document);
        edits.replace(place.id(), quote(&STANDARD.encode(data)));
        edits.apply()
    }

    fn holds_a_chunk(&self, name: &str) -> bool {
        self.chunks && name == CHUNK
    }

    /// What the header that tells events, exceptions and errors apart from their like says.
    fn type_name(&self) -> Option<&str> {
        let mut headers = self.headers();
        let header = headers
            .find(|header| matches!(header.name, EVENT_TYPE | EXCEPTION_TYPE | ERROR_CODE))?;
        header.text
    }

    fn headers(&self) -> Headers<'_> {
        Headers(&self.bytes[self.headers.clone()])
    }
}

/// Walks over headers; stops where they are not well-formed.
struct Headers<'a>(&'a [u8]);

impl<'a> Iterator for Headers<'a> {
    type Item = Header<'a>;

    fn next(&mut self) -> Option<Header<'a>> {
        let all = self.0;
        let (&name_length, rest) = all.split_first()?;
        let (name, rest) = rest.split_at_checked(usize::from(name_length))?;
        let (&kind, rest) = rest.split_first()?;
        let (prefix, length) = match kind {
            0 | 1 => (0, 0),
            2 => (0, 1),
            3 => (0, 2),
            4 => (0, 4),
            5 | 8 => (0, 8),
            9 => (0, 16),
            6 | STRING => (
                2,
                usize::from(rest.first_chunk().map(|b| u16::from_be_bytes(*b))?),
            ),
            _ => return None,
        };
        let value = rest.get(prefix..prefix + length)?;
        self.0 = &rest[prefix + length..];
        let text = (kind == STRING).then(|| std::str::from_utf8(value).ok());
        Some(Header {
            name: std::str::from_utf8(name).ok()?,
            text: text.flatten(),
            raw: &all[..all.len() - self.0.len()],
        })
    }
}

/// A message after no model, as Bedrock lays them out.
pub(super) fn fresh(name: Option<&str>, data: &[u8], exception: bool, chunks: bool) -> Bytes {
    let wrapped = chunks && !exception;
    let name = if wrapped {
        CHUNK
    } else {
        name.unwrap_or(CHUNK)
    };
    let (type_header, message_type) = if exception {
        (EXCEPTION_TYPE, "exception")
    } else {
        (EVENT_TYPE, "event")
    };
    let mut headers = BytesMut::new();
    put_header(&mut headers, type_header, name);
    put_header(&mut headers, CONTENT_TYPE, "application/json");
    put_header(&mut headers, MESSAGE_TYPE, message_type);
    if wrapped {
        message(&headers, &chunk(data))
    } else {
        message(&headers, data)
    }
}

/// A payload around another provider's event.
fn chunk(data: &[u8]) -> Vec<u8> {
    format!("{{\"bytes\":{}}}", quote(&STANDARD.encode(data))).into_bytes()
}

/// Adds a string header; what is over its length fields is cut off.
fn put_header(headers: &mut BytesMut, name: &str, value: &str) {
    let name = &name.as_bytes()[..name.len().min(usize::from(u8::MAX))];
    let value = &value.as_bytes()[..value.len().min(usize::from(u16::MAX))];
    headers.put_u8(u8::try_from(name.len()).unwrap_or(u8::MAX));
    headers.extend_from_slice(name);
    headers.put_u8(STRING);
    headers.put_u16(u16::try_from(value.len()).unwrap_or(u16::MAX));
    headers.extend_from_slice(value);
}

pub(super) fn message(headers: &[u8], payload: &[u8]) -> Bytes {
    let length = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
    let total = PRELUDE + headers.len() + payload.len() + TRAILER;
    let mut message = BytesMut::with_capacity(total);
    message.put_u32(length(total));
    message.put_u32(length(headers.len()));
    let checksum = crc32fast::hash(&message);
    message.put_u32(checksum);
    message.extend_from_slice(headers);
    message.extend_from_slice(payload);
    let checksum = crc32fast::hash(&message);
    message.put_u32(checksum);
    message.freeze()
}

/// Splits a stream into messages.
#[derive(Debug)]
pub(super) struct Splitter {
    limit: usize,
    chunks: bool,
    pending: Pending,
    /// Bytes of a message over the limit that are still to come.
    oversize: usize,
    /// What came is no such stream: everything passes unread.
    foreign: bool,
}

impl Splitter {
    pub(super) fn new(limit: usize, chunks: bool) -> Self {
        Self {
            limit,
            chunks,
            pending: Pending::new(),
            oversize: 0,
            foreign: false,
        }
    }

    pub(super) fn push(&mut self, chunk: Bytes) -> Vec<Frame> {
        let mut frames = Vec::new();
        self.pending.push(chunk);
        while let Some(message) = self.next_message() {
            frames.push(Frame(Layout::Aws(message)));
        }
        frames
    }

    pub(super) fn finish(&mut self) -> Vec<Frame> {
        let rest = self.pending.take_all();
        *self = Self::new(self.limit, self.chunks);
        let unread = |rest| Message::unread(rest, FrameKind::Unfinished, self.chunks);
        let rest = (!rest.is_empty()).then(|| Frame(Layout::Aws(unread(rest))));
        Vec::from_iter(rest)
    }

    /// The next message that is complete.
    fn next_message(&mut self) -> Option<Message> {
        if self.pending.is_empty() {
            return None;
        }
        if self.foreign {
            let bytes = self.pending.take_all();
            return Some(Message::unread(bytes, FrameKind::Oversize, self.chunks));
        }
        if self.oversize > 0 {
            let piece = self.pending.len().min(self.oversize);
            self.oversize -= piece;
            let bytes = self.pending.take(piece);
            return Some(Message::unread(bytes, FrameKind::Oversize, self.chunks));
        }
        let mut prelude = self.pending.get(..PRELUDE)?;
        let vouched = crc32fast::hash(&prelude[..PRELUDE - 4]);
        let total = usize::try_from(prelude.get_u32()).unwrap_or(usize::MAX);
        let headers = usize::try_from(prelude.get_u32()).unwrap_or(usize::MAX);
        let fits = total >= PRELUDE + TRAILER && headers <= total - PRELUDE - TRAILER;
        if prelude.get_u32() != vouched || !fits {
            self.foreign = true;
            return self.next_message();
        }
        if total > self.limit {
            self.oversize = total;
            return self.next_message();
        }
        if self.pending.len() < total {
            return None;
        }
        let bytes = self.pending.take(total);
        Some(Message::read(bytes, headers, self.chunks))
    }
}
