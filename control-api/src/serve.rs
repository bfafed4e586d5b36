//! The API on a socket.

mod connections;

use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use squall_proxy::descriptors;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use self::connections::Connections;
use crate::router;
use crate::state::ApiState;

/// Reserved descriptors, which connections use when the process has no others.
const SPARE: usize = 8;

/// Pause after a connection could not be accepted.
const PAUSE: Duration = Duration::from_millis(50);

/// Why the API cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Any host on the network could change chaos.
    #[error(
        "the control API has no tokens and would listen on {0}, which is not loopback; give it tokens, or \
         listen on 127.0.0.1"
    )]
    Exposed(SocketAddr),
    /// The listener failed.
    #[error("the control API's listener failed: {0}")]
    Listener(#[from] std::io::Error),
}

/// Serves the API, inside what `around` adds to it, until `shutdown`; then event streams end, open requests are finished, and it returns. Fails on
/// an address other than loopback when there are no tokens.
pub async fn serve(
    listener: TcpListener,
    state: ApiState,
    around: impl Fn(Router) -> Router,
    shutdown: CancellationToken,
) -> Result<(), ServeError> {
    let address = listener.local_addr()?;
    if !address.ip().is_loopback() {
        if state.access.is_open() {
            return Err(ServeError::Exposed(address));
        }
        // A token is required from now on, even after the last one is revoked.
        state.access.expose();
    }
    let state = ApiState {
        stopping: shutdown.clone(),
        ..state
    };
    state.access.connect(&state.chaos);
    let most = descriptors::of_api(descriptors::limit());
    let mut connections = Connections::new(most, shutdown.clone());
    let mut spare = Vec::new();
    // Built for the first connection, to save memory while the API is unused.
    let mut routes: Option<Router> = None;
    hold(&mut spare);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = shutdown.cancelled() => break,
        };
        match accepted {
            Ok((stream, peer)) => {
                let routes = routes.get_or_insert_with(|| around(router(state.clone())));
                connections.serve(stream, peer, routes.clone());
                hold(&mut spare);
                // Reads a request head that has arrived before another connection can take its place.
                tokio::task::yield_now().await;
            }
            Err(error) if is_the_peers(&error) => {}
            Err(error) => {
                tracing::warn!(%error, "the control API cannot accept a connection");
                let freed = spare.pop().is_some() || connections.close_idle();
                tokio::time::sleep(if freed { Duration::ZERO } else { PAUSE }).await;
            }
        }
    }
    connections.closed().await;
    Ok(())
}

/// Reserves descriptors again, as far as available.
fn hold(spare: &mut Vec<File>) {
    while spare.len() < SPARE
        && let Ok(file) = File::open("/dev/null")
    {
        spare.push(file);
    }
}

/// Errors of a connection that was closed before it was accepted.
fn is_the_peers(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset
    )
}
