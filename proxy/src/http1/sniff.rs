//! Detects a connection's protocol from its first bytes.

use std::io;
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncReadExt};

use super::Rewind;
use super::head::is_token;

/// The bytes with which an HTTP/2 client opens a connection (RFC 9113 §3.4).
pub(crate) const H2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Longest HTTP method (the longest registered one has 17); a longer one means another protocol.
const LONGEST_METHOD: usize = 32;

/// Longest URL scheme; a longer one means another protocol.
const LONGEST_SCHEME: usize = 32;

/// Most blank lines before a request line (RFC 9112 §2.2).
const BLANK_LINES: usize = 4;

/// The protocol of a connection's first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sniff {
    /// They fit several protocols; more bytes are needed.
    NeedMore,
    /// A TLS record that holds a `ClientHello`.
    Tls,
    /// HTTP/2 with prior knowledge.
    H2Preface,
    /// The start of an HTTP/1 request line with any method.
    Http1,
    /// Something else.
    Other,
}

/// Detects the protocol of `bytes`, the first of a connection.
///
/// It is pure and monotonic: once a prefix gives another result than [`Sniff::NeedMore`], every
/// longer one gives the same. It reads at most about 100 bytes. After the method it requires an
/// origin-form, absolute-form or asterisk target, or CONNECT. This excludes line protocols (`USER
/// me`, `GET key`).
pub fn classify(bytes: &[u8]) -> Sniff {
    match bytes.first() {
        None => Sniff::NeedMore,
        Some(0x16) => tls(bytes),
        Some(_) => match preface(bytes) {
            Sniff::Other => request_line(bytes),
            sniff => sniff,
        },
    }
}

/// Content type handshake, version 3.x, a valid record length, message type `ClientHello`.
fn tls(bytes: &[u8]) -> Sniff {
    let fits = |index: usize, test: fn(u8) -> bool| bytes.get(index).is_none_or(|b| test(*b));
    if !fits(1, |major| major == 3) || !fits(2, |minor| minor <= 4) || !fits(5, |kind| kind == 1) {
        return Sniff::Other;
    }
    match bytes {
        // RFC 8446 §5.1: a record holds at most 2^14 bytes, and a handshake one at least one.
        [_, _, _, high, low, ..] if !(1..=1 << 14).contains(&u16::from_be_bytes([*high, *low])) => {
            Sniff::Other
        }
        [_, _, _, _, _, _, ..] => Sniff::Tls,
        _ => Sniff::NeedMore,
    }
}

fn preface(bytes: &[u8]) -> Sniff {
    if bytes.starts_with(H2_PREFACE) {
        Sniff::H2Preface
    } else if H2_PREFACE.starts_with(bytes) {
        Sniff::NeedMore
    } else {
        Sniff::Other
    }
}

fn request_line(bytes: &[u8]) -> Sniff {
    let mut line = bytes;
    for _ in 0..BLANK_LINES {
        match line {
            [b'\r', b'\n', rest @ ..] => line = rest,
            [] | [b'\r'] => return Sniff::NeedMore,
            _ => break,
        }
    }
    let Some(space) = line.iter().position(|b| !is_token(*b)) else {
        return if line.len() > LONGEST_METHOD {
            Sniff::Other
        } else {
            Sniff::NeedMore
        };
    };
    if space == 0 || space > LONGEST_METHOD || line[space] != b' ' {
        return Sniff::Other;
    }
    let (method, target) = (&line[..space], &line[space + 1..]);
    match target {
        [] => Sniff::NeedMore,
        [b'/', ..] => Sniff::Http1,
        [b'*', rest @ ..] => match rest {
            [] => Sniff::NeedMore,
            [b' ', ..] => Sniff::Http1,
            _ => Sniff::Other,
        },
        [b'!'..=b'~', ..] if method == b"CONNECT" => Sniff::Http1,
        _ => absolute_form(target),
    }
}

fn absolute_form(target: &[u8]) -> Sniff {
    let in_scheme = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.');
    let scheme = target.iter().take_while(|b| in_scheme(b)).count();
    if scheme > LONGEST_SCHEME || !target[0].is_ascii_alphabetic() {
        return Sniff::Other;
    }
    let rest = &target[scheme..];
    if rest.starts_with(b"://") {
        Sniff::Http1
    } else if b"://".starts_with(rest) {
        Sniff::NeedMore
    } else {
        Sniff::Other
    }
}

/// Waits for the first bytes of `stream`, detects their protocol and puts them back.
///
/// It waits at most `patience` for the first byte, and the same time again for a clear protocol;
/// then the result is [`Sniff::Other`]. `None` if no byte came. It fails if reading fails.
pub(crate) async fn sniff<T>(
    mut stream: T,
    patience: Duration,
) -> io::Result<Option<(Sniff, Rewind<T>)>>
where
    T: AsyncRead + Unpin,
{
    let mut seen = BytesMut::with_capacity(1024);
    let first = loop {
        let read = tokio::time::timeout(patience, stream.read_buf(&mut seen));
        match (read.await, seen.is_empty()) {
            (Ok(Ok(0)) | Err(_), true) => return Ok(None),
            (Ok(Ok(0)) | Err(_), false) => break Sniff::Other,
            (Ok(Err(error)), _) => return Err(error),
            (Ok(Ok(_)), _) => match classify(&seen) {
                Sniff::NeedMore => {}
                sniff => break sniff,
            },
        }
    };
    Ok(Some((first, Rewind::new(stream, seen.freeze()))))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_first_bytes_tell_what_a_connection_speaks() {
        let long_method = "M".repeat(33);
        for (bytes, expected) in [
            (&b""[..], Sniff::NeedMore),
            (b"\x16", Sniff::NeedMore),
            (b"\x16\x03\x01\x02\x00", Sniff::NeedMore),
            (b"\x16\x03\x01\x02\x00\x01", Sniff::Tls),
            (b"\x16\x03\x03\x00\x01\x01", Sniff::Tls),
            (b"\x16\x03\x01\x00\x00", Sniff::Other), // an empty record
            (b"\x16\x03\x01\x40\x01", Sniff::Other), // longer than a record may be
            (b"\x16\x03\x01\x02\x00\x02", Sniff::Other), // a ServerHello
            (b"\x16\x02", Sniff::Other),
            (b"\x80\x2e\x01\x00\x02", Sniff::Other), // an SSLv2 hello
            (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r", Sniff::NeedMore),
            (H2_PREFACE, Sniff::H2Preface),
            (b"PRI * HTTP/1.1\r\n", Sniff::Http1),
            (b"PRI /", Sniff::Http1),
            (b"GET", Sniff::NeedMore),
            (b"GET ", Sniff::NeedMore),
            (b"GET /", Sniff::Http1),
            (b"POST /v1/chat HTTP/1.1\r\n", Sniff::Http1),
            (b"OPTIONS *", Sniff::NeedMore),
            (b"OPTIONS * ", Sniff::Http1),
            (b"M-SEARCH http://h/", Sniff::Http1),
            (b"GET HTTP", Sniff::NeedMore),
            (b"GET HTTPS://", Sniff::Http1),
            (b"CONNECT h:443", Sniff::Http1),
            (b"\r\n\r\nGET /", Sniff::Http1),
            (b"\r", Sniff::NeedMore),
            (b"\r\r", Sniff::Other),
            (b"\nGET /", Sniff::Other),
            (b"SSH-2.0-OpenSSH_9.2\r\n", Sniff::Other),
            (b"EHLO mail.example\r\n", Sniff::Other),
            (b"GET key\r\n", Sniff::Other),
            (b"*1\r\n$4\r\nPING\r\n", Sniff::Other),
            (b"{\"jsonrpc\"", Sniff::Other),
            (b"\x00\x00\x00\x08\x04\xd2\x16\x2f", Sniff::Other), // PostgreSQL asks for TLS
            (long_method.as_bytes(), Sniff::Other),
        ] {
            assert_eq!(
                classify(bytes),
                expected,
                "{:?}",
                bytes.escape_ascii().to_string()
            );
        }
    }

    proptest! {
        #[test]
        fn more_bytes_never_change_an_answer(
            head in prop::sample::select(vec![
                &b"GET http://h/ HTTP/1.1\r\n"[..], H2_PREFACE, b"\x16\x03\x01\x02\x00\x01", b"\r\nX", b"",
            ]),
            keep in 0usize..40,
            tail in prop::collection::vec(any::<u8>(), 0..60),
        ) {
            let bytes = [&head[..keep.min(head.len())], &tail].concat();
            let mut answer = Sniff::NeedMore;
            for end in 0..=bytes.len() {
                let now = classify(&bytes[..end]);
                if answer == Sniff::NeedMore {
                    answer = now;
                } else {
                    prop_assert_eq!(answer, now);
                }
            }
        }
    }

    #[tokio::test]
    async fn sniffed_bytes_are_read_again() {
        let (mut client, server) = tokio::io::duplex(64);
        let writer = tokio::spawn(async move {
            for byte in b"POST /x HTTP/1.1\r\n" {
                tokio::io::AsyncWriteExt::write_all(&mut client, &[*byte])
                    .await
                    .unwrap();
            }
        });
        let sniffed = sniff(server, Duration::from_mins(1)).await.unwrap();
        let (first, mut stream) = sniffed.unwrap();
        assert_eq!(first, Sniff::Http1);
        let mut all = String::new();
        stream.read_to_string(&mut all).await.unwrap();
        assert_eq!(all, "POST /x HTTP/1.1\r\n");
        writer.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn silence_ends_the_wait() {
        let (_client, server) = tokio::io::duplex(64);
        let sniffed = sniff(server, Duration::from_secs(1)).await.unwrap();
        assert!(sniffed.is_none());
    }
}
