//! A cache for repeated response heads.
//!
//! Most responses of an upstream have the same fields in the same order. The cache stores what
//! depends on their names only: the map without values, and the original casing in hyper's format,
//! because hyper writes the response to the agent.

use std::cell::RefCell;
use std::collections::HashMap;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::{fmt, io};

use bytes::Bytes;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::{Extensions, Request};
use http_body_util::Empty;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::FramingError;
use super::head::FieldSpan;

/// Most cached shapes per worker; one more clears the cache.
const KEPT: usize = 256;

/// Largest total length of names in a cached shape, bytes.
const LONGEST: usize = 4096;

/// The cached shapes of one worker.
#[derive(Default)]
pub struct HeadShapes(RefCell<HashMap<Vec<u8>, Rc<HeadShape>>>);

/// What depends on the names of a head's fields only.
#[derive(Debug)]
pub(super) struct HeadShape {
    /// Each name in its original casing, followed by a line feed.
    names: Vec<u8>,
    /// The fields without values.
    fields: HeaderMap,
    /// The position of each field in the head, because a map groups repetitions.
    places: Vec<usize>,
    spelling: Extensions,
}

impl HeadShapes {
    /// The shape of a head's fields.
    pub(super) fn shape_of(
        &self,
        section: &[u8],
        fields: &[FieldSpan],
    ) -> Result<Rc<HeadShape>, FramingError> {
        let names = names(section, fields);
        if let Some(known) = self.0.borrow().get(&names) {
            return Ok(Rc::clone(known));
        }
        let shape = Rc::new(HeadShape::new(names, section, fields)?);
        if shape.names.len() <= LONGEST {
            let mut kept = self.0.borrow_mut();
            if kept.len() >= KEPT {
                kept.clear();
            }
            kept.insert(shape.names.clone(), Rc::clone(&shape));
        }
        Ok(shape)
    }
}

impl fmt::Debug for HeadShapes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeadShapes").finish_non_exhaustive()
    }
}

/// The original names of `fields`, each followed by a line feed.
pub(super) fn names(section: &[u8], fields: &[FieldSpan]) -> Vec<u8> {
    let length = fields.iter().map(|field| field.name(section).len() + 1);
    let mut names = Vec::with_capacity(length.sum());
    for field in fields {
        names.extend_from_slice(field.name(section));
        names.push(b'\n');
    }
    names
}

impl HeadShape {
    fn new(names: Vec<u8>, section: &[u8], fields: &[FieldSpan]) -> Result<Self, FramingError> {
        let mut numbered = HeaderMap::with_capacity(fields.len());
        for (place, field) in fields.iter().enumerate() {
            let name = HeaderName::from_bytes(field.name(section));
            let name = name.map_err(|_| FramingError::FieldName)?;
            numbered
                .try_append(name, place)
                .map_err(|_| FramingError::TooManyFields { limit: place })?;
        }
        let places = numbered.values().copied().collect();
        let empty = HeaderValue::from_static("");
        let mut template = HeaderMap::with_capacity(numbered.keys_len());
        for name in numbered.keys() {
            for _ in numbered.get_all(name) {
                template.append(name, empty.clone());
            }
        }
        let spelling = if names.iter().any(u8::is_ascii_uppercase) {
            spelling(&names, fields.len()).unwrap_or_default()
        } else {
            Extensions::new()
        };
        Ok(Self {
            names,
            fields: template,
            places,
            spelling,
        })
    }

    /// Whether `fields` have the same names, in the same order and casing.
    pub(super) fn fits(&self, section: &[u8], fields: &[FieldSpan]) -> bool {
        let mut names = &self.names[..];
        let same = fields.iter().all(|field| {
            let rest = names
                .strip_prefix(field.name(section))
                .and_then(|rest| rest.strip_prefix(b"\n"));
            names = rest.unwrap_or_default();
            rest.is_some()
        });
        same && names.is_empty()
    }

    /// The fields with their values in `section`.
    pub(super) fn filled(
        &self,
        section: &Bytes,
        fields: &[FieldSpan],
    ) -> Result<HeaderMap, FramingError> {
        let mut filled = self.fields.clone();
        for (value, place) in filled.values_mut().zip(&self.places) {
            let bytes = section.slice(fields[*place].value(section));
            *value = HeaderValue::from_maybe_shared(bytes)
                .map_err(|_| FramingError::ControlCharacter)?;
        }
        Ok(filled)
    }

    /// The original casing of the names, for hyper.
    pub(super) fn spelling(&self) -> &Extensions {
        &self.spelling
    }
}

/// The original casing of `names`, in the format of hyper's server.
///
/// The format is internal to hyper, and only its parser creates it. So hyper's client parses an
/// in-memory response with these names. `None` if that fails; then names are written in lower case.
fn spelling(names: &[u8], count: usize) -> Option<Extensions> {
    let mut text = b"HTTP/1.1 304 Not Modified\r\n".to_vec();
    for name in names.split_inclusive(|b| *b == b'\n') {
        text.extend_from_slice(name.trim_ascii_end());
        text.extend_from_slice(b":\r\n");
    }
    text.extend_from_slice(b"\r\n");
    let most = text.len().max(8192);
    let io = TokioIo::new(Canned { text, asked: false });
    let mut cx = Context::from_waker(Waker::noop());
    let mut client = http1::Builder::new();
    client
        .preserve_header_case(true)
        .max_headers(count)
        .max_buf_size(most);
    let opened = pin!(client.handshake::<_, Empty<Bytes>>(io)).poll(&mut cx);
    let Poll::Ready(Ok((mut sender, connection))) = opened else {
        return None;
    };
    let mut connection = pin!(connection);
    let mut answer = pin!(sender.send_request(Request::new(Empty::new())));
    // One poll to write, one to read.
    for _ in 0..4 {
        let _pending: Poll<_> = connection.as_mut().poll(&mut cx);
        if let Poll::Ready(answer) = answer.as_mut().poll(&mut cx) {
            return Some(answer.ok()?.extensions().clone());
        }
    }
    None
}

/// A stream that returns a fixed response.
struct Canned {
    text: Vec<u8>,
    asked: bool,
}

impl AsyncRead for Canned {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.asked {
            return Poll::Pending;
        }
        let length = self.text.len().min(buffer.remaining());
        buffer.put_slice(&self.text[..length]);
        self.text.drain(..length);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Canned {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.asked = true;
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
