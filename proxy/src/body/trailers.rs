//! Writes trailers of HTTP/1 responses in place of hyper.
//!
//! hyper writes trailers only if the agent sent `TE: trailers`, but an intermediary passes on
//! announced ones. So hyper sees the end of the body once everything before it is sent. Its last
//! chunk is then replaced by one with the trailers.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use http::header::{self, HeaderMap, HeaderName};
use hyper::rt::Write;

use crate::headers::members;

/// hyper's end of a chunked body.
const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// The last chunk with those fields of `trailers` that `announced` (the response's head) lists, in
/// its casing; `None` without any. Fields that are invalid as trailers are excluded (RFC 9110
/// §6.5.1).
pub(crate) fn last_chunk(trailers: &HeaderMap, announced: &HeaderMap) -> Option<Bytes> {
    let mut lines = Vec::new();
    for (name, value) in trailers {
        if let Some(spelt) = spelling(announced, name).filter(|_| may_come_late(name)) {
            lines.extend_from_slice(spelt.as_bytes());
            lines.extend_from_slice(b": ");
            lines.extend_from_slice(value.as_bytes());
            lines.extend_from_slice(b"\r\n");
        }
    }
    if lines.is_empty() {
        return None;
    }
    Some([b"0\r\n", &lines[..], b"\r\n"].concat().into())
}

/// The name's casing in the announcement of the response's head.
fn spelling<'a>(announced: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    members(announced, &header::TRAILER).find(|it| it.eq_ignore_ascii_case(name.as_str()))
}

fn may_come_late(name: &HeaderName) -> bool {
    ![
        header::AUTHORIZATION,
        header::CACHE_CONTROL,
        header::CONNECTION,
        header::CONTENT_ENCODING,
        header::CONTENT_LENGTH,
        header::CONTENT_RANGE,
        header::CONTENT_TYPE,
        header::HOST,
        header::MAX_FORWARDS,
        header::SET_COOKIE,
        header::TE,
        header::TRAILER,
        header::TRANSFER_ENCODING,
    ]
    .contains(name)
}

/// The replacement of the last chunk.
#[derive(Debug, Default)]
pub(crate) enum LastChunk {
    /// None: written bytes pass unchanged.
    #[default]
    Nothing,
    /// Replaces the last chunk, if that is written next.
    Of(Bytes),
    /// The remaining bytes of the replacement.
    Left(Bytes),
}

impl LastChunk {
    /// Whether the replacement is written instead of `slices`; call it before every write.
    ///
    /// A response without chunks has no last chunk, so it passes unchanged.
    pub(super) fn takes(&mut self, slices: &[IoSlice<'_>]) -> bool {
        match std::mem::take(self) {
            Self::Nothing => false,
            Self::Of(bytes) => {
                let written = slices.iter().flat_map(|slice| slice.iter());
                let is_last = written.eq(LAST_CHUNK);
                if is_last {
                    *self = Self::Left(bytes);
                }
                is_last
            }
            left @ Self::Left(_) => {
                *self = left;
                true
            }
        }
    }

    /// Writes the remaining bytes; afterwards the last chunk counts as written.
    pub(super) fn poll_write<IO: Write + Unpin>(
        &mut self,
        io: &mut IO,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        while let Self::Left(bytes) = self {
            match ready!(Pin::new(&mut *io).poll_write(cx, bytes))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => bytes.advance(written),
            }
            if bytes.is_empty() {
                *self = Self::Nothing;
            }
        }
        Poll::Ready(Ok(LAST_CHUNK.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut fields = HeaderMap::new();
        for (name, value) in lines {
            fields.append(*name, value.parse().unwrap());
        }
        fields
    }

    #[test]
    fn what_was_announced_and_may_come_late_is_in_the_last_chunk() {
        let announced = fields(&[("trailer", "X-Sum, Expires"), ("trailer", "Set-Cookie")]);
        for (trailers, expected) in [
            (&[("x-sum", "9")][..], Some("0\r\nX-Sum: 9\r\n\r\n")),
            (
                &[("expires", "0"), ("x-sum", "9")],
                Some("0\r\nExpires: 0\r\nX-Sum: 9\r\n\r\n"),
            ),
            (&[("set-cookie", "a=b")], None),
            (&[("x-other", "1")], None),
        ] {
            let chunk = last_chunk(&fields(trailers), &announced);
            assert_eq!(
                chunk.as_deref(),
                expected.map(str::as_bytes),
                "{trailers:?}"
            );
        }
    }

    #[test]
    fn only_the_last_chunk_is_replaced() {
        for (written, replaced) in [
            (&[&b"0\r\n\r\n"[..]][..], true),
            (&[b"", b"0\r\n", b"\r\n"], true),
            (&[b"HTTP/1.1 200 OK\r\n\r\n"], false),
            (&[b"10\r\n\r\n"], false),
        ] {
            let slices: Vec<_> = written.iter().map(|slice| IoSlice::new(slice)).collect();
            let mut instead = LastChunk::Of(Bytes::from_static(b"x"));
            assert_eq!(instead.takes(&slices), replaced, "{written:?}");
            assert_eq!(instead.takes(&slices), replaced, "decided once");
        }
    }
}
