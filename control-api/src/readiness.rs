//! Readiness of the daemon.

use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::Serialize;

/// How the daemon does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Readiness {
    /// Whether traffic can come in.
    #[serde(skip)]
    pub ready: bool,
    /// What listens where.
    pub listeners: Vec<Listening>,
    /// Files that cannot be read; the last good version of each is in force. They make nobody
    /// unready.
    pub broken: Vec<Broken>,
}

/// A listener.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Listening {
    /// `proxy`, `api`, or a route's name.
    pub name: String,
    /// Its address with the port it really has.
    #[schemars(with = "String")]
    pub address: SocketAddr,
}

/// A file that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Broken {
    /// The file.
    pub file: String,
    /// What is wrong, with line and column.
    pub error: String,
}
