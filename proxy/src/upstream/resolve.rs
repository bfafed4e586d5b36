//! Names to addresses. Nothing is remembered: the system's resolver has its own cache, and the
//! addresses that were judged are the ones dialled.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::error::Cause;
use super::patterns::{is_localhost, literal};

/// Who turns names into addresses.
#[derive(Debug, Default)]
pub enum Resolver {
    /// The system: hosts file, DNS, whatever it is set up for.
    #[default]
    System,
    /// These names only, in lower case; for tests and closed set-ups.
    Fixed(HashMap<String, Vec<IpAddr>>),
}

impl Resolver {
    /// Every address of `host`, in the order in which they are to be tried; never empty.
    pub(super) async fn resolve(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, Cause> {
        if let Some(ip) = literal(host) {
            return Ok(vec![SocketAddr::new(ip, port)]);
        }
        if is_localhost(host) {
            let both: [IpAddr; 2] = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
            return Ok(both.map(|ip| SocketAddr::new(ip, port)).into());
        }
        let found: Vec<SocketAddr> = match self {
            Self::System => tokio::net::lookup_host((host, port))
                .await
                .map_err(|error| Cause::Dns(error.to_string()))?
                .collect(),
            Self::Fixed(names) => names
                .get(host)
                .into_iter()
                .flatten()
                .map(|&ip| SocketAddr::new(ip, port))
                .collect(),
        };
        if found.is_empty() {
            return Err(Cause::Dns("the name has no address".to_owned()));
        }
        Ok(found)
    }
}
