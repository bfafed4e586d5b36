//! An address at which nobody answers.

use std::net::SocketAddr;

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
