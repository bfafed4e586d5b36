//! Requests whose bytes of the head are changed, so that no HTTP client would send them.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use reqwest::header::{HOST, HeaderValue};
use reqwest::{Body, Request, Response};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::UnsentChange;
use crate::dial::Dialler;

/// Sends a request on a connection of its own, with `to` instead of `from` in the bytes of its head.
pub(super) async fn send(
    mut request: Request,
    from: &str,
    to: &str,
    dialler: &Dialler,
) -> Result<Response, UnsentChange> {
    let url = request.url().clone();
    let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else {
        return Err(UnsentChange::Request("the URL has no host".to_owned()));
    };
    let socket = dialler.connect(host.trim_matches(['[', ']']), port).await;
    let socket = socket.map_err(|error| UnsentChange::Unreachable(error.to_string()))?;
    let broken = |error: &dyn std::error::Error| UnsentChange::Broken(error.to_string());
    let socket = Reframed {
        socket,
        edit: Some((from.as_bytes().to_vec(), to.as_bytes().to_vec())),
        pending: Vec::new(),
        accepted: 0,
    };
    let mut client = http1::Builder::new();
    // An agent may answer a head that it cannot read without a status line.
    client.http09_responses(true);
    let (mut sender, connection) = client
        .handshake(TokioIo::new(socket))
        .await
        .map_err(|error| broken(&error))?;
    let body = request.body().and_then(Body::as_bytes).unwrap_or_default();
    let mut framed = http::Request::new(Full::new(Bytes::copy_from_slice(body)));
    *framed.method_mut() = request.method().clone();
    let query = url.query().map(|query| format!("?{query}"));
    let target = format!("{}{}", url.path(), query.unwrap_or_default());
    *framed.uri_mut() = target.parse().map_err(|error| broken(&error))?;
    *framed.headers_mut() = std::mem::take(request.headers_mut());
    let authority = HeaderValue::from_str(url.authority()).map_err(|error| broken(&error))?;
    framed.headers_mut().entry(HOST).or_insert(authority);
    // The connection ends with the response, which is the only one.
    tokio::spawn(connection);
    let response = sender.send_request(framed).await;
    let response = response.map_err(|error| {
        let source = std::error::Error::source(&error);
        let source = source.and_then(|source| source.downcast_ref::<io::Error>());
        if source.is_some_and(|source| source.kind() == io::ErrorKind::InvalidInput) {
            return UnsentChange::Request(format!("the head of the request has no {from:?}"));
        }
        broken(&error)
    })?;
    Ok(response.map(Body::wrap).into())
}

/// A socket that edits the first bytes that are written to it.
struct Reframed {
    socket: TcpStream,
    /// What is replaced in the head, and what replaces it.
    edit: Option<(Vec<u8>, Vec<u8>)>,
    /// The edited head that is not written yet.
    pending: Vec<u8>,
    /// The length of the head before it was edited.
    accepted: usize,
}

impl AsyncWrite for Reframed {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if let Some((from, to)) = this.edit.take() {
            let mut places = bytes.windows(from.len());
            let at = places.position(|some| some.eq_ignore_ascii_case(&from));
            let at = at.ok_or(io::ErrorKind::InvalidInput)?;
            this.pending = [&bytes[..at], &to, &bytes[at + from.len()..]].concat();
            this.accepted = bytes.len();
        }
        while !this.pending.is_empty() {
            let written = Pin::new(&mut this.socket).poll_write(context, &this.pending);
            this.pending.drain(..ready!(written)?);
        }
        match std::mem::take(&mut this.accepted) {
            0 => Pin::new(&mut this.socket).poll_write(context, bytes),
            accepted => Poll::Ready(Ok(accepted)),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().socket).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().socket).poll_shutdown(context)
    }
}

impl AsyncRead for Reframed {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().socket).poll_read(context, buffer)
    }
}
