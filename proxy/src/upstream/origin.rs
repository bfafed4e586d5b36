//! Origins of upstreams: scheme, host and port, and the server name for TLS.

use std::fmt;
use std::net::Ipv6Addr;
use std::sync::Arc;

use http::Uri;
use http::uri::Authority;

/// An upstream as requests name it; the key of pooled connections.
///
/// The host is in lower case, without the brackets of an IPv6 literal. Cloning is cheap.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct UpstreamOrigin {
    scheme: Scheme,
    port: u16,
    host: Arc<str>,
    /// The TLS server name, if it differs from the host.
    server_name: Option<Arc<str>>,
    /// It is used by an unapproved run, which must not use others' connections: they may lead to
    /// forbidden hosts.
    unapproved: bool,
}

/// The scheme of an origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// Plain HTTP.
    Http,
    /// TLS.
    Https,
}

impl Scheme {
    /// The default port (RFC 9110 §4.2).
    pub fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }

    /// As written in a URL.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }
}

impl UpstreamOrigin {
    /// An origin from its parts; `host` is a name or an IP literal, with or without brackets.
    pub fn new(scheme: Scheme, host: &str, port: u16) -> Self {
        Self {
            scheme,
            port,
            host: canonical_host(host),
            server_name: None,
            unapproved: false,
        }
    }

    /// The origin of an absolute URI; `ws` and `wss` become `http` and `https`.
    ///
    /// `None` if the URI has no host or another scheme.
    pub(crate) fn of_uri(uri: &Uri) -> Option<Self> {
        let scheme = match uri.scheme_str()? {
            "http" | "ws" => Scheme::Http,
            "https" | "wss" => Scheme::Https,
            _ => return None,
        };
        Some(Self::of_authority(scheme, uri.authority()?))
    }

    /// The origin of an authority (a `Host` header, a CONNECT target) under `scheme`.
    pub(crate) fn of_authority(scheme: Scheme, authority: &Authority) -> Self {
        let port = authority.port_u16().unwrap_or(scheme.default_port());
        Self::new(scheme, authority.host(), port)
    }

    /// The same host and port with another scheme, for a CONNECT target once its first bytes are
    /// known.
    #[must_use]
    pub(crate) fn with_scheme(mut self, scheme: Scheme) -> Self {
        self.scheme = scheme;
        self
    }

    /// The same origin with this TLS server name: the agent's own SNI.
    #[must_use]
    pub(crate) fn with_server_name(mut self, name: &str) -> Self {
        let name = canonical_host(name);
        self.server_name = (name != self.host).then_some(name);
        self
    }

    /// The same origin, for an unapproved run or for others.
    #[must_use]
    pub fn unapproved(mut self, unapproved: bool) -> Self {
        self.unapproved = unapproved;
        self
    }

    /// Whether an unapproved run uses it.
    pub(crate) fn is_unapproved(&self) -> bool {
        self.unapproved
    }

    /// Its scheme.
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// Name or IP literal, lower case, no brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// TCP port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The name for TLS, which is also verified.
    pub(crate) fn server_name(&self) -> &str {
        self.server_name.as_deref().unwrap_or(&self.host)
    }

    /// The authority for a URL: without the default port, IPv6 in brackets.
    pub fn authority(&self) -> String {
        if self.port == self.scheme.default_port() {
            bracketed(&self.host)
        } else {
            host_and_port(&self.host, self.port)
        }
    }

    /// `host:port`, always with the port.
    pub fn host_and_port(&self) -> String {
        host_and_port(&self.host, self.port)
    }
}

impl fmt::Display for UpstreamOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme.as_str(), self.authority())
    }
}

impl fmt::Debug for UpstreamOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")?;
        match &self.server_name {
            Some(name) => write!(f, " (as {name})"),
            None => Ok(()),
        }
    }
}

/// `host:port` for a CONNECT line.
pub(crate) fn host_and_port(host: &str, port: u16) -> String {
    let mut text = bracketed(host);
    text.push(':');
    text.push_str(&port.to_string());
    text
}

/// Splits `host:port`, `[v6]:port` or a bare host; `None` if the port is invalid.
pub(crate) fn split_host_and_port(text: &str) -> Option<(&str, Option<u16>)> {
    if let Some(rest) = text.strip_prefix('[') {
        let (host, after) = rest.split_once(']')?;
        return match after.strip_prefix(':') {
            Some(port) => Some((host, Some(port.parse().ok()?))),
            None if after.is_empty() => Some((host, None)),
            None => None,
        };
    }
    match text.rsplit_once(':') {
        // A second colon without brackets: an IPv6 literal, not a port.
        Some((host, _)) if host.contains(':') => Some((text, None)),
        Some((host, port)) => Some((host, Some(port.parse().ok()?))),
        None => Some((text, None)),
    }
}

/// Why a parsed authority does not name a valid host and port; `None` if it does.
///
/// An empty port counts as absent (RFC 3986 §3.2.3).
pub(crate) fn flaw(authority: &Authority) -> Option<&'static str> {
    let host = authority.host();
    if host.is_empty() {
        return Some("it has no host");
    }
    let literal = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    if literal.is_some_and(|literal| literal.parse::<Ipv6Addr>().is_err()) {
        return Some("only an IPv6 address stands in brackets");
    }
    let written = authority.as_str();
    let place = written.rsplit_once('@').map_or(written, |(_, place)| place);
    let port = match &place[host.len()..] {
        "" | ":" => return None,
        rest => rest.strip_prefix(':'),
    };
    let digits = port.filter(|port| port.bytes().all(|byte| byte.is_ascii_digit()));
    match digits.map(str::parse::<u16>) {
        Some(Ok(1..)) => None,
        _ => Some("its port is not a number from 1 to 65535"),
    }
}

fn bracketed(host: &str) -> String {
    if host.contains(':') {
        format!("[{host}]")
    } else {
        host.to_owned()
    }
}

fn canonical_host(host: &str) -> Arc<str> {
    let host = host
        .strip_prefix('[')
        .and_then(|h| h.strip_suffix(']'))
        .unwrap_or(host);
    // IPv4 addresses have only one valid form.
    if let Ok(ip) = host.parse::<Ipv6Addr>() {
        return ip.to_string().into();
    }
    if host.bytes().any(|b| b.is_ascii_uppercase()) {
        host.to_ascii_lowercase().into()
    } else {
        host.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_place_is_one_origin_however_it_is_written() {
        for (a, b) in [
            ("http://Example.COM/x", "http://example.com:80/y?z"),
            ("https://[::1]:443/", "https://[0:0:0:0:0:0:0:1]/"),
            ("ws://h/", "http://h/"),
        ] {
            let a: Uri = a.parse().unwrap();
            let b: Uri = b.parse().unwrap();
            assert_eq!(
                UpstreamOrigin::of_uri(&a).unwrap(),
                UpstreamOrigin::of_uri(&b).unwrap()
            );
        }
    }

    #[test]
    fn another_scheme_port_or_server_name_is_another_origin() {
        let origin = UpstreamOrigin::new(Scheme::Https, "h", 443);
        assert_ne!(origin, origin.clone().with_scheme(Scheme::Http));
        assert_ne!(origin, UpstreamOrigin::new(Scheme::Https, "h", 444));
        assert_ne!(origin, origin.clone().with_server_name("g"));
        assert_eq!(origin, origin.clone().with_server_name("H"));
    }

    #[test]
    fn an_authority_leaves_the_default_port_out() {
        for (host, port, authority) in [
            ("h", 443, "h"),
            ("h", 80, "h:80"),
            ("::1", 443, "[::1]"),
            ("::1", 8, "[::1]:8"),
        ] {
            assert_eq!(
                UpstreamOrigin::new(Scheme::Https, host, port).authority(),
                authority
            );
        }
    }

    #[test]
    fn an_authority_has_a_host_and_a_port_that_can_be_one() {
        for (text, names_a_place) in [
            ("h", true),
            ("h:", true),
            ("h:1", true),
            ("h:00080", true),
            ("h:65535", true),
            ("me:secret@h", true),
            ("me:secret@h:443", true),
            ("[::1]", true),
            ("[::1]:443", true),
            (":443", false),
            ("me@:443", false),
            ("h:0", false),
            ("h:65536", false),
            ("h:+80", false),
            ("h:abc", false),
            ("[::1]:65536", false),
            ("[::1]x", false),
            ("[h]:443", false),
        ] {
            let authority = text.parse::<Authority>();
            let names = authority.is_ok_and(|authority| flaw(&authority).is_none());
            assert_eq!(names, names_a_place, "{text}");
        }
    }

    #[test]
    fn a_port_is_split_from_names_and_literals() {
        for (text, split) in [
            ("h", Some(("h", None))),
            ("h:1", Some(("h", Some(1)))),
            ("[::1]:1", Some(("::1", Some(1)))),
            ("[::1]", Some(("::1", None))),
            ("::1", Some(("::1", None))),
            ("h:99999", None),
            ("h:", None),
            ("[::1]x", None),
        ] {
            assert_eq!(split_host_and_port(text), split, "{text}");
        }
    }
}
