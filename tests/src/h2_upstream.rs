//! An HTTP/2 server: gRPC-like echo, many streams, resets with a code.
//!
//! | path | answer |
//! |---|---|
//! | `/bytes/N` | N bytes of the pattern |
//! | `/version` | the protocol version the request came in |
//! | `/reset/CODE` | RST_STREAM with that code, before any head |
//! | `/length` | the request's `content-length`, or `none` |
//! | anything else | the request's body back as it arrives, its content type, and trailers `grpc-status: 0` |

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body_util::{BodyExt as _, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::upstream::standard::pattern;

type Body = UnsyncBoxBody<Bytes, Refused>;

/// A running server; ends with the test's process.
#[derive(Debug)]
pub struct H2Upstream {
    /// Where it listens.
    pub address: SocketAddr,
    opened: Arc<AtomicUsize>,
}

/// A stream that is to be reset with the code it holds.
#[derive(Debug)]
struct Refused(h2::Error);

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Refused {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

impl H2Upstream {
    /// Serves HTTP/2 alone: by prior knowledge, or over TLS when there is a `tls`.
    pub fn start(tls: Option<Arc<ServerConfig>>) -> Self {
        let opened = Arc::new(AtomicUsize::new(0));
        let counted = opened.clone();
        let (send, receive) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime");
            tokio::task::LocalSet::new().block_on(&runtime, async move {
                let listener = TcpListener::bind(("127.0.0.1", 0))
                    .await
                    .expect("a free port");
                send.send(listener.local_addr().expect("a bound listener"))
                    .expect("a test waits");
                loop {
                    let (socket, _) = listener.accept().await.expect("a listener accepts");
                    counted.fetch_add(1, Ordering::SeqCst);
                    tokio::task::spawn_local(serve(socket, tls.clone()));
                }
            });
        });
        Self {
            address: receive.recv().expect("the listener's address"),
            opened,
        }
    }

    /// Connections accepted so far.
    pub fn opened(&self) -> usize {
        self.opened.load(Ordering::SeqCst)
    }
}

/// Clients that leave, or that fail the handshake, are part of the tests.
async fn serve(socket: TcpStream, tls: Option<Arc<ServerConfig>>) {
    let builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
    match tls {
        Some(config) => {
            if let Ok(stream) = TlsAcceptor::from(config).accept(socket).await {
                let _ = builder
                    .serve_connection(TokioIo::new(stream), service_fn(answer))
                    .await;
            }
        }
        None => {
            let _ = builder
                .serve_connection(TokioIo::new(socket), service_fn(answer))
                .await;
        }
    }
}

async fn answer(request: Request<Incoming>) -> Result<Response<Body>, Refused> {
    let path = request.uri().path().to_owned();
    let whole = |bytes: Vec<u8>| Full::new(bytes.into()).map_err(never).boxed_unsync();
    if let Some(length) = path
        .strip_prefix("/bytes/")
        .and_then(|text| text.parse().ok())
    {
        return Ok(Response::new(whole(pattern(length))));
    }
    if let Some(code) = path
        .strip_prefix("/reset/")
        .and_then(|text| text.parse::<u32>().ok())
    {
        return Err(Refused(h2::Reason::from(code).into()));
    }
    if path == "/version" {
        return Ok(Response::new(whole(
            format!("{:?}", request.version()).into_bytes(),
        )));
    }
    if path == "/length" {
        let length = request.headers().get("content-length");
        let length = length.map_or(&b"none"[..], HeaderValue::as_bytes);
        return Ok(Response::new(whole(length.to_vec())));
    }
    let kind = request.headers().get("content-type").cloned();
    let mut response = Response::new(echo(request.into_body()));
    if let Some(kind) = kind {
        response.headers_mut().insert("content-type", kind);
    }
    Ok(response)
}

/// The body as it arrives, then gRPC's trailers.
fn echo(body: Incoming) -> Body {
    let frames = futures_util::stream::unfold(Some(body), |body| async {
        let mut body = body?;
        loop {
            match body.frame().await {
                Some(Ok(frame)) if frame.is_data() => return Some((Ok(frame), Some(body))),
                Some(Ok(_)) => {}
                Some(Err(_)) => return None,
                None => {
                    let mut trailers = HeaderMap::new();
                    trailers.insert("grpc-status", HeaderValue::from_static("0"));
                    return Some((Ok(Frame::trailers(trailers)), None));
                }
            }
        }
    });
    StreamBody::new(frames).boxed_unsync()
}

fn never(never: Infallible) -> Refused {
    match never {}
}
