//! Host patterns: globs, addresses and networks, each for all ports or for one.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

use squall_profiles::glob::{Glob, GlobError};

use super::origin::split_host_and_port;
use crate::config::ConfigError;

/// The addresses of `localhost`.
pub(super) const LOOPBACK: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::LOCALHOST),
    IpAddr::V6(Ipv6Addr::LOCALHOST),
];

/// A list of host patterns.
#[derive(Debug, Default)]
pub struct HostPatterns(Vec<HostPattern>);

impl HostPatterns {
    /// Parses each entry.
    pub fn new(entries: &[String]) -> Result<Self, ConfigError> {
        entries
            .iter()
            .map(|entry| HostPattern::parse(entry))
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The entry that covers `host`, as text or as its address in any form. `localhost` means both
    /// loopback addresses, also in the list. Without a port, any port of an entry matches.
    pub fn covering(&self, host: &str, port: Option<u16>) -> Option<&str> {
        let host = host.trim_matches(['[', ']']).to_ascii_lowercase();
        let addresses: Vec<_> = match literal(&host) {
            None if is_localhost(&host) => LOOPBACK.to_vec(),
            ip => ip.map(canonical_ip).into_iter().collect(),
        };
        let covers = |rule: &&HostPattern| {
            port.is_none_or(|port| rule.covers_port(port))
                && (rule.covers_host(plain_name(&host))
                    || addresses
                        .iter()
                        .any(|&ip| rule.covers_ip(ip) || rule.is_loopback(ip)))
        };
        self.0.iter().find(covers).map(HostPattern::text)
    }

    /// True if an entry covers `host`, a name or an IP literal without brackets, on any port.
    pub fn matches(&self, host: &str) -> bool {
        match literal(host) {
            Some(ip) => self
                .0
                .iter()
                .any(|pattern| pattern.covers_ip(canonical_ip(ip))),
            None => self
                .0
                .iter()
                .any(|pattern| pattern.covers_host(plain_name(host))),
        }
    }
}

/// One entry of a list.
#[derive(Debug)]
pub(super) struct HostPattern {
    text: String,
    what: HostMatch,
    port: Option<u16>,
}

#[derive(Debug)]
enum HostMatch {
    /// Matches the name in lower case.
    Name(Glob),
    Net(IpNet),
}

impl HostPattern {
    /// The entry as written.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// One host, on all ports or on one.
    pub(super) fn exactly(host: &str, port: Option<u16>) -> Result<Self, GlobError> {
        let host = host.trim_matches(['[', ']']).to_ascii_lowercase();
        let what = match literal(&host) {
            Some(ip) => HostMatch::Net(canonical_ip(ip).into()),
            None => HostMatch::Name(Glob::new(plain_name(&host))?),
        };
        Ok(Self {
            text: host,
            what,
            port,
        })
    }

    pub(super) fn parse(entry: &str) -> Result<Self, ConfigError> {
        let bad = |why: String| {
            ConfigError(format!(
                "`{entry}`: {why}; write a host (`*.example.com`), a `host:port`, an address \
                 (`10.1.2.3`, `[::1]`) or a network (`10.0.0.0/8`)"
            ))
        };
        let text = entry.trim();
        if text.contains('/') {
            let net: Result<IpNet, _> = text.parse();
            let net = net.map_err(|_| bad("this is not a network".to_owned()))?;
            return Ok(Self {
                text: text.to_owned(),
                what: HostMatch::Net(net.trunc()),
                port: None,
            });
        }
        let (host, port) = split_host_and_port(text).ok_or_else(|| {
            bad("only `:` and a port from 0 to 65535 may follow the host".to_owned())
        })?;
        if host.is_empty() {
            return Err(bad("the host is missing".to_owned()));
        }
        let is_v6 = text.contains(['[', ']']) || host.contains(':');
        if is_v6 && host.parse::<Ipv6Addr>().is_err() {
            return Err(bad(format!("`{host}` is not an IPv6 address")));
        }
        let exactly = Self::exactly(host, port).map_err(|error| bad(error.to_string()))?;
        Ok(Self {
            text: text.to_owned(),
            ..exactly
        })
    }

    /// Whether it covers a name, in lower case and without a final dot.
    pub(super) fn covers_name(&self, name: &str, port: u16) -> bool {
        self.covers_port(port) && self.covers_host(name)
    }

    /// Whether it covers a canonical address.
    pub(super) fn covers_address(&self, ip: IpAddr, port: u16) -> bool {
        self.covers_port(port) && self.covers_ip(ip)
    }

    fn covers_host(&self, name: &str) -> bool {
        matches!(&self.what, HostMatch::Name(glob) if glob.matches(name))
    }

    /// Globs also cover addresses (`*`, `10.*`), because an agent may use one as a host.
    fn covers_ip(&self, ip: IpAddr) -> bool {
        match &self.what {
            HostMatch::Net(net) => net.contains(&ip),
            HostMatch::Name(glob) => glob.as_str().contains('*') && glob.matches(&ip.to_string()),
        }
    }

    /// Whether it is `localhost`, and `ip` one of its addresses.
    fn is_loopback(&self, ip: IpAddr) -> bool {
        matches!(&self.what, HostMatch::Name(name) if is_localhost(name.as_str()))
            && LOOPBACK.contains(&ip)
    }

    fn covers_port(&self, port: u16) -> bool {
        self.port.is_none_or(|own| own == port)
    }

    /// Whether it is an address or a network.
    pub(super) fn is_network(&self) -> bool {
        matches!(self.what, HostMatch::Net(_))
    }

    /// Whether it is an address or a network, except a network of all addresses.
    pub(super) fn names_addresses(&self) -> bool {
        matches!(&self.what, HostMatch::Net(net) if net.prefix_len() > 0)
    }

    /// Whether it is a name without a glob.
    pub(super) fn names_one_host(&self) -> bool {
        matches!(&self.what, HostMatch::Name(glob) if !glob.as_str().contains('*'))
    }
}

/// The address that the kernel connects to: IPv4 inside IPv6 is extracted (mapped, compatible,
/// NAT64), and the unspecified address becomes loopback.
pub(super) fn canonical_ip(ip: IpAddr) -> IpAddr {
    let ip = match ip {
        IpAddr::V6(v6) => embedded_v4(v6).map_or(ip, IpAddr::V4),
        IpAddr::V4(_) => ip,
    };
    match ip {
        IpAddr::V4(v4) if v4.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(v6) if v6.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    }
}

/// IPv4 inside IPv6: mapped, translated (RFC 6052, 7915), compatible, and 6to4.
fn embedded_v4(v6: Ipv6Addr) -> Option<Ipv4Addr> {
    let (high, low) = match v6.segments() {
        [0, 0, 0, 0, 0, 0xffff, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0x64, 0xff9b, 0 | 1, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => (high, low),
        // `::1` and `::` are IPv6's own, the rest of ::/16 below 0.1.0.0 means nothing.
        [0, 0, 0, 0, 0, 0, high, low] if high != 0 => (high, low),
        _ => return None,
    };
    Some(Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)))
}

/// The address in a host, if it is one: in every form of `inet_aton`, also with a final dot.
pub(super) fn literal(host: &str) -> Option<IpAddr> {
    let host = plain_name(host);
    host.parse()
        .ok()
        .or_else(|| inet_aton(host).map(IpAddr::V4))
}

/// One to four numbers, decimal, octal (`0…`) or hexadecimal (`0x…`); the last one fills the
/// remaining bytes.
fn inet_aton(host: &str) -> Option<Ipv4Addr> {
    let parts: Vec<u64> = host.split('.').map(number).collect::<Option<_>>()?;
    let (last, first) = parts.split_last()?;
    let bits = 8 * 4usize.checked_sub(first.len()).filter(|&bytes| bytes > 0)?;
    if last >> bits != 0 || first.iter().any(|&part| part > 0xff) {
        return None;
    }
    let high = first.iter().fold(0, |high, part| (high << 8) | part);
    u32::try_from((high << bits) | last)
        .ok()
        .map(Ipv4Addr::from)
}

/// A part of an address as `strtoul` parses it.
fn number(part: &str) -> Option<u64> {
    let (digits, radix) = match part.as_bytes() {
        [b'0', b'x' | b'X', ..] => (&part[2..], 16),
        [b'0', _, ..] => (&part[1..], 8),
        _ => (part, 10),
    };
    if digits.starts_with('+') {
        return None;
    }
    u64::from_str_radix(digits, radix).ok()
}

/// Whether all parts of a host are numbers. Some programs accept invalid ones as addresses, with
/// overflow.
pub(super) fn is_all_numbers(host: &str) -> bool {
    let is_number = |part: &str| {
        let hex = part.strip_prefix("0x").or_else(|| part.strip_prefix("0X"));
        let digits = hex.unwrap_or(part);
        digits.bytes().all(|b| match hex {
            Some(_) => b.is_ascii_hexdigit(),
            None => b.is_ascii_digit(),
        })
    };
    plain_name(host).split('.').all(is_number)
}

/// Whether a name always means this machine (RFC 6761 §6.3).
pub(super) fn is_localhost(host: &str) -> bool {
    let name = plain_name(host);
    name == "localhost" || name.ends_with(".localhost")
}

/// A name without final dots.
pub(super) fn plain_name(host: &str) -> &str {
    host.trim_end_matches('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_covers_names_and_literals() {
        let list = [
            "*.example".to_owned(),
            "10.0.0.0/8".to_owned(),
            "::1".to_owned(),
        ];
        let list = HostPatterns::new(&list).unwrap();
        for (host, covered) in [
            ("a.example", true),
            ("a.example.", true),
            ("example", false),
            ("10.1.2.3", true),
            ("11.1.2.3", false),
            ("::1", true),
        ] {
            assert_eq!(list.matches(host), covered, "{host}");
        }
    }

    #[test]
    fn a_list_covers_a_host_in_every_form() {
        for (entry, host, port, covered) in [
            ("*.Prod.example", "API.prod.example.", 80, true),
            ("*.prod.example", "prod.example", 80, false),
            ("api.example:443", "api.example", 443, true),
            ("api.example:443", "api.example", 80, false),
            ("127.0.0.1", "127.1", 80, true),
            ("127.0.0.1", "0x7f000001", 80, true),
            ("127.0.0.1", "2130706433.", 80, true),
            ("127.0.0.1", "[::ffff:127.0.0.1]", 80, true),
            ("127.0.0.1", "::ffff:7f00:1", 80, true),
            ("127.0.0.1", "0.0.0.0", 80, true),
            ("127.0.0.1", "localhost", 80, true),
            ("127.0.0.1", "::1", 80, false),
            ("127.1:80", "127.0.0.1", 80, true),
            ("2130706433", "localhost.", 80, true),
            ("[::ffff:127.0.0.1]:80", "127.0.0.1", 80, true),
            ("::1", "LocalHost", 80, true),
            ("[::1]", "[0:0:0:0:0:0:0:1]", 80, true),
            ("localhost", "127.0.0.1", 80, true),
            ("localhost:80", "[::1]", 80, true),
            ("localhost:80", "[::1]", 81, false),
            ("db.localhost", "127.1", 80, true),
            ("localhost", "127.0.0.2", 80, false),
            ("localhost", "up.example", 80, false),
            ("127.0.0.0/8", "127.2", 80, true),
            ("10.*", "167772161", 80, true),
            ("20*", "2024", 80, true),
        ] {
            let list = HostPatterns::new(&[entry.to_owned()]).unwrap();
            let found = list.covering(host, Some(port));
            assert_eq!(found, covered.then_some(entry), "{entry}: {host}:{port}");
        }
        let list = HostPatterns::new(&["api.example:443".to_owned()]).unwrap();
        assert!(
            list.covering("api.example", None).is_some(),
            "a port that nobody knows"
        );
    }

    #[test]
    fn every_form_of_an_address_is_read_as_that_address() {
        for (host, address) in [
            ("169.254.169.254", Some("169.254.169.254")),
            ("169.254.169.254.", Some("169.254.169.254")),
            ("2852039166", Some("169.254.169.254")),
            ("0xA9FEA9FE", Some("169.254.169.254")),
            ("0Xa9fea9fe.", Some("169.254.169.254")),
            ("025177524776", Some("169.254.169.254")),
            ("169.16689662", Some("169.254.169.254")),
            ("169.254.43518", Some("169.254.169.254")),
            ("0251.0376.0251.0376", Some("169.254.169.254")),
            ("0xa9.0376.169.0xfe", Some("169.254.169.254")),
            ("0000251.0xfe.43518", Some("169.254.169.254")),
            ("127.1", Some("127.0.0.1")),
            ("0", Some("0.0.0.0")),
            ("::ffff:a9fe:a9fe", Some("::ffff:169.254.169.254")),
            ("4294967295", Some("255.255.255.255")),
            ("4294967296", None),
            ("1.2.3.4.5", None),
            ("256.1.1.1", None),
            ("1.2.65536", None),
            ("08.1.1.1", None),
            ("+1.1.1.1", None),
            ("0x", None),
            ("1..1", None),
            ("", None),
            (".", None),
            ("a.1", None),
        ] {
            let expected = address.map(|a| a.parse::<IpAddr>().unwrap());
            assert_eq!(literal(host), expected, "{host}");
        }
        for (host, numbers) in [
            ("425.510.425.510", true),
            ("7147006462.", true),
            ("0x1A9FEA9FE", true),
            ("1.2.3.4.5", true),
            ("web.1", false),
            ("0xq.1", false),
        ] {
            assert_eq!(is_all_numbers(host), numbers, "{host}");
        }
    }

    #[test]
    fn what_is_no_pattern_is_called_by_its_name() {
        for (entry, complaint) in [
            ("[::1]", None),
            ("[::1]:443", None),
            ("::1", None),
            ("a.example:443", None),
            (
                "[[",
                Some("only `:` and a port from 0 to 65535 may follow the host"),
            ),
            ("[::1", Some("only `:` and a port")),
            ("[[]", Some("`[` is not an IPv6 address")),
            ("[a.example]:1", Some("`a.example` is not an IPv6 address")),
            ("[::1]443", Some("only `:` and a port")),
            ("a[b", Some("`a[b` is not an IPv6 address")),
            ("[::1]:x", Some("only `:` and a port")),
            ("h:99999", Some("only `:` and a port")),
            ("h:", Some("only `:` and a port")),
            (":443", Some("the host is missing")),
            ("1:2:z", Some("`1:2:z` is not an IPv6 address")),
            ("10.0.0.0/40", Some("not a network")),
        ] {
            match (HostPattern::parse(entry), complaint) {
                (Ok(_), None) => {}
                (Err(found), Some(expected)) => {
                    let found = found.to_string();
                    assert!(found.contains(expected), "{entry}: {found}");
                }
                (found, expected) => panic!("{entry}: {found:?}, not {expected:?}"),
            }
        }
    }
}
