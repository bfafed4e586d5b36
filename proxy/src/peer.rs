//! The program at the other end of an agent's connection.

use std::net::IpAddr;
use std::sync::OnceLock;

use http::HeaderMap;
use http::header::USER_AGENT;

/// Longest stored `User-Agent`, bytes.
const LONGEST: usize = 256;

/// The program that opened a connection. All exchanges of the connection share it.
#[derive(Debug)]
pub struct Peer {
    /// Its address.
    pub address: IpAddr,
    user_agent: OnceLock<Box<str>>,
}

impl Peer {
    /// The program at this address.
    pub fn new(address: IpAddr) -> Self {
        Self {
            address,
            user_agent: OnceLock::new(),
        }
    }

    /// The `User-Agent` of the connection's first request that has one; it may contain secrets.
    pub fn user_agent(&self) -> Option<&str> {
        self.user_agent.get().map(|name| &**name)
    }

    /// Reads a request's `User-Agent`, unless an earlier request of the connection had one.
    pub fn read(&self, headers: &HeaderMap) {
        if self.user_agent.get().is_some() {
            return;
        }
        if let Some(name) = headers.get(USER_AGENT) {
            let mut name = String::from_utf8_lossy(name.as_bytes()).into_owned();
            name.truncate(name.floor_char_boundary(LONGEST));
            // Another stream of the connection may have been first.
            let _ = self.user_agent.set(name.into());
        }
    }
}
