//! A small HTTP server on a free loopback port, for the simulated tools and model.

use std::convert::Infallible;
use std::net::SocketAddr;

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

/// A body that is sent whole or as a stream.
pub(crate) type Body = UnsyncBoxBody<Bytes, Infallible>;

/// Serves until the runtime ends; returns the address.
pub(crate) async fn listen<H, F>(handler: H) -> std::io::Result<SocketAddr>
where
    H: Fn(Request<Incoming>) -> F + Copy + Send + 'static,
    F: Future<Output = Response<Body>> + Send + 'static,
{
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        // If the listener fails permanently, the demo's agent reports the lost service.
        while let Ok((socket, _)) = listener.accept().await {
            tokio::spawn(async move {
                let service = service_fn(move |request| async move {
                    Ok::<_, Infallible>(handler(request).await)
                });
                // The demo breaks connections on purpose.
                let _ = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(socket), service)
                    .await;
            });
        }
    });
    Ok(address)
}

/// A JSON response.
pub(crate) fn json(status: StatusCode, document: &serde_json::Value) -> Response<Body> {
    answer(
        status,
        "application/json",
        Full::new(document.to_string().into()).boxed_unsync(),
    )
}

/// A response with any body.
pub(crate) fn answer(status: StatusCode, content_type: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert("content-type", HeaderValue::from_static(content_type));
    response
}

/// A request's JSON body; null when it is none.
pub(crate) async fn read_json(request: Request<Incoming>) -> serde_json::Value {
    match request.into_body().collect().await {
        Ok(body) => serde_json::from_slice(&body.to_bytes()).unwrap_or_default(),
        Err(_) => serde_json::Value::Null,
    }
}
