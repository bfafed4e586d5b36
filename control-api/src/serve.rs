//! The API on a socket.

mod explained;

use std::net::SocketAddr;
use std::task::{Context, Poll};

use axum::Router;
use axum::extract::connect_info::IntoMakeServiceWithConnectInfo;
use axum::serve::ListenerExt as _;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tower::Service;

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
    state.access.tell(&state.chaos);
    let listener = Explaining(listener).tap_io(|connection| {
        // Events are small, and whoever watches waits for each.
        if let Err(error) = connection.stream().set_nodelay(true) {
            tracing::debug!(%error, "TCP_NODELAY is not set on a connection of the API");
        }
    });
    axum::serve(listener, Routes { state, made: None })
        .with_graceful_shutdown(shutdown.cancelled_owned())
        .await?;
    Ok(())
}

/// The routes, made when the first connection comes: a proxy whose API nobody asks has no use for the
/// memory they take.
struct Routes {
    state: ApiState,
    made: Option<Made>,
}

type Made = IntoMakeServiceWithConnectInfo<Router, SocketAddr>;

impl<T> Service<T> for Routes
where
    Made: Service<T>,
{
    type Response = <Made as Service<T>>::Response;
    type Error = <Made as Service<T>>::Error;
    type Future = <Made as Service<T>>::Future;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), <Made as Service<T>>::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, connection: T) -> <Made as Service<T>>::Future {
        let make = || router(self.state.clone()).into_make_service_with_connect_info();
        self.made.get_or_insert_with(make).call(connection)
    }
}
