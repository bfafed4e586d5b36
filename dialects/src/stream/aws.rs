//! Amazon's event stream: binary messages with headers and checksums.
//!
//! ```text
//! total length u32 │ headers' length u32 │ CRC of these │ headers │ payload │ CRC of all before
//! ```
//!
//! Numbers are big-endian, checksums CRC-32 as of zlib. A header is a name (a length byte first), a
//! type byte and a value. Source: the event stream encoding of Amazon's Smithy protocols.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::{Buf, BufMut};
use serde_json::json;

use super::{FrameCut, FrameKind, Scan};
use crate::json::{Document, Edits};

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
pub(super) const CHUNK: &str = "chunk";

#[derive(Debug, Default)]
pub(super) struct Scanner {
    /// Remaining bytes of a message that exceeds the limit.
    left: usize,
    /// Length of the current message.
    total: usize,
    /// The bytes are not an event stream: they are forwarded unread.
    foreign: bool,
}

impl Scan for Scanner {
    fn next(&mut self, pending: &[u8]) -> Option<FrameCut> {
        if pending.is_empty() {
            return None;
        }
        if self.foreign {
            return Some(FrameCut::unread(FrameKind::Oversize, pending.len()));
        }
        if self.left > 0 {
            let length = pending.len().min(self.left);
            self.left -= length;
            return Some(FrameCut::unread(FrameKind::Oversize, length));
        }
        let mut prelude = pending.get(..PRELUDE)?;
        let checksum = crc32fast::hash(&prelude[..PRELUDE - 4]);
        let total = usize::try_from(prelude.get_u32()).unwrap_or(usize::MAX);
        let headers = usize::try_from(prelude.get_u32()).unwrap_or(usize::MAX);
        let fits = total >= PRELUDE + TRAILER && headers <= total - PRELUDE - TRAILER;
        if prelude.get_u32() != checksum || !fits {
            self.foreign = true;
            return self.next(pending);
        }
        self.total = total;
        let message = pending.get(..total)?;
        let (signed, mut trailer) = message.split_at(total - TRAILER);
        if crc32fast::hash(signed) != trailer.get_u32() {
            return Some(FrameCut::unread(FrameKind::Oversize, total));
        }
        Some(FrameCut {
            kind: FrameKind::Event,
            length: total,
            body: PRELUDE + headers..signed.len(),
        })
    }

    fn skip(&mut self, length: usize) {
        self.left = self.total.saturating_sub(length);
    }
}

/// One header of a message.
struct Header<'a> {
    name: &'a str,
    /// `None`: the value is not a string.
    text: Option<&'a str>,
    /// The raw bytes of the header.
    raw: &'a [u8],
}

/// The headers before a payload, up to the first malformed one.
fn headers(head: &[u8]) -> impl Iterator<Item = Header<'_>> {
    let mut rest = head.get(PRELUDE..).unwrap_or_default();
    std::iter::from_fn(move || {
        let all = rest;
        let (&name_length, behind) = all.split_first()?;
        let (name, behind) = behind.split_at_checked(usize::from(name_length))?;
        let (&kind, behind) = behind.split_first()?;
        let (prefix, length) = match kind {
            0 | 1 => (0, 0),
            2 => (0, 1),
            3 => (0, 2),
            4 => (0, 4),
            5 | 8 => (0, 8),
            9 => (0, 16),
            6 | STRING => (2, u16::from_be_bytes(*behind.first_chunk()?).into()),
            _ => return None,
        };
        let value = behind.get(prefix..prefix + length)?;
        rest = &behind[prefix + length..];
        Some(Header {
            name: std::str::from_utf8(name).ok()?,
            text: std::str::from_utf8(value).ok().filter(|_| kind == STRING),
            raw: &all[..all.len() - rest.len()],
        })
    })
}

/// The name of the event, exception or error.
pub(super) fn name(head: &[u8]) -> Option<&str> {
    let mut headers = headers(head);
    let named = |it: &Header<'_>| matches!(it.name, EVENT_TYPE | EXCEPTION_TYPE | ERROR_CODE);
    headers.find(named)?.text
}

/// Whether it is an event, not an exception or error.
pub(super) fn is_event(head: &[u8]) -> bool {
    headers(head).any(|header| header.name == EVENT_TYPE)
}

/// The data of a payload; `chunk`: it contains another provider's event.
pub(super) fn data(payload: &[u8], chunk: bool) -> Option<Cow<'_, [u8]>> {
    if !chunk {
        return Some(Cow::Borrowed(payload));
    }
    let document = Document::parse(payload).ok()?;
    let encoded = document.root().text("bytes")?;
    STANDARD.decode(&*encoded).ok().map(Cow::Owned)
}

/// A message with other data and, if given, another name.
pub(super) fn edited(
    head: &[u8],
    payload: &[u8],
    name: Option<&str>,
    data: &[u8],
    chunk: bool,
) -> Vec<u8> {
    let document = Document::parse(payload).ok().filter(|_| chunk);
    let place = document.as_ref().and_then(|it| it.root().get("bytes"));
    let payload = match (&document, place) {
        (Some(document), Some(place)) => {
            let mut edits = Edits::new(document);
            edits.replace(place.id(), json!(STANDARD.encode(data)));
            Cow::Owned(edits.apply())
        }
        _ => Cow::Borrowed(data),
    };
    let mut edited = Vec::new();
    for header in headers(head) {
        match name.filter(|_| !chunk) {
            Some(name) if matches!(header.name, EVENT_TYPE | EXCEPTION_TYPE) => {
                put_header(&mut edited, header.name, name);
            }
            _ => edited.extend_from_slice(header.raw),
        }
    }
    framed(&edited, &payload)
}

/// A message in Bedrock's layout; `chunks`: events contain another provider's event.
pub(super) fn message(name: Option<&str>, data: &[u8], exception: bool, chunks: bool) -> Vec<u8> {
    let wrapped = chunks && !exception;
    let name = name.filter(|_| !wrapped).unwrap_or(CHUNK);
    let (type_header, message_type) = if exception {
        (EXCEPTION_TYPE, "exception")
    } else {
        (EVENT_TYPE, "event")
    };
    let mut headers = Vec::new();
    put_header(&mut headers, type_header, name);
    put_header(&mut headers, CONTENT_TYPE, "application/json");
    put_header(&mut headers, MESSAGE_TYPE, message_type);
    if wrapped {
        let chunk = json!({ "bytes": STANDARD.encode(data) });
        framed(&headers, chunk.to_string().as_bytes())
    } else {
        framed(&headers, data)
    }
}

/// Adds a string header; values that exceed their length fields are truncated.
fn put_header(headers: &mut Vec<u8>, name: &str, value: &str) {
    let name = &name.as_bytes()[..name.len().min(usize::from(u8::MAX))];
    let value = &value.as_bytes()[..value.len().min(usize::from(u16::MAX))];
    headers.put_u8(u8::try_from(name.len()).unwrap_or(u8::MAX));
    headers.extend_from_slice(name);
    headers.put_u8(STRING);
    headers.put_u16(u16::try_from(value.len()).unwrap_or(u16::MAX));
    headers.extend_from_slice(value);
}

/// A message with these headers.
pub(super) fn framed(headers: &[u8], payload: &[u8]) -> Vec<u8> {
    let length = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
    let mut message = Vec::new();
    message.put_u32(length(PRELUDE + headers.len() + payload.len() + TRAILER));
    message.put_u32(length(headers.len()));
    message.put_u32(crc32fast::hash(&message));
    message.extend_from_slice(headers);
    message.extend_from_slice(payload);
    message.put_u32(crc32fast::hash(&message));
    message
}
