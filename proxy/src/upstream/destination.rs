//! Allowed destinations.
//!
//! A destination is checked twice: its name, and every resolved address immediately before it is
//! dialled. `deny` takes precedence over `allow`. Link-local and cloud metadata addresses are
//! denied unless `allow` lists them by address. Squall's own listeners are never a valid
//! destination.

use std::net::{IpAddr, SocketAddr, UdpSocket};

use ipnet::IpNet;

use super::origin::{UpstreamOrigin, host_and_port};
use super::patterns::{
    HostPattern, HostPatterns, LOOPBACK, canonical_ip, is_all_numbers, is_localhost, literal,
    plain_name,
};
use crate::config::{ConfigError, ProxyConfig};

/// Host names of cloud metadata services with instance credentials.
const METADATA_NAMES: [&str; 4] = [
    "metadata.google.internal",
    "metadata.goog",
    "instance-data",
    "instance-data.ec2.internal",
];

/// Addresses of cloud metadata services, and link-local networks.
const METADATA_NETS: [&str; 7] = [
    "169.254.0.0/16",
    "fe80::/10",
    "fd00:ec2::254/128",  // AWS
    "fd20:ce::254/128",   // Google
    "100.100.100.200/32", // Alibaba
    "192.0.0.192/32",     // Oracle
    "168.63.129.16/32",   // Azure
];

/// `allow`, `deny` and `approval` of one configuration, compiled.
#[derive(Debug)]
pub struct DestinationLists {
    allow: Vec<HostPattern>,
    deny: Vec<HostPattern>,
    approval: HostPatterns,
    metadata: Vec<IpNet>,
}

/// The remaining check of a name's addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NameVerdict {
    /// `allow` lists the name; its addresses only have to pass `deny`.
    ByName,
    /// `allow` does not list the name; each address must also be in an allowed network.
    ByAddress,
}

/// The error for a destination without an entry in `allow`.
pub(super) fn not_covered(host: &str, port: u16) -> String {
    format!(
        "nothing in `proxy.allow` covers {}; add it there",
        host_and_port(host, port)
    )
}

impl DestinationLists {
    /// Compiles `allow` and `deny`; upstreams of routes count as allowed.
    pub(crate) fn new(config: &ProxyConfig) -> Result<Self, ConfigError> {
        let mut allow = patterns("proxy.allow", &config.allow)?;
        allow.extend(config.routes.iter().filter_map(|route| {
            let host = route.upstream.host()?;
            HostPattern::exactly(host, route.upstream.port_u16()).ok()
        }));
        Ok(Self {
            allow,
            deny: patterns("proxy.deny", &config.deny)?,
            approval: HostPatterns::new(&config.approval)
                .map_err(|error| ConfigError(format!("`approval`: {error}")))?,
            metadata: METADATA_NETS
                .iter()
                .filter_map(|net| net.parse().ok())
                .collect(),
        })
    }

    /// Checks the requested name, or the address in any form. The error names the rule that denied
    /// it.
    pub(crate) fn check_name(&self, host: &str, port: u16) -> Result<NameVerdict, String> {
        if let Some(address) = literal(host) {
            return self
                .check_address(NameVerdict::ByAddress, address, port)
                .map(|()| NameVerdict::ByAddress);
        }
        if is_all_numbers(host) {
            return Err(format!("`{host}` is neither a name nor an address"));
        }
        let name = plain_name(host);
        if let Some(rule) = self.deny.iter().find(|rule| rule.covers_name(name, port)) {
            return Err(format!("`proxy.deny` has `{}`", rule.text()));
        }
        let mut allowed = self
            .allow
            .iter()
            .filter(|rule| rule.covers_name(name, port))
            .peekable();
        let standing = allowed.peek().map(|_| NameVerdict::ByName);
        if METADATA_NAMES.contains(&name) && !allowed.any(HostPattern::names_one_host) {
            return Err("cloud metadata is denied unless `proxy.allow` names it".to_owned());
        }
        if let Some(standing) = standing {
            return Ok(standing);
        }
        if self.allow.iter().any(HostPattern::is_network) {
            return Ok(NameVerdict::ByAddress);
        }
        Err(not_covered(host, port))
    }

    /// Checks a name used in TLS only, without dialling it; only `deny` applies.
    pub(super) fn check_denied_name(&self, name: &str, port: u16) -> Result<(), String> {
        let name = plain_name(name);
        match self.deny.iter().find(|rule| rule.covers_name(name, port)) {
            Some(rule) => Err(format!(
                "`proxy.deny` has `{}`, which covers {name}",
                rule.text()
            )),
            None => Ok(()),
        }
    }

    /// Whether `approval` has an entry.
    pub(super) fn has_approval(&self) -> bool {
        !self.approval.is_empty()
    }

    /// Checks a host or an address behind `origin`: runs need approval for some.
    pub(super) fn check_approval(
        &self,
        origin: &UpstreamOrigin,
        host: &str,
        port: Option<u16>,
    ) -> Result<(), String> {
        if !origin.is_unapproved() {
            return Ok(());
        }
        match self.approval.covering(host, port) {
            None => Ok(()),
            Some(entry) => Err(format!(
                "`approval` has `{entry}`, and the run of this scope was not approved for {host}; name the host in \
                 the suite, for example under `tools`, start the run again and call `squall runs approve`"
            )),
        }
    }

    /// Checks one address of a checked name.
    pub(crate) fn check_address(
        &self,
        standing: NameVerdict,
        ip: IpAddr,
        port: u16,
    ) -> Result<(), String> {
        let ip = canonical_ip(ip);
        if let Some(rule) = self.deny.iter().find(|rule| rule.covers_address(ip, port)) {
            return Err(format!(
                "`proxy.deny` has `{}`, which covers {ip}",
                rule.text()
            ));
        }
        let allowed = || {
            self.allow
                .iter()
                .filter(|rule| rule.covers_address(ip, port))
        };
        if !allowed().any(HostPattern::names_addresses)
            && self.metadata.iter().any(|net| net.contains(&ip))
        {
            return Err(format!(
                "{ip} is a link-local or cloud metadata address, denied unless `proxy.allow` \
                 names the address"
            ));
        }
        if standing == NameVerdict::ByAddress && allowed().next().is_none() {
            return Err(format!(
                "nothing in `proxy.allow` covers {}",
                host_and_port(&ip.to_string(), port)
            ));
        }
        Ok(())
    }
}

fn patterns(key: &'static str, entries: &[String]) -> Result<Vec<HostPattern>, ConfigError> {
    let parse = |entry: &String| {
        HostPattern::parse(entry).map_err(|error| ConfigError(format!("`{key}`: {error}")))
    };
    entries.iter().map(parse).collect()
}

/// Addresses of Squall's own listeners, as bound.
#[derive(Debug, Default, Clone)]
pub(crate) struct OwnListeners(Vec<SocketAddr>);

impl OwnListeners {
    /// The listeners at these addresses; a wildcard means every local address.
    pub(crate) fn new(bound: impl IntoIterator<Item = SocketAddr>) -> Self {
        Self(bound.into_iter().collect())
    }

    /// The listener at `host` (as written) and `port`, if any.
    pub(crate) fn reached_as(&self, host: &str, port: u16) -> Option<SocketAddr> {
        let reached = |ip| self.reached_by(SocketAddr::new(ip, port));
        if is_localhost(host) {
            return LOOPBACK.into_iter().find_map(reached);
        }
        literal(host.trim_start_matches('[').trim_end_matches(']')).and_then(reached)
    }

    /// Whether one of them uses this port.
    pub(crate) fn has_port(&self, port: u16) -> bool {
        self.0.iter().any(|own| own.port() == port)
    }

    /// The listener that a connection to `address` would reach, if any.
    pub(crate) fn reached_by(&self, address: SocketAddr) -> Option<SocketAddr> {
        let ip = canonical_ip(address.ip());
        self.0.iter().copied().find(|own| {
            own.port() == address.port()
                && (canonical_ip(own.ip()) == ip || (own.ip().is_unspecified() && is_local(ip)))
        })
    }
}

/// True if this machine has the address: a socket can be bound to it.
fn is_local(ip: IpAddr) -> bool {
    ip.is_loopback() || UdpSocket::bind((ip, 0)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lists(allow: &str, deny: &str) -> DestinationLists {
        let mut config = ProxyConfig::with_home("/nowhere".into());
        config.allow = allow.split_whitespace().map(str::to_owned).collect();
        config.deny = deny.split_whitespace().map(str::to_owned).collect();
        DestinationLists::new(&config).unwrap()
    }

    fn may(lists: &DestinationLists, host: &str, port: u16, resolved: &str) -> bool {
        lists
            .check_name(host, port)
            .and_then(|standing| lists.check_address(standing, resolved.parse().unwrap(), port))
            .is_ok()
    }

    #[test]
    #[rustfmt::skip]
    fn deny_wins_and_both_the_name_and_the_address_count() {
        for (allow, deny, host, port, resolved, allowed) in [
            ("*", "", "example.com", 80, "93.184.215.14", true),
            ("*", "example.com", "example.com", 80, "93.184.215.14", false),
            ("*", "example.com", "example.com.", 80, "93.184.215.14", false),
            ("*", "*.example.com", "a.b.example.com", 80, "1.1.1.1", false),
            ("*", "*.example.com", "example.com", 80, "1.1.1.1", true),
            ("*", "*:25", "mail.example", 25, "1.1.1.1", false),
            ("*", "*:25", "mail.example", 26, "1.1.1.1", true),
            ("*", "10.0.0.0/8", "innocent.example", 80, "10.1.2.3", false),
            ("*", "10.0.0.0/8", "innocent.example", 80, "::ffff:10.1.2.3", false),
            ("*", "10.0.0.0/8", "innocent.example", 80, "64:ff9b::a01:203", false),
            ("api.example", "", "api.example", 443, "1.1.1.1", true),
            ("api.example", "", "other.example", 443, "1.1.1.1", false),
            ("api.example:443", "", "api.example", 80, "1.1.1.1", false),
            ("10.0.0.0/8", "", "intern.example", 80, "10.9.9.9", true),
            ("10.0.0.0/8", "", "intern.example", 80, "11.9.9.9", false),
            ("10.0.0.0/8", "10.9.0.0/16", "intern.example", 80, "10.9.9.9", false),
            ("10.0.0.1:80", "", "10.0.0.1", 80, "10.0.0.1", true),
            ("10.0.0.1:80", "", "10.0.0.1", 81, "10.0.0.1", false),
            ("[::1]:80", "", "::1", 80, "::1", true),
            ("", "", "example.com", 80, "1.1.1.1", false),
        ] {
            let lists = lists(allow, deny);
            let case = format!("{allow:?} {deny:?} {host}:{port} → {resolved}");
            assert_eq!(may(&lists, host, port, resolved), allowed, "{case}");
        }
    }

    #[test]
    fn metadata_is_denied_unless_allow_names_its_address() {
        let open = lists("*", "");
        for address in [
            "169.254.169.254",
            "::ffff:169.254.169.254",
            "::169.254.169.254",
            "64:ff9b::a9fe:a9fe",
            "fd00:ec2::254",
            "100.100.100.200",
            "fe80::1",
            "2852039166",
            "0xa9.254.43518.",
            "::ffff:0:a9fe:a9fe",
            "2002:a9fe:a9fe::1",
            "64:ff9b:1::a9fe:a9fe",
        ] {
            assert!(
                address.parse::<IpAddr>().is_err() || !may(&open, "rebound.example", 80, address),
                "{address} by name"
            );
            assert!(
                open.check_name(address, 80).is_err(),
                "{address} as written"
            );
        }
        assert!(open.check_name("metadata.google.internal", 80).is_err());
        assert!(open.check_name("metadata.google.internal.", 80).is_err());
        assert!(open.check_name("425.510.425.510", 80).is_err());

        let named = lists("* 169.254.169.254", "");
        assert!(may(&named, "169.254.169.254", 80, "169.254.169.254"));
        let default = ProxyConfig::with_home("/nowhere".into());
        let default = DestinationLists::new(&default).unwrap();
        assert!(!may(&default, "169.254.169.254", 80, "169.254.169.254"));
    }

    #[test]
    fn an_entry_that_is_no_pattern_is_named() {
        for entry in ["10.0.0.0/40", "h:99999", "", ":80", "fe80::zz"] {
            let mut config = ProxyConfig::with_home("/nowhere".into());
            config.deny = vec![entry.to_owned()];
            let error = DestinationLists::new(&config).unwrap_err().to_string();
            assert!(
                error.contains("proxy.deny") && error.contains(entry),
                "{error}"
            );
        }
    }

    #[test]
    fn own_listeners_are_found_behind_wildcards_and_aliases() {
        let at = |text: &str| text.parse::<SocketAddr>().unwrap();
        let own = OwnListeners::new([at("127.0.0.1:7070"), at("0.0.0.0:7071"), at("[::]:7072")]);
        for (address, found) in [
            ("127.0.0.1:7070", true),
            ("[::ffff:127.0.0.1]:7070", true),
            ("0.0.0.0:7070", true),
            ("127.0.0.2:7070", false), // another program may listen there
            ("127.0.0.2:7071", true),
            ("127.9.9.9:7072", true),
            ("[::1]:7072", true),
            ("127.0.0.1:7073", false),
            ("192.0.2.1:7071", false),
        ] {
            assert_eq!(own.reached_by(at(address)).is_some(), found, "{address}");
        }
    }
}
