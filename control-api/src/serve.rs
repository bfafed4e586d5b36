//! The API on a socket.

mod explained;

use std::net::SocketAddr;

use axum::serve::ListenerExt as _;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use self::explained::Explaining;
use crate::{ApiState, router};

/// Why the API cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Everybody on the network could switch chaos.
    #[error(
        "the control API has no tokens and would listen on {0}, which is not loopback; give it tokens, or \
         listen on 127.0.0.1"
    )]
    Exposed(SocketAddr),
    /// The listener failed.
    #[error("the control API's listener failed: {0}")]
    Listener(#[from] std::io::Error),
}

/// Serves the API until `shutdown`; then streams of events end, open requests are finished, and it
/// returns. Refuses to begin on an address that is not loopback when there are no tokens.
pub async fn serve(
    listener: TcpListener,
    state: ApiState,
    shutdown: CancellationToken,
) -> Result<(), ServeError> {
    let address = listener.local_addr()?;
    if !address.ip().is_loopback() {
        if state.access.is_open() {
            return Err(ServeError::Exposed(address));
        }
        // From here on a token is asked for, even when the last one is revoked.
        state.access.expose();
    }
    let state = ApiState {
        stopping: shutdown.clone(),
        ..state
    };
    let app = router(state).into_make_service_with_connect_info::<SocketAddr>();
    let listener = Explaining(listener).tap_io(|connection| {
        // Events are small, and whoever watches waits for each.
        if let Err(error) = connection.stream().set_nodelay(true) {
            tracing::debug!(%error, "TCP_NODELAY is not set on a connection of the API");
        }
    });
    axum::serve(listener, app)
        .with_graceful_shutdown(shutdown.cancelled_owned())
        .await?;
    Ok(())
}
