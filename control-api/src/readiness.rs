//! Readiness of the daemon.

use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::Serialize;

/// Readiness of the daemon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Readiness {
    /// Whether the proxy accepts traffic.
    #[serde(skip)]
    pub ready: bool,
    /// The listeners and their addresses.
    pub listeners: Vec<ListenerAddress>,
    /// Files that cannot be read; the last good version of each is in force. They do not affect readiness.
    pub broken: Vec<BrokenFile>,
}

/// A listener.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Listening")]
pub struct ListenerAddress {
    /// `proxy`, `api`, or a route's name.
    pub name: String,
    /// Its address with the actual port.
    #[schemars(with = "String")]
    pub address: SocketAddr,
}

/// A file that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Broken")]
pub struct BrokenFile {
    /// The file.
    pub file: String,
    /// The error, with line and column.
    pub error: String,
}
