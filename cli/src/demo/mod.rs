//! The demo: services on loopback, an agent that uses them, and its contract.
//!
//! ```text
//! agent (a child process) ──HTTP_PROXY──▶ proxy ──▶ flights.test, booking.test  (tools)
//!                                               └─▶ model.test                  (service)
//! ```

pub(crate) mod agent;
pub(crate) mod contract;
pub(crate) mod model;
mod service;
mod tools;

use std::net::SocketAddr;

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

impl World {
    /// Starts all three on free ports of loopback.
    pub(crate) async fn start() -> std::io::Result<Self> {
        Ok(Self {
            model: service::listen(model::complete).await?,
            search: service::listen(tools::search).await?,
            booking: service::listen(tools::book).await?,
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
