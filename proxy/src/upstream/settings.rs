//! The upstream part of a [`ProxyConfig`], compiled once and shared by all workers.

use std::collections::HashMap;
use std::time::Duration;

use super::chain::UpstreamProxy;
use super::destination::DestinationLists;
use super::origin::split_host_and_port;
use super::tls::TlsClients;
use crate::config::{ConfigError, ProxyConfig};

/// The upstream part of a configuration.
pub(crate) struct Settings {
    pub(super) destinations: DestinationLists,
    pub(super) connect_to: ConnectTo,
    pub(super) proxy: Option<UpstreamProxy>,
    pub(super) tls: TlsClients,
    pub(super) connect_timeout: Duration,
    pub(super) response_timeout: Option<Duration>,
    pub(super) idle_timeout: Duration,
    /// Most fields in a response's head.
    pub(super) header_count: usize,
    /// Most bytes in a response's head on HTTP/2.
    pub(super) header_bytes: u32,
}

impl Settings {
    pub(super) fn new(config: &ProxyConfig) -> Result<Self, ConfigError> {
        Ok(Self {
            destinations: DestinationLists::new(config)?,
            connect_to: ConnectTo::new(&config.connect_to)?,
            proxy: config
                .upstream_proxy
                .as_deref()
                .map(UpstreamProxy::parse)
                .transpose()?,
            tls: TlsClients::new(&config.upstream_ca)?,
            connect_timeout: config.upstream.connect,
            response_timeout: config.upstream.response,
            idle_timeout: config.upstream.idle,
            header_count: config.limits.header_count,
            header_bytes: u32::try_from(config.limits.header_bytes).unwrap_or(u32::MAX),
        })
    }
}

/// `connect_to`: replaces the dialled host and port. Names, TLS and headers stay the agent's.
#[derive(Debug, Default)]
pub(super) struct ConnectTo(HashMap<(String, u16), (String, u16)>);

impl ConnectTo {
    fn new(entries: &[(String, String)]) -> Result<Self, ConfigError> {
        let side = |text: &str| match split_host_and_port(text) {
            Some((host, Some(port))) if !host.is_empty() => Ok((host.to_ascii_lowercase(), port)),
            _ => Err(ConfigError(format!(
                "`proxy.connect_to`: `{text}` is not `host:port`; write for example \
                 \"api.openai.com:443\": \"127.0.0.1:8443\""
            ))),
        };
        entries
            .iter()
            .map(|(from, to)| Ok((side(from)?, side(to)?)))
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// The host and port to dial for `host:port`.
    pub(super) fn target<'a>(&'a self, host: &'a str, port: u16) -> (&'a str, u16) {
        if self.0.is_empty() {
            return (host, port);
        }
        match self.0.get(&(host.to_owned(), port)) {
            Some((host, port)) => (host, *port),
            None => (host, port),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connect_to_redirects_exactly_the_named_pair() {
        let entries = [("API.example:443".to_owned(), "127.0.0.1:8443".to_owned())];
        let connect_to = ConnectTo::new(&entries).unwrap();
        assert_eq!(connect_to.target("api.example", 443), ("127.0.0.1", 8443));
        assert_eq!(connect_to.target("api.example", 80), ("api.example", 80));
    }

    #[test]
    fn a_side_without_a_port_is_refused() {
        for side in ["api.example", "h:x", ":80"] {
            let entries = [(side.to_owned(), "127.0.0.1:1".to_owned())];
            assert!(
                ConnectTo::new(&entries)
                    .unwrap_err()
                    .to_string()
                    .contains(side)
            );
        }
    }
}
