//! The demo: services on loopback, an agent that uses them, and its contract.
//!
//! ```text
//! agent (a child process) ──HTTP_PROXY──▶ proxy ──▶ flights.test, booking.test  (tools)
//!                                               └─▶ model.test                  (service)
//! ```

pub(crate) mod agent;
pub(crate) mod contract;
mod model;
pub(crate) mod shop;
mod tools;

use std::net::SocketAddr;

use axum::Router;
use axum::routing::{get, post};
use tokio::net::TcpListener;

/// The agent's task.
pub(crate) const TASK: &str = "Book me the cheapest flight from Oslo to Rome on Friday.";

/// Host name of the model. The names are reserved by RFC 6761.
pub(crate) const MODEL: &str = "model.test";
/// The flight search.
pub(crate) const SEARCH: (&str, &str) = ("search_flights", "flights.test");
/// The booking service.
pub(crate) const BOOKING: (&str, &str) = ("book_flight", "booking.test");

/// The simulated services.
pub(crate) struct World {
    model: SocketAddr,
    search: SocketAddr,
    booking: SocketAddr,
}

/// Serves one path on a free port of loopback until the runtime ends; returns the address.
async fn serve(path: &str, answer: axum::routing::MethodRouter) -> std::io::Result<SocketAddr> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let address = listener.local_addr()?;
    let router = Router::new().route(path, answer);
    // If the listener fails permanently, the demo's agent reports the lost service.
    tokio::spawn(async move { axum::serve(listener, router).await });
    Ok(address)
}

impl World {
    /// Starts all three on free ports of loopback.
    pub(crate) async fn start() -> std::io::Result<Self> {
        Ok(Self {
            model: serve("/v1/chat/completions", post(model::complete)).await?,
            search: serve("/search", get(tools::search)).await?,
            booking: serve("/bookings", post(tools::book)).await?,
        })
    }

    /// Addresses of the host names, for `proxy.connect_to`.
    pub(crate) fn connect_to(&self) -> Vec<(String, String)> {
        [
            (MODEL, self.model),
            (SEARCH.1, self.search),
            (BOOKING.1, self.booking),
        ]
        .map(|(host, address)| (format!("{host}:80"), address.to_string()))
        .into()
    }

    /// Names of the tools, for `tools:`.
    pub(crate) fn tools() -> Vec<(String, Vec<String>)> {
        [SEARCH, BOOKING]
            .map(|(tool, host)| (tool.to_owned(), vec![format!("http://{host}/*")]))
            .into()
    }
}
