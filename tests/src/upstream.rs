//! An HTTP/1.1 server that does what a test says, byte for byte.
//!
//! Every connection has a thread; what arrives is kept raw ([`Upstream::requests`]), what is sent
//! is whatever the handler writes: whole answers, halves of them, an RST. Ready-made answers are in
//! [`standard`].

pub mod bedrock;
pub mod chat;
pub mod gemini;
pub mod mcp;
pub mod messages;
pub mod ollama;
pub mod responses;
pub mod shop;
pub mod standard;

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Instant;

use rustls::ServerConfig;

use crate::PATIENCE;
use crate::duplex::Duplex;

/// A request as it arrived.
#[derive(Clone, Default)]
pub struct Request {
    /// The head, byte for byte, with the empty line.
    pub head: Vec<u8>,
    /// The method.
    pub method: String,
    /// The request target as written.
    pub target: String,
    /// Header lines in order, names as written, values without the space around them.
    pub headers: Vec<(String, String)>,
    /// The body without chunk framing.
    pub body: Vec<u8>,
    /// The body as it came, with chunk framing.
    pub raw_body: Vec<u8>,
    /// Which connection it came on, from 0.
    pub connection: usize,
}

impl std::fmt::Debug for Request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let length = self.body.len();
        f.debug_struct("Request")
            .field("head", &String::from_utf8_lossy(&self.head))
            .field(
                "body",
                &String::from_utf8_lossy(&self.body[..length.min(1000)]),
            )
            .field("length", &length)
            .field("connection", &self.connection)
            .finish_non_exhaustive()
    }
}

impl Request {
    /// The first value of a header, by its name in any case.
    pub fn header(&self, name: &str) -> Option<&str> {
        find(&self.headers, name)
    }

    /// The body as JSON; null if it is none.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

pub(crate) fn find<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers
        .iter()
        .find(|(one, _)| one.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.as_str())
}

/// Splits a head into its first line and its header lines.
pub(crate) fn parse_head(head: &[u8]) -> (String, Vec<(String, String)>) {
    let text: String = head.iter().map(|&byte| char::from(byte)).collect();
    let mut lines = text.split("\r\n");
    let first = lines.next().unwrap_or_default().to_owned();
    let headers = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
        .collect();
    (first, headers)
}

/// A running server; its threads end with the test's process.
#[derive(Debug)]
pub struct Upstream {
    /// Where it listens.
    pub address: SocketAddr,
    seen: Arc<Seen>,
    steps: Sender<()>,
}

#[derive(Debug, Default)]
struct Seen {
    requests: Mutex<Vec<Request>>,
    /// Notified of every request, and of every connection that ends.
    news: Condvar,
    opened: AtomicUsize,
    ended: AtomicUsize,
}

/// What one connection's handler works with.
#[derive(Debug)]
pub struct Connection {
    duplex: Duplex,
    buffer: Vec<u8>,
    number: usize,
    seen: Arc<Seen>,
    steps: Arc<Mutex<Receiver<()>>>,
}

impl Upstream {
    /// Serves each connection with `handler`; encrypted if there is a `tls`.
    pub fn start(
        tls: Option<Arc<ServerConfig>>,
        handler: impl Fn(Connection) + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let address = listener.local_addr().expect("a bound listener");
        let seen = Arc::new(Seen::default());
        let (steps, stepped) = channel();
        let stepped = Arc::new(Mutex::new(stepped));
        let handler = Arc::new(handler);
        let all_seen = seen.clone();
        std::thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                let number = all_seen.opened.fetch_add(1, Ordering::SeqCst);
                let (seen, steps) = (all_seen.clone(), stepped.clone());
                let (tls, handler) = (tls.clone(), handler.clone());
                std::thread::spawn(move || {
                    let duplex = match tls {
                        Some(config) => Duplex::server(socket, config),
                        None => Ok(Duplex::plain(socket)),
                    };
                    // A client that fails the handshake is part of some tests.
                    if let Ok(duplex) = duplex {
                        let buffer = Vec::new();
                        let ended = seen.clone();
                        handler(Connection {
                            duplex,
                            buffer,
                            number,
                            seen,
                            steps,
                        });
                        ended.ended.fetch_add(1, Ordering::SeqCst);
                        ended.news.notify_all();
                    }
                });
            }
        });
        Self {
            address,
            seen,
            steps,
        }
    }

    /// Serves [`standard`] answers in clear.
    pub fn plain() -> Self {
        Self::start(None, standard::serve)
    }

    /// What has arrived so far.
    pub fn requests(&self) -> Vec<Request> {
        self.seen
            .requests
            .lock()
            .expect("no handler panicked")
            .clone()
    }

    /// The last request with `target`. A daemon of another test may still call a port that was
    /// released to this upstream, so the last request of all can be a stranger's.
    pub fn request_to(&self, target: &str) -> Request {
        let mut requests = self.requests();
        let found = requests.iter().rposition(|one| one.target == target);
        let found = found.unwrap_or_else(|| panic!("no request to {target} in {requests:#?}"));
        requests.swap_remove(found)
    }

    /// Connections accepted so far.
    pub fn opened(&self) -> usize {
        self.seen.opened.load(Ordering::SeqCst)
    }

    /// Waits until `count` requests' heads have arrived.
    pub fn wait_for_requests(&self, count: usize) {
        self.wait("requests", |requests, _| requests >= count);
    }

    /// Waits until `count` connections have ended.
    pub fn wait_for_ends(&self, count: usize) {
        self.wait("ended connections", |_, ended| ended >= count);
    }

    fn wait(&self, what: &str, enough: impl Fn(usize, usize) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        let mut requests = self.seen.requests.lock().expect("no handler panicked");
        while !enough(requests.len(), self.seen.ended.load(Ordering::SeqCst)) {
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(
                !left.is_zero(),
                "the upstream waits for {what}; it has seen {requests:#?}"
            );
            (requests, _) = self
                .seen
                .news
                .wait_timeout(requests, left)
                .expect("no handler panicked");
        }
    }

    /// Lets a handler that waits in [`Connection::wait_for_step`] go on.
    pub fn step(&self) {
        self.steps
            .send(())
            .expect("the upstream lives as long as this");
    }
}

impl Connection {
    /// Reads one request with its body; `None` when the peer has closed.
    pub fn request(&mut self) -> Option<Request> {
        let mut request = self.head()?;
        self.body(&mut request)?;
        Some(request)
    }

    /// Reads one request's head and leaves the body where it is.
    pub fn head(&mut self) -> Option<Request> {
        let end = self.fill(|bytes| find_bytes(bytes, b"\r\n\r\n"))? + 4;
        let head: Vec<u8> = self.buffer.drain(..end).collect();
        let (line, headers) = parse_head(&head);
        let mut words = line.split(' ').map(str::to_owned);
        let request = Request {
            method: words.next().unwrap_or_default(),
            target: words.next().unwrap_or_default(),
            head,
            headers,
            connection: self.number,
            ..Request::default()
        };
        self.seen.requests.lock().ok()?.push(request.clone());
        self.seen.news.notify_all();
        Some(request)
    }

    /// Reads the body that belongs to `request` into it.
    pub fn body(&mut self, request: &mut Request) -> Option<()> {
        if let Some(length) = request
            .header("content-length")
            .and_then(|text| text.parse().ok())
        {
            self.fill(|bytes| (bytes.len() >= length).then_some(length))?;
            request.raw_body = self.buffer.drain(..length).collect();
            request.body.clone_from(&request.raw_body);
        } else if request.header("transfer-encoding").is_some() {
            self.chunks(request)?;
        }
        let mut requests = self.seen.requests.lock().ok()?;
        let this = requests
            .iter_mut()
            .rev()
            .find(|one| one.connection == self.number)?;
        *this = request.clone();
        Some(())
    }

    fn chunks(&mut self, request: &mut Request) -> Option<()> {
        loop {
            let line = self.fill(|bytes| find_bytes(bytes, b"\r\n"))? + 2;
            let size: Vec<u8> = self.buffer.drain(..line).collect();
            request.raw_body.extend_from_slice(&size);
            let text = String::from_utf8_lossy(&size);
            let digits = text.split(';').next().unwrap_or_default().trim();
            let size = usize::from_str_radix(digits, 16).ok()?;
            if size == 0 {
                // Trailers, up to the empty line.
                let end = self.fill(|bytes| {
                    let none = bytes.starts_with(b"\r\n").then_some(2);
                    none.or_else(|| find_bytes(bytes, b"\r\n\r\n").map(|at| at + 4))
                })?;
                request.raw_body.extend(self.buffer.drain(..end));
                return Some(());
            }
            self.fill(|bytes| (bytes.len() >= size + 2).then_some(()))?;
            request.body.extend_from_slice(&self.buffer[..size]);
            request.raw_body.extend(self.buffer.drain(..size + 2));
        }
    }

    /// Reads until `enough` finds what it looks for; `None` at the end of the connection.
    fn fill<T>(&mut self, enough: impl Fn(&[u8]) -> Option<T>) -> Option<T> {
        loop {
            if let Some(found) = enough(&self.buffer) {
                return Some(found);
            }
            let mut piece = [0; 16 * 1024];
            match self.duplex.read(&mut piece) {
                Ok(0) | Err(_) => return None,
                Ok(read) => self.buffer.extend_from_slice(&piece[..read]),
            }
        }
    }

    /// Writes and flushes; false when the peer is gone.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.duplex
            .write_all(bytes.as_ref())
            .and_then(|()| self.duplex.flush())
            .is_ok()
    }

    /// Reads whatever comes next; empty at the end of the connection.
    pub fn receive(&mut self) -> Vec<u8> {
        if !self.buffer.is_empty() {
            return std::mem::take(&mut self.buffer);
        }
        let mut piece = [0; 16 * 1024];
        let read = self.duplex.read(&mut piece).unwrap_or(0);
        piece[..read].to_vec()
    }

    /// Holds the connection until the peer closes it or sends something.
    pub fn hold(&mut self) {
        loop {
            let mut piece = [0; 1024];
            match self.duplex.read(&mut piece) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
        }
    }

    /// Waits for [`Upstream::step`]; false when the test has ended.
    pub fn wait_for_step(&self) -> bool {
        self.steps
            .lock()
            .is_ok_and(|steps| steps.recv_timeout(PATIENCE).is_ok())
    }

    /// Ends the connection with an RST.
    pub fn reset(self) {
        self.duplex.reset();
    }
}

fn find_bytes(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}
