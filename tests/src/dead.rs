//! Addresses at which nobody answers.

use std::net::{SocketAddr, TcpStream};

use socket2::{Domain, Socket, Type};

/// An address that refuses connections. The port is bound, and never listened on, until the process
/// ends: no other test's program can get it, and the requests meant for nobody.
pub fn refusing() -> SocketAddr {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
    socket.bind(&any_port.into()).expect("a free port");
    let address = socket.local_addr().ok().and_then(|bound| bound.as_socket());
    std::mem::forget(socket);
    address.expect("a bound socket")
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
