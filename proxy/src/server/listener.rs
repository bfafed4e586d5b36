//! Listening sockets, and how accepted connections reach the workers.
//!
//! Each listener is accepted from by one task; connections go round the workers, so that a few
//! long-lived connections spread evenly. A limit on open connections is kept by not accepting:
//! further ones wait in the kernel's queue.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::compiled::ListenerRole;

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 4096;

/// A connection on its way to a worker.
#[derive(Debug)]
pub(crate) struct Accepted {
    pub(crate) stream: TcpStream,
    pub(crate) role: ListenerRole,
    /// Given back when the connection ends.
    pub(crate) permit: OwnedSemaphorePermit,
}

/// A bound socket.
#[derive(Debug)]
pub(crate) struct BoundListener {
    socket: TcpListener,
    pub(crate) role: ListenerRole,
    /// Where it listens; the port is known even if 0 was asked for.
    pub(crate) address: SocketAddr,
}

impl BoundListener {
    /// Binds `address`.
    pub(crate) fn bind(address: SocketAddr, role: ListenerRole) -> io::Result<Self> {
        let socket = Socket::new(
            Domain::for_address(address),
            Type::STREAM,
            Some(Protocol::TCP),
        )?;
        socket.set_reuse_address(true)?;
        socket.set_nonblocking(true)?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        let socket = TcpListener::from(socket);
        let address = socket.local_addr()?;
        Ok(Self {
            socket,
            role,
            address,
        })
    }

    /// Accepts until `closing` and hands each connection to `serve`; `limit` holds one permit per connection that
    /// may be open.
    pub(crate) async fn accept(
        self,
        serve: impl Fn(Accepted),
        limit: Arc<Semaphore>,
        closing: CancellationToken,
    ) -> io::Result<()> {
        let socket = tokio::net::TcpListener::from_std(self.socket)?;
        loop {
            let permit = tokio::select! {
                permit = Arc::clone(&limit).acquire_owned() => permit,
                () = closing.cancelled() => return Ok(()),
            };
            let Ok(permit) = permit else { return Ok(()) };
            let accepted = tokio::select! {
                accepted = socket.accept() => accepted.map(|(stream, _)| stream),
                () = closing.cancelled() => return Ok(()),
            };
            // Taken off this thread's reactor, since the worker has another.
            match accepted.and_then(tokio::net::TcpStream::into_std) {
                Ok(stream) => serve(Accepted {
                    stream,
                    role: self.role,
                    permit,
                }),
                Err(error) if is_the_peers(&error) => {}
                Err(error) => {
                    // Out of descriptors or memory: say so, and give the machine a moment.
                    tracing::warn!(address = %self.address, %error, "cannot accept");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }
}

/// Errors of one connection that was gone before it was accepted, as opposed to errors of ours.
fn is_the_peers(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted, InvalidInput};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionReset | Interrupted | InvalidInput
    )
}
