//! Addresses at which nobody answers.

use std::net::{SocketAddr, TcpListener, TcpStream};

use socket2::{Domain, Socket, Type};

/// An address that refuses connections: a port that was free a moment ago.
pub fn refusing() -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    listener.local_addr().expect("a bound listener")
}

/// An address at which connections are never completed: its queue is full, so the kernel drops
/// every further SYN.
#[derive(Debug)]
pub struct Silent {
    /// Where to knock.
    pub address: SocketAddr,
    _listener: Socket,
    _queued: Vec<TcpStream>,
}

impl Silent {
    /// Fills a queue of the shortest kind.
    pub fn new() -> Self {
        let listener = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        listener
            .bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into())
            .expect("a free port");
        listener.listen(0).expect("a bound socket listens");
        let address = listener
            .local_addr()
            .ok()
            .and_then(|address| address.as_socket());
        let address = address.expect("a bound listener");
        let knock = || TcpStream::connect_timeout(&address, std::time::Duration::from_millis(100));
        let mut queued = Vec::new();
        while let Ok(stream) = knock() {
            queued.push(stream);
        }
        Self {
            address,
            _listener: listener,
            _queued: queued,
        }
    }
}

impl Default for Silent {
    fn default() -> Self {
        Self::new()
    }
}
