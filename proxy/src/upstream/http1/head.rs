//! The head of a request, as the agent wrote it.

use std::fmt::Write as _;

use bytes::{BufMut, BytesMut};
use http::header::{CONTENT_LENGTH, HeaderMap, HeaderName, HeaderValue, TRANSFER_ENCODING};
use http::request::Parts;
use http_body::Body;

use crate::headers::declared_length;
use crate::http1::framing::OriginalNames;

/// How the end of a request's body is marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UploadFraming {
    /// The body has this many remaining bytes.
    Length(u64),
    /// Chunks.
    Chunked,
}

impl UploadFraming {
    /// By the head; otherwise by the body's known length.
    pub(super) fn of(headers: &HeaderMap, body: &impl Body) -> Self {
        if headers.contains_key(TRANSFER_ENCODING) {
            return Self::Chunked;
        }
        declared_length(headers)
            .or_else(|| body.is_end_stream().then_some(0))
            .or_else(|| body.size_hint().exact())
            .map_or(Self::Chunked, Self::Length)
    }
}

/// Writes the request line, the fields and additional framing fields.
pub(super) fn write_head(
    out: &mut BytesMut,
    head: &Parts,
    original: &OriginalNames,
    framing: UploadFraming,
) {
    out.put_slice(head.method.as_str().as_bytes());
    out.put_u8(b' ');
    match head.uri.path_and_query() {
        Some(path) if head.uri.authority().is_none() => out.put_slice(path.as_str().as_bytes()),
        _ => {
            // Writing to memory does not fail.
            let _infallible = write!(out, "{}", head.uri);
        }
    }
    out.put_slice(b" HTTP/1.1\r\n");
    write_in_order(out, &head.headers, original);
    let told = |name| head.headers.contains_key(name);
    match framing {
        UploadFraming::Length(length) if length > 0 && !told(&CONTENT_LENGTH) => {
            write_field(out, b"content-length", &length.into());
        }
        UploadFraming::Chunked if !told(&TRANSFER_ENCODING) => {
            write_field(
                out,
                b"transfer-encoding",
                &HeaderValue::from_static("chunked"),
            );
        }
        UploadFraming::Length(_) | UploadFraming::Chunked => {}
    }
    out.put_slice(b"\r\n");
}

/// Writes fields in lower case.
pub(super) fn write_fields<'a>(
    out: &mut BytesMut,
    fields: impl Iterator<Item = (&'a HeaderName, &'a HeaderValue)>,
) {
    for (name, value) in fields {
        write_field(out, name.as_str().as_bytes(), value);
    }
}

/// Writes `fields` in the order and casing of `original`, then those that it lacks.
///
/// `fields` decides what is sent. The map groups repeated fields, so only the agent's order can
/// separate them.
fn write_in_order(out: &mut BytesMut, fields: &HeaderMap, original: &OriginalNames) {
    let mut names = original.names().peekable();
    let mut rest = fields.iter().peekable();
    // Usually both have the same order, and only some fields were removed.
    while let (Some(name_as_written), Some((name, value))) = (names.peek(), rest.peek()) {
        if name_as_written.eq_ignore_ascii_case(name.as_str().as_bytes()) {
            write_field(out, name_as_written, value);
            rest.next();
        } else if is_field_of(fields, name_as_written) {
            break;
        }
        names.next();
    }
    let mut rest: Vec<_> = rest.map(Some).collect();
    for name_as_written in names {
        let place = rest.iter_mut().find(|field| {
            field.is_some_and(|(name, _)| {
                name_as_written.eq_ignore_ascii_case(name.as_str().as_bytes())
            })
        });
        if let Some((_, value)) = place.and_then(Option::take) {
            write_field(out, name_as_written, value);
        }
    }
    write_fields(out, rest.into_iter().flatten());
}

fn is_field_of(fields: &HeaderMap, name: &[u8]) -> bool {
    HeaderName::from_bytes(name).is_ok_and(|name| fields.contains_key(name))
}

fn write_field(out: &mut BytesMut, name: &[u8], value: &HeaderValue) {
    let value = value.as_bytes();
    out.reserve(name.len() + value.len() + 4);
    out.put_slice(name);
    out.put_slice(b": ");
    out.put_slice(value);
    out.put_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::Request;
    use http_body_util::{Empty, Full};

    use super::*;
    use crate::http1::HeadLimits;
    use crate::http1::framing::Requests;

    /// The result for `head` from the agent after `change`.
    fn sent(head: &str, change: impl FnOnce(&mut HeaderMap)) -> String {
        let limits = HeadLimits {
            header_bytes: 4096,
            header_count: 100,
        };
        let mut requests = Requests::new(limits);
        assert_eq!(requests.advance(head.as_bytes()).passed, head.len());
        let original = requests.take_names().next().unwrap();
        let mut lines = head.split("\r\n");
        let mut words = lines.next().unwrap().split(' ');
        let mut request = Request::new(());
        *request.method_mut() = words.next().unwrap().parse().unwrap();
        *request.uri_mut() = words.next().unwrap().parse().unwrap();
        for line in lines.take_while(|line| !line.is_empty()) {
            let (name, value) = line.split_once(": ").unwrap();
            let name: HeaderName = name.parse().unwrap();
            request.headers_mut().append(name, value.parse().unwrap());
        }
        change(request.headers_mut());
        let mut out = BytesMut::new();
        let framing = UploadFraming::of(request.headers(), &Empty::<Bytes>::new());
        write_head(&mut out, &request.into_parts().0, &original, framing);
        String::from_utf8(out.to_vec()).unwrap()
    }

    #[test]
    fn a_head_is_sent_as_it_was_written() {
        for head in [
            "GET /a?b HTTP/1.1\r\nHost: h\r\naccept: */*\r\nX-ODD-case: 1\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: h\r\nA: 1\r\nB: 2\r\na: 3\r\nC: 4\r\nb: 5\r\n\r\n",
            "OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n",
            "GET http://h/p HTTP/1.1\r\nHost: h\r\n\r\n",
        ] {
            assert_eq!(sent(head, |_| {}), head);
        }
    }

    #[test]
    fn what_was_changed_in_a_head_keeps_the_places_of_the_rest() {
        let head = "GET / HTTP/1.1\r\nHost: h\r\nA: 1\r\nB: 2\r\nA: 3\r\nC: 4\r\n\r\n";
        let changed = sent(head, |fields| {
            fields.insert("b", HeaderValue::from_static("other"));
            fields.append("a", HeaderValue::from_static("another"));
            fields.append("New", HeaderValue::from_static("5"));
            fields.insert("host", HeaderValue::from_static("upstream"));
        });
        let expected = "GET / HTTP/1.1\r\nHost: upstream\r\nA: 1\r\nB: other\r\nA: 3\r\nC: 4\r\n\
                        a: another\r\nnew: 5\r\n\r\n";
        assert_eq!(changed, expected);
        let removed = sent(
            "GET / HTTP/1.1\r\nHost: h\r\nA: 1\r\nB: 2\r\nC: 3\r\n\r\n",
            |fields| {
                fields.remove("a");
            },
        );
        assert!(!removed.contains("A: 1"), "{removed}");
        assert!(removed.contains("\r\nB: 2\r\n"), "{removed}");
    }

    #[test]
    fn the_end_of_a_body_is_told_even_where_the_agent_told_it_otherwise() {
        for (fields, body, framing) in [
            (&[][..], "", UploadFraming::Length(0)),
            (&[], "body", UploadFraming::Length(4)),
            (&[("content-length", "4")], "body", UploadFraming::Length(4)),
            (
                &[("transfer-encoding", "chunked")],
                "body",
                UploadFraming::Chunked,
            ),
        ] {
            let mut headers = HeaderMap::new();
            for (name, value) in fields {
                headers.append(*name, HeaderValue::from_static(value));
            }
            let body = Full::new(Bytes::from_static(body.as_bytes()));
            assert_eq!(UploadFraming::of(&headers, &body), framing, "{fields:?}");
        }
    }
}
