//! Floor `H`: what hyper costs with nothing added.
//!
//! A reverse proxy (and, for absolute-form requests, a forward one) of the simplest kind: hyper's
//! server, hyper-util's shared pool, bodies streamed, hop-by-hop headers left alone.

use std::net::SocketAddr;

use anyhow::Result;
use http_body_util::{BodyExt, Empty, combinators::BoxBody};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::net::TcpListener;

type Upstream = Client<HttpConnector, Incoming>;

/// Serves until the process is killed; `upstream` is where origin-form requests go.
pub async fn serve(upstream: SocketAddr) -> Result<()> {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let client: Upstream = Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .set_host(false)
        .build(connector);
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    println!("ready http={}", listener.local_addr()?.port());
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let client = client.clone();
        tokio::spawn(async move {
            let service = service_fn(move |request| forward(client.clone(), upstream, request));
            // An agent that leaves is no failure of the floor's.
            let _ = hyper::server::conn::http1::Builder::new()
                .preserve_header_case(true)
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

async fn forward(
    client: Upstream,
    upstream: SocketAddr,
    mut request: Request<Incoming>,
) -> Result<Response<BoxBody<Bytes, hyper::Error>>, hyper::Error> {
    if request.uri().authority().is_none() {
        let path = request
            .uri()
            .path_and_query()
            .map_or("/", |path| path.as_str());
        match format!("http://{upstream}{path}").parse::<Uri>() {
            Ok(uri) => *request.uri_mut() = uri,
            Err(_) => return Ok(refusal(StatusCode::BAD_REQUEST)),
        }
    }
    match client.request(request).await {
        Ok(response) => Ok(response.map(BodyExt::boxed)),
        Err(_) => Ok(refusal(StatusCode::BAD_GATEWAY)),
    }
}

fn refusal(status: StatusCode) -> Response<BoxBody<Bytes, hyper::Error>> {
    let empty = Empty::new().map_err(|never| match never {}).boxed();
    let mut response = Response::new(empty);
    *response.status_mut() = status;
    response
}
