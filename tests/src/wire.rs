//! The raw client: sends exact bytes, tells exactly what came back and how the connection ended.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path as FilePath;

use crate::PATIENCE;
use crate::authority::client;
use crate::duplex::Duplex;
use crate::upstream::{find, parse_head};

/// How a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// FIN, with or without TLS's farewell.
    Closed,
    /// RST.
    Reset,
    /// Not at all within [`PATIENCE`].
    StillOpen,
}

/// An answer, or as much of it as came.
#[derive(Clone, Default)]
pub struct Response {
    /// The status line and the headers, byte for byte, with the empty line; empty if none came.
    pub head: Vec<u8>,
    /// The status; 0 if none came.
    pub status: u16,
    /// Header lines in order, names as written.
    pub headers: Vec<(String, String)>,
    /// The body without chunk framing.
    pub body: Vec<u8>,
    /// Trailer lines.
    pub trailers: Vec<(String, String)>,
    /// Heads of 1xx answers before it.
    pub informational: Vec<Vec<u8>>,
    /// How the connection ended, when it ended before the answer did.
    pub broke: Option<End>,
}

impl std::fmt::Debug for Response {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let length = self.body.len();
        f.debug_struct("Response")
            .field("head", &String::from_utf8_lossy(&self.head))
            .field(
                "body",
                &String::from_utf8_lossy(&self.body[..length.min(1000)]),
            )
            .field("length", &length)
            .field("trailers", &self.trailers)
            .field("broke", &self.broke)
            .finish_non_exhaustive()
    }
}

impl Response {
    /// The first value of a header, by its name in any case.
    pub fn header(&self, name: &str) -> Option<&str> {
        find(&self.headers, name)
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error} in the body of {self:?}"))
    }
}

/// One connection to a proxy or a server.
#[derive(Debug)]
pub struct Wire {
    duplex: Duplex,
    buffer: Vec<u8>,
    ended: Option<End>,
    /// What stands before the path on a request line.
    pub prefix: String,
    /// The value of `Host`.
    pub host: String,
}

impl Wire {
    /// Connects in clear.
    pub fn connect(address: SocketAddr) -> Self {
        let socket = TcpStream::connect(address).expect("somebody listens there");
        Self::over(socket, address)
    }

    fn over(socket: TcpStream, address: SocketAddr) -> Self {
        Self {
            duplex: Duplex::plain(socket),
            buffer: Vec::new(),
            ended: None,
            prefix: String::new(),
            host: address.to_string(),
        }
    }

    /// Sends a CONNECT for `authority` with extra header lines (each with its CRLF).
    pub fn open_tunnel(&mut self, authority: &str, headers: &str) -> Response {
        self.send(format!(
            "CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n{headers}\r\n"
        ));
        let end = self.fill(|bytes| position(bytes, b"\r\n\r\n").map(|at| at + 4));
        match end {
            Ok(end) => {
                let mut response = self.parse(end);
                if response.status != 200 {
                    self.read_body(&mut response, false);
                }
                response
            }
            Err(end) => Response {
                broke: Some(end),
                ..Response::default()
            },
        }
    }

    /// Encrypts what follows, trusting the authority in `ca` alone.
    pub fn encrypt(self, ca: &FilePath, name: &str) -> std::io::Result<Self> {
        let socket = self.duplex.socket().try_clone()?;
        let duplex = Duplex::client(socket, client(ca, &["http/1.1"]), name)?;
        Ok(Self { duplex, ..self })
    }

    /// The socket alone; only for a connection in clear.
    pub fn into_socket(self) -> TcpStream {
        self.duplex.into_socket()
    }

    /// Writes bytes as they are. A peer that has closed already shows when its answer is read.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let _ = self
            .duplex
            .write_all(bytes.as_ref())
            .and_then(|()| self.duplex.flush());
    }

    /// Writes a request with `Host`, the header lines given, and `content-length` when there is a
    /// body.
    pub fn request(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) {
        let bytes = self.written(method, path, headers, body);
        self.send(bytes);
    }

    /// The bytes that [`Wire::request`] sends.
    pub fn written(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Vec<u8> {
        let (prefix, host) = (&self.prefix, &self.host);
        let mut text = format!("{method} {prefix}{path} HTTP/1.1\r\nHost: {host}\r\n");
        let length = body.len().to_string();
        let length = (!body.is_empty()).then_some(("Content-Length", length.as_str()));
        for (name, value) in headers.iter().copied().chain(length) {
            text.extend([name, ": ", value, "\r\n"]);
        }
        text.push_str("\r\n");
        [text.as_bytes(), body].concat()
    }

    /// GETs `path` and reads the answer.
    pub fn get(&mut self, path: &str) -> Response {
        self.request("GET", path, &[], b"");
        self.response()
    }

    /// POSTs JSON to `path` and reads the answer.
    pub fn post(&mut self, path: &str, body: &str) -> Response {
        self.request(
            "POST",
            path,
            &[("Content-Type", "application/json")],
            body.as_bytes(),
        );
        self.response()
    }

    /// Reads the answer to a request other than HEAD.
    pub fn response(&mut self) -> Response {
        self.read_response(false)
    }

    /// Reads the answer to a HEAD request.
    pub fn response_to_head(&mut self) -> Response {
        self.read_response(true)
    }

    fn read_response(&mut self, bodiless: bool) -> Response {
        let mut informational = Vec::new();
        loop {
            let mut response =
                match self.fill(|bytes| position(bytes, b"\r\n\r\n").map(|at| at + 4)) {
                    Ok(end) => self.parse(end),
                    Err(end) => {
                        let body = std::mem::take(&mut self.buffer);
                        return Response {
                            broke: Some(end),
                            body,
                            informational,
                            ..Response::default()
                        };
                    }
                };
            if (100..200).contains(&response.status) && response.status != 101 {
                informational.push(response.head);
                continue;
            }
            response.informational = informational;
            self.read_body(&mut response, bodiless);
            return response;
        }
    }

    fn parse(&mut self, end: usize) -> Response {
        let head: Vec<u8> = self.buffer.drain(..end).collect();
        let (line, headers) = parse_head(&head);
        let status = line
            .split(' ')
            .nth(1)
            .and_then(|code| code.parse().ok())
            .unwrap_or(0);
        Response {
            head,
            status,
            headers,
            ..Response::default()
        }
    }

    fn read_body(&mut self, response: &mut Response, bodiless: bool) {
        if bodiless || matches!(response.status, 101 | 204 | 304) {
            return;
        }
        let chunked = response
            .header("transfer-encoding")
            .is_some_and(|value| value == "chunked");
        let length = response
            .header("content-length")
            .and_then(|text| text.parse::<usize>().ok());
        let ended = match length {
            _ if chunked => self.read_chunks(response).err(),
            Some(length) => {
                let enough = self.fill(|bytes| (bytes.len() >= length).then_some(()));
                let taken = length.min(self.buffer.len());
                response.body.extend(self.buffer.drain(..taken));
                enough.err()
            }
            // Until the connection ends, which is then the answer's end too.
            None => {
                let end = self.fill(|_| None::<()>).err();
                response.body.append(&mut self.buffer);
                end.filter(|end| *end != End::Closed)
            }
        };
        response.broke = ended;
    }

    fn read_chunks(&mut self, response: &mut Response) -> Result<(), End> {
        loop {
            let line = self.fill(|bytes| position(bytes, b"\r\n"))?;
            let size: Vec<u8> = self.buffer.drain(..line + 2).take(line).collect();
            let size = String::from_utf8_lossy(&size).into_owned();
            let size = usize::from_str_radix(size.split(';').next().unwrap_or(""), 16)
                .unwrap_or_else(|_| panic!("chunk size {size:?} after {response:?}"));
            if size == 0 {
                return self.read_trailers(response);
            }
            let whole = self.fill(|bytes| (bytes.len() >= size + 2).then_some(()));
            let taken = size.min(self.buffer.len());
            response.body.extend(self.buffer.drain(..taken));
            whole?;
            self.buffer.drain(..2);
        }
    }

    fn read_trailers(&mut self, response: &mut Response) -> Result<(), End> {
        loop {
            let line = self.fill(|bytes| position(bytes, b"\r\n"))?;
            let text: Vec<u8> = self.buffer.drain(..line + 2).take(line).collect();
            if text.is_empty() {
                return Ok(());
            }
            response
                .trailers
                .extend(parse_head(&[b"\r\n", &text[..]].concat()).1);
        }
    }

    /// Reads until at least `length` bytes are there and takes them all.
    pub fn receive(&mut self, length: usize) -> Vec<u8> {
        // Fewer bytes are what the caller will complain about.
        let _ = self.fill(|bytes| (bytes.len() >= length).then_some(()));
        std::mem::take(&mut self.buffer)
    }

    /// Reads until `mark` has come and takes everything up to its end.
    pub fn receive_until(&mut self, mark: impl AsRef<[u8]>) -> Vec<u8> {
        let mark = mark.as_ref();
        let end = self.fill(|bytes| position(bytes, mark).map(|at| at + mark.len()));
        let end = end.unwrap_or_else(|end| {
            panic!(
                "{end:?} before {:?}, after {:?}",
                String::from_utf8_lossy(mark),
                String::from_utf8_lossy(&self.buffer)
            )
        });
        self.buffer.drain(..end).collect()
    }

    /// Reads to the end of the connection: what came and how it ended.
    pub fn rest(&mut self) -> (Vec<u8>, End) {
        let end = self.fill(|_| None::<()>).err().unwrap_or(End::StillOpen);
        (std::mem::take(&mut self.buffer), end)
    }

    /// Sends FIN and reads on.
    pub fn finish(&self) {
        self.duplex.finish();
    }

    /// Ends the connection with an RST.
    pub fn reset(self) {
        self.duplex.reset();
    }

    fn fill<T>(&mut self, enough: impl Fn(&[u8]) -> Option<T>) -> Result<T, End> {
        loop {
            if let Some(found) = enough(&self.buffer) {
                return Ok(found);
            }
            if let Some(end) = self.ended {
                return Err(end);
            }
            let mut piece = [0; 16 * 1024];
            match self.duplex.read(&mut piece) {
                Ok(0) => self.ended = Some(End::Closed),
                Ok(read) => self.buffer.extend_from_slice(&piece[..read]),
                Err(error) => match error.kind() {
                    ErrorKind::UnexpectedEof => self.ended = Some(End::Closed),
                    ErrorKind::ConnectionReset => self.ended = Some(End::Reset),
                    ErrorKind::WouldBlock | ErrorKind::TimedOut => return Err(End::StillOpen),
                    ErrorKind::Interrupted => {}
                    other => {
                        panic!("{other:?} while reading: {error} (after {PATIENCE:?} at most)")
                    }
                },
            }
        }
    }
}

fn position(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}
