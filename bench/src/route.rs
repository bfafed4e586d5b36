//! How the load generator reaches the upstream: straight, or through one of the proxies.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream as StdStream};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::http::Answer;

/// No answer takes longer than this.
const PATIENCE: Duration = Duration::from_secs(30);

/// One way to the upstream.
#[derive(Debug, Clone)]
pub struct Route {
    /// Where connections go.
    pub connect: SocketAddr,
    /// What stands before the path on the request line: empty, or `http://HOST:PORT`.
    pub prefix: String,
    /// The `host` header.
    pub host: String,
    /// A CONNECT is sent for this authority first.
    pub tunnel: Option<String>,
    /// The connection is encrypted for this name.
    pub tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
}

/// An encrypted or plain connection of the async kind.
pub trait Duplex: AsyncRead + AsyncWrite + Unpin {}
impl<T: AsyncRead + AsyncWrite + Unpin> Duplex for T {}

/// An encrypted or plain connection of the blocking kind.
pub trait BlockingDuplex: Read + Write {}
impl<T: Read + Write> BlockingDuplex for T {}

impl Route {
    /// Straight to a plain server, or to a reverse proxy that looks like one.
    pub fn to(connect: SocketAddr) -> Self {
        Self {
            connect,
            prefix: String::new(),
            host: connect.to_string(),
            tunnel: None,
            tls: None,
        }
    }

    /// Through a forward proxy in absolute form.
    pub fn forward(proxy: SocketAddr, upstream: SocketAddr) -> Self {
        Self {
            connect: proxy,
            prefix: format!("http://{upstream}"),
            ..Self::to(upstream)
        }
    }

    /// Through CONNECT.
    pub fn tunnelled(self, proxy: SocketAddr) -> Self {
        Self {
            tunnel: Some(self.connect.to_string()),
            connect: proxy,
            ..self
        }
    }

    /// Encrypted, for `name`.
    pub fn encrypted(self, config: Arc<ClientConfig>, name: &str) -> Result<Self> {
        Ok(Self {
            tls: Some((config, ServerName::try_from(name.to_owned())?)),
            ..self
        })
    }

    /// The same way, but encrypted for another name.
    pub fn renamed(&self, name: &str) -> Result<Self> {
        let (config, _) = self
            .tls
            .clone()
            .context("only an encrypted route has a name")?;
        self.clone().encrypted(config, name)
    }

    /// The bytes of a GET.
    pub fn get(&self, path: &str) -> Vec<u8> {
        let (prefix, host) = (&self.prefix, &self.host);
        format!("GET {prefix}{path} HTTP/1.1\r\nhost: {host}\r\nuser-agent: bench\r\naccept: */*\r\n\r\n")
            .into_bytes()
    }

    /// The bytes of an upgrade to a WebSocket of model calls.
    pub fn upgrade(&self) -> Vec<u8> {
        let (prefix, host) = (&self.prefix, &self.host);
        format!(
            "GET {prefix}/v1/responses HTTP/1.1\r\nhost: {host}\r\nconnection: Upgrade\r\n\
             upgrade: websocket\r\nsec-websocket-version: 13\r\n\
             sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        )
        .into_bytes()
    }

    /// The bytes of a POST of JSON.
    pub fn post(&self, path: &str, body: &str) -> Vec<u8> {
        let (prefix, host, length) = (&self.prefix, &self.host, body.len());
        format!(
            "POST {prefix}{path} HTTP/1.1\r\nhost: {host}\r\nuser-agent: bench\r\naccept: */*\r\n\
             content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        )
        .into_bytes()
    }

    fn connect_request(authority: &str) -> Vec<u8> {
        format!("CONNECT {authority} HTTP/1.1\r\nhost: {authority}\r\n\r\n").into_bytes()
    }

    /// Connects, all the way through CONNECT and the handshake.
    pub async fn open(&self) -> Result<Box<dyn Duplex>> {
        let mut socket = TcpStream::connect(self.connect).await?;
        socket.set_nodelay(true)?;
        if let Some(authority) = &self.tunnel {
            socket.write_all(&Self::connect_request(authority)).await?;
            let mut head = Vec::with_capacity(256);
            while !head.ends_with(b"\r\n\r\n") {
                ensure!(
                    socket.read_buf(&mut head).await? > 0,
                    "CONNECT got no answer"
                );
            }
            check_connect(&head)?;
        }
        Ok(match &self.tls {
            Some((config, name)) => {
                let connector = TlsConnector::from(config.clone());
                Box::new(connector.connect(name.clone(), socket).await?)
            }
            None => Box::new(socket),
        })
    }

    /// As [`Route::open`], for a thread of its own that may block.
    pub fn open_blocking(&self) -> Result<Box<dyn BlockingDuplex>> {
        let mut socket = StdStream::connect(self.connect)?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        if let Some(authority) = &self.tunnel {
            socket.write_all(&Self::connect_request(authority))?;
            let mut head = Vec::with_capacity(256);
            let mut piece = [0; 256];
            while !head.ends_with(b"\r\n\r\n") {
                let read = socket.read(&mut piece)?;
                ensure!(read > 0, "CONNECT got no answer");
                head.extend_from_slice(&piece[..read]);
            }
            check_connect(&head)?;
        }
        Ok(match &self.tls {
            Some((config, name)) => {
                let connection = ClientConnection::new(config.clone(), name.clone())?;
                Box::new(StreamOwned::new(connection, socket))
            }
            None => Box::new(socket),
        })
    }
}

fn check_connect(head: &[u8]) -> Result<()> {
    match head.get(..12) {
        Some(b"HTTP/1.1 200") => Ok(()),
        _ => bail!("CONNECT was answered {:?}", String::from_utf8_lossy(head)),
    }
}

/// Sends one request and reads its answer; the body's length.
pub async fn exchange(
    stream: &mut (impl Duplex + ?Sized),
    request: &[u8],
    scratch: &mut [u8],
) -> Result<usize> {
    stream.write_all(request).await?;
    stream.flush().await?;
    let mut answer = Answer::new();
    loop {
        let read = stream.read(scratch).await?;
        ensure!(read > 0, "the connection ended inside an answer");
        if answer.feed(&scratch[..read])? {
            ensure!(answer.status == 200, "status {}", answer.status);
            return Ok(answer.body);
        }
    }
}

/// As [`exchange`], blocking.
pub fn exchange_blocking(
    stream: &mut (impl BlockingDuplex + ?Sized),
    request: &[u8],
    scratch: &mut [u8],
) -> Result<usize> {
    stream.write_all(request)?;
    stream.flush()?;
    let mut answer = Answer::new();
    loop {
        let read = stream.read(scratch).context("waiting for an answer")?;
        ensure!(read > 0, "the connection ended inside an answer");
        if answer.feed(&scratch[..read])? {
            ensure!(answer.status == 200, "status {}", answer.status);
            return Ok(answer.body);
        }
    }
}
