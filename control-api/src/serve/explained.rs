//! Heads that the HTTP library refuses, answered with a problem as everything else is.
//!
//! hyper answers what it cannot read by itself, with a status and an empty body, and cannot be told of
//! another. Such an answer is known on its way out, and its problem is written in its place.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http::StatusCode;
use squall_proxy::problem;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::connections::Progress;

/// A connection on which no refusal is bare.
pub(super) struct Explained<S> {
    stream: S,
    /// Whoever takes what is written is not idle.
    progress: Progress,
    /// What goes out in the place of a bare refusal, and how much of it has.
    instead: Vec<u8>,
    written: usize,
}

impl<S> Explained<S> {
    pub(super) fn new(stream: S, progress: Progress) -> Self {
        Self {
            stream,
            progress,
            instead: Vec::new(),
            written: 0,
        }
    }
}

impl<S: AsyncWrite + Unpin> Explained<S> {
    fn poll_instead(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.written < self.instead.len() {
            let rest = &self.instead[self.written..];
            match ready!(Pin::new(&mut self.stream).poll_write(cx, rest))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => self.written += written,
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Explained<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Explained<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_instead(cx))?;
        match explained(bytes) {
            None => {
                let written = ready!(Pin::new(&mut self.stream).poll_write(cx, bytes));
                self.progress.send_modify(|_| {});
                Poll::Ready(written)
            }
            Some(instead) => {
                self.instead = instead;
                self.written = 0;
                // Taken as a whole; the flush that follows writes it out.
                Poll::Ready(Ok(bytes.len()))
            }
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_instead(cx))?;
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_instead(cx))?;
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut filled = buffers.iter().filter(|buffer| !buffer.is_empty());
        if let (Some(only), None) = (filled.next(), filled.next()) {
            return self.poll_write(cx, only);
        }
        ready!(self.poll_instead(cx))?;
        let written = ready!(Pin::new(&mut self.stream).poll_write_vectored(cx, buffers));
        self.progress.send_modify(|_| {});
        Poll::Ready(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

/// The answer with a problem, if these bytes are a refusal of the library's: all of a head without a body,
/// as no answer of the API's is.
fn explained(bytes: &[u8]) -> Option<Vec<u8>> {
    const EMPTY: &str = "content-length: 0\r\n";
    const LONGEST: usize = 256;
    if bytes.len() > LONGEST {
        return None;
    }
    let head = std::str::from_utf8(bytes).ok()?;
    let is_all = head.find("\r\n\r\n") == head.len().checked_sub(4);
    let status = head.strip_prefix("HTTP/1.").filter(|_| is_all)?.get(2..5)?;
    let (before, after) = head.split_once(EMPTY)?;
    let (slug, title, detail) = match status {
        "400" => (
            "malformed",
            "Malformed request",
            "this is no request as RFC 9112 has them: its first line, a header or the length of its body \
             cannot be read",
        ),
        "414" => (
            "uri-too-long",
            "URI too long",
            "the request's target has more than 65,534 bytes; what is long belongs into the body",
        ),
        "431" => (
            "head-too-large",
            "Request head too large",
            "the request's head has more than 100 headers, or is longer than 400 KiB; send fewer",
        ),
        _ => return None,
    };
    let status = StatusCode::from_bytes(status.as_bytes()).ok()?;
    let body = problem::document(status, slug, title, detail).to_string();
    let length = body.len();
    let kind = "content-type: application/problem+json\r\n";
    Some(format!("{before}{kind}content-length: {length}\r\n{after}{body}").into_bytes())
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use axum::Router;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};
    use tokio_util::sync::CancellationToken;

    use super::super::connections::Connections;
    use super::*;

    /// What is answered to these bytes, to the connection's end.
    async fn answer(address: SocketAddr, sent: &[u8]) -> String {
        let mut stream = TcpStream::connect(address).await.expect("it listens");
        stream.write_all(sent).await.expect("it reads");
        let mut answer = Vec::new();
        // What it did not read any more may reset the connection behind the answer.
        let _ = stream.read_to_end(&mut answer).await;
        String::from_utf8(answer).expect("a text")
    }

    #[tokio::test]
    async fn what_is_no_request_is_answered_with_a_problem() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("it is bound");
        let routes = Router::new().route("/", axum::routing::get(|| async { "fine" }));
        let serving = tokio::spawn(async move {
            let mut connections = Connections::new(8, CancellationToken::new());
            while let Ok((stream, peer)) = listener.accept().await {
                connections.serve(stream, peer, routes.clone());
            }
        });
        let fine = b"GET / HTTP/1.1\r\nhost: h\r\n\r\n";
        let target = [b"GET /", &b"a".repeat(70_000)[..], b" HTTP/1.1\r\n\r\n"].concat();
        let headers = [b"GET / HTTP/1.1\r\n", &b"x: y\r\n".repeat(200)[..], b"\r\n"].concat();
        for (sent, status, slug) in [
            (
                &b"\x16\x03\x01 no HTTP at all\r\n\r\n"[..],
                "400",
                "malformed",
            ),
            (b"GET / HTTP/3.7\r\n\r\n", "400", "malformed"),
            (
                b"POST / HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n12",
                "400",
                "malformed",
            ),
            (&[&fine[..], b"\0\r\n\r\n"].concat(), "400", "malformed"),
            (&target, "414", "uri-too-long"),
            (&headers, "431", "head-too-large"),
        ] {
            let answer = answer(address, sent).await;
            let from = answer.rfind("HTTP/1.1 ").expect("an answer");
            let (head, body) = answer[from..].split_once("\r\n\r\n").expect("a head");
            assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{head}");
            assert!(
                head.contains("content-type: application/problem+json"),
                "{head}"
            );
            assert!(
                head.contains(&format!("content-length: {}\r\n", body.len())),
                "{head}"
            );
            let body: serde_json::Value = serde_json::from_str(body).expect("JSON");
            assert_eq!(body["type"], format!("urn:squall:problem:{slug}"));
            assert_eq!(body["status"].to_string(), status);
        }
        serving.abort();
    }

    #[test]
    fn nothing_else_is_touched() {
        for bytes in [
            "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
            "HTTP/1.1 400 Bad Request\r\ncontent-length: 2\r\n\r\n{}",
            "HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
            "content-length: 0\r\n\r\n",
            "HTTP/1.1 400",
            "",
        ] {
            assert_eq!(explained(bytes.as_bytes()), None, "{bytes}");
        }
    }
}
