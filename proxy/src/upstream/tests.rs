//! Real sockets, an upstream scripted byte by byte where bytes matter.

mod approval;
mod http1;
mod http2;
mod reach;
mod tls;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response, Version};
use http_body::Body;
use http_body_util::{BodyExt, Empty, Full};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, LocalSet, spawn_local};

use super::*;

/// Runs a test the way a worker runs: one thread, local tasks.
fn on_worker<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    LocalSet::new().block_on(&runtime, test)
}

fn config() -> ProxyConfig {
    ProxyConfig::with_home("/nowhere".into())
}

fn upstreams() -> Upstreams {
    upstreams_of(&config())
}

fn upstreams_of(config: &ProxyConfig) -> Upstreams {
    Upstreams::new(Shared::new(config).unwrap())
}

/// Upstreams for which names mean these addresses and nothing else exists.
fn upstreams_where(config: &ProxyConfig, names: &[(&str, &[&str])]) -> Upstreams {
    let lines = names
        .iter()
        .flat_map(|(name, ips)| ips.iter().map(move |ip| format!("{ip} {name}\n")));
    let hosts = tempfile::NamedTempFile::new().unwrap().into_temp_path();
    std::fs::write(&hosts, lines.collect::<String>()).unwrap();
    let resolver = Resolver::with_hosts_file(hosts.keep().unwrap());
    Upstreams::new(Shared::with_resolver(config, resolver).unwrap())
}

impl Upstreams {
    fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Idle HTTP/1.1 connections.
    fn idle(&self) -> usize {
        self.pool.idle()
    }

    fn close_idle(&self) {
        self.pool.clear();
    }
}

fn whole(text: &'static str) -> Outgoing {
    Box::pin(Full::new(Bytes::from_static(text.as_bytes())).map_err(|never| match never {}))
}

fn none() -> Outgoing {
    Box::pin(Empty::new().map_err(|never| match never {}))
}

fn get(version: Version) -> Request<Outgoing> {
    Request::builder()
        .uri("/path?query")
        .version(version)
        .body(none())
        .unwrap()
}

fn post(body: Outgoing) -> Request<Outgoing> {
    Request::builder()
        .method("POST")
        .uri("/")
        .body(body)
        .unwrap()
}

async fn text<B>(response: Response<B>) -> String
where
    B: Body<Data = Bytes, Error: std::fmt::Debug>,
{
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Sends in the background, so that the test can play the upstream meanwhile.
fn send(
    upstreams: &Upstreams,
    origin: &UpstreamOrigin,
    request: Request<Outgoing>,
) -> JoinHandle<Result<Response<Received>, UpstreamError>> {
    let (upstreams, origin) = (upstreams.clone(), origin.clone());
    spawn_local(async move {
        upstreams
            .send(&origin, request, &OriginalNames::default())
            .await
    })
}

/// An upstream that says what the test tells it to.
struct Script {
    listener: TcpListener,
}

impl Script {
    async fn listen() -> Self {
        Self::listen_on("127.0.0.1:0").await
    }

    async fn listen_on(address: &str) -> Self {
        Self {
            listener: TcpListener::bind(address).await.unwrap(),
        }
    }

    fn address(&self) -> SocketAddr {
        self.listener.local_addr().unwrap()
    }

    fn origin(&self) -> UpstreamOrigin {
        let address = self.address();
        UpstreamOrigin::new(Scheme::Http, &address.ip().to_string(), address.port())
    }

    async fn accept(&self) -> Peer {
        Peer(self.listener.accept().await.unwrap().0)
    }
}

struct Peer(TcpStream);

impl Peer {
    /// Everything up to the empty line.
    async fn head(&mut self) -> String {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(self.0.read_u8().await.unwrap());
        }
        String::from_utf8(head).unwrap()
    }

    async fn read(&mut self, length: usize) -> String {
        let mut bytes = vec![0; length];
        self.0.read_exact(&mut bytes).await.unwrap();
        String::from_utf8(bytes).unwrap()
    }

    async fn say(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).await.unwrap();
    }

    /// Reads a request's head and answers it.
    async fn answer(&mut self, response: &str) -> String {
        let head = self.head().await;
        self.say(response).await;
        head
    }

    /// True when the other side has closed, by FIN or RST.
    async fn is_closed(&mut self) -> bool {
        let mut rest = Vec::new();
        match self.0.read_to_end(&mut rest).await {
            Ok(_) => rest.is_empty(),
            Err(error) => error.kind() == io::ErrorKind::ConnectionReset,
        }
    }

    fn reset(self) {
        self.0.set_zero_linger().unwrap();
    }
}
