//! A connection, encrypted or not, whose socket stays within reach.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;

use rustls::{ClientConfig, ClientConnection, ServerConfig, ServerConnection, StreamOwned};
use socket2::SockRef;

use crate::PATIENCE;

/// Bytes in and out, and the socket below them.
pub struct Duplex {
    stream: Box<dyn Stream>,
    socket: TcpStream,
}

trait Stream: Read + Write + Send {}
impl<T: Read + Write + Send> Stream for T {}

impl std::fmt::Debug for Duplex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.socket.fmt(f)
    }
}

impl Duplex {
    /// A connection in clear.
    pub fn plain(socket: TcpStream) -> Self {
        prepare(&socket);
        let stream = Box::new(socket.try_clone().expect("a second handle to the socket"));
        Self { stream, socket }
    }

    /// The client's side of an encrypted connection; the handshake is done at once.
    pub fn client(socket: TcpStream, config: Arc<ClientConfig>, name: &str) -> io::Result<Self> {
        prepare(&socket);
        let name = name.to_owned().try_into().map_err(io::Error::other)?;
        let mut connection = ClientConnection::new(config, name).map_err(io::Error::other)?;
        let mut inner = socket.try_clone()?;
        while connection.is_handshaking() {
            connection.complete_io(&mut inner)?;
        }
        Ok(Self {
            stream: Box::new(StreamOwned::new(connection, inner)),
            socket,
        })
    }

    /// The server's side of an encrypted connection; the handshake is done at once.
    pub fn server(socket: TcpStream, config: Arc<ServerConfig>) -> io::Result<Self> {
        prepare(&socket);
        let mut connection = ServerConnection::new(config).map_err(io::Error::other)?;
        let mut inner = socket.try_clone()?;
        while connection.is_handshaking() {
            connection.complete_io(&mut inner)?;
        }
        Ok(Self {
            stream: Box::new(StreamOwned::new(connection, inner)),
            socket,
        })
    }

    /// The socket itself.
    pub fn socket(&self) -> &TcpStream {
        &self.socket
    }

    /// The socket alone.
    pub fn into_socket(self) -> TcpStream {
        self.socket
    }

    /// Ends the connection with an RST, unencrypted and at once.
    pub fn reset(self) {
        SockRef::from(&self.socket)
            .set_linger(Some(std::time::Duration::ZERO))
            .expect("a live socket takes SO_LINGER");
    }

    /// Sends FIN without any farewell of TLS's, and reads on.
    pub fn finish(&self) {
        // A peer that has closed already needs no FIN.
        let _ = self.socket.shutdown(Shutdown::Write);
    }
}

fn prepare(socket: &TcpStream) {
    socket
        .set_nodelay(true)
        .expect("a live socket takes TCP_NODELAY");
    socket
        .set_read_timeout(Some(PATIENCE))
        .expect("a timeout above zero");
}

impl Read for Duplex {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.read(buffer)
    }
}

impl Write for Duplex {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}
