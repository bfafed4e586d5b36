//! Listening sockets, and the distribution of accepted connections to workers.
//!
//! One task accepts from each listener. Connections go to the workers in turn, so that a few
//! long-lived ones are spread evenly. At the limit of open connections it stops accepting; further
//! ones wait in the kernel's queue.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::compiled::ListenerRole;

/// Most connections that wait to be accepted.
const BACKLOG: i32 = 4096;

/// An accepted connection for a worker.
#[derive(Debug)]
pub(crate) struct Accepted {
    pub(crate) stream: TcpStream,
    pub(crate) role: ListenerRole,
    /// Released when the connection ends.
    pub(crate) permit: OwnedSemaphorePermit,
}

/// A bound socket.
#[derive(Debug)]
pub(crate) struct BoundListener {
    socket: TcpListener,
    pub(crate) role: ListenerRole,
    /// Its address, with the actual port if 0 was configured.
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

    /// Accepts until `closing` and passes each connection to `serve`; `limit` holds one permit per
    /// open connection.
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
            // Removed from this thread's reactor, because the worker has its own.
            match accepted.and_then(tokio::net::TcpStream::into_std) {
                Ok(stream) => serve(Accepted {
                    stream,
                    role: self.role,
                    permit,
                }),
                Err(error) if is_the_peers(&error) => {}
                Err(error) => {
                    // Out of descriptors or memory: log it and wait briefly.
                    tracing::warn!(address = %self.address, %error, "cannot accept");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }
}

/// Whether the peer closed before the accept, as opposed to an error of this machine.
fn is_the_peers(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted, InvalidInput};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionReset | Interrupted | InvalidInput
    )
}
