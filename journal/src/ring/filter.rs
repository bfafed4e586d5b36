//! Which of a ring's exchanges are wanted.

use std::sync::Arc;

use super::Entry;
use crate::record::{Kind, Outcome};
use crate::scopes::Scopes;

/// What filters look at in an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traits<'a> {
    /// The scope it fell into.
    pub scope: &'a str,
    /// What it is.
    pub kind: Kind,
    /// Tool name, when one is known.
    pub tool: Option<&'a str>,
    /// Other tools that were called in the same request.
    pub more_tools: &'a [Arc<str>],
    /// Tools that a model's answer asks for.
    pub tool_calls: &'a [String],
    /// Upstream URL.
    pub url: &'a str,
    /// What the agent got.
    pub status: Option<u16>,
    /// How it ended, or that it is open.
    pub outcome: Outcome,
}

impl Traits<'_> {
    fn is_of(&self, tool: &str) -> bool {
        self.tool == Some(tool)
            || self.more_tools.iter().any(|more| **more == *tool)
            || self.tool_calls.iter().any(|call| call == tool)
    }
}

/// Which exchanges are wanted; every part that is given must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// The scopes that whoever asks sees.
    pub scopes: Scopes,
    /// The scope's name.
    pub scope: Option<String>,
    /// The kind.
    pub kind: Option<Kind>,
    /// The upstream's host, or host and port, the scheme's own included; case does not matter.
    pub host: Option<String>,
    /// The tool's name: of the exchange, one that a model's answer asks for, or one of whose results a
    /// rule told the model something else.
    pub tool: Option<String>,
    /// Id or mode of a rule that was applied; `*` for any.
    pub fault: Option<String>,
    /// What the agent got.
    pub status: Option<StatusFilter>,
    /// Begun at or after this point, milliseconds since 1970.
    pub since_ms: Option<u64>,
}

/// Which statuses are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusFilter {
    /// Exactly this one: `503`.
    Exactly(u16),
    /// A hundred of them, by the first digit: `5xx`.
    Class(u8),
    /// No answer at all: `none`.
    NoAnswer,
}

impl StatusFilter {
    /// Reads `503`, `5xx` or `none`.
    pub fn parse(text: &str) -> Option<Self> {
        match text.as_bytes() {
            b"none" => Some(Self::NoAnswer),
            [class @ b'1'..=b'5', b'x' | b'X', b'x' | b'X'] => Some(Self::Class(class - b'0')),
            [b'1'..=b'9', b'0'..=b'9', b'0'..=b'9'] => text.parse().ok().map(Self::Exactly),
            _ => None,
        }
    }

    fn holds(self, status: Option<u16>, outcome: Outcome) -> bool {
        match self {
            Self::Exactly(wanted) => status == Some(wanted),
            Self::Class(class) => status.is_some_and(|s| s / 100 == u16::from(class)),
            Self::NoAnswer => status.is_none() && outcome != Outcome::Open,
        }
    }
}

impl Filter {
    /// Whether `entry` is wanted.
    pub fn holds(&self, entry: &impl Entry) -> bool {
        let it = entry.traits();
        self.since_ms
            .is_none_or(|since| entry.id().started_ms() >= since)
            && self.scopes.hold(it.scope)
            && self.scope.as_ref().is_none_or(|scope| scope == it.scope)
            && self.kind.is_none_or(|kind| kind == it.kind)
            && self
                .tool
                .as_ref()
                .is_none_or(|tool| it.is_of(tool) || entry.told_of(tool))
            && self
                .status
                .is_none_or(|status| status.holds(it.status, it.outcome))
            && self
                .host
                .as_ref()
                .is_none_or(|host| is_at_host(it.url, host))
            && self
                .fault
                .as_ref()
                .is_none_or(|fault| entry.had_fault(fault))
    }
}

fn is_at_host(url: &str, wanted: &str) -> bool {
    let (host, port) = host_and_port(url);
    if wanted.eq_ignore_ascii_case(host) {
        return true;
    }
    let named = port.and_then(|port| wanted.strip_suffix(port)?.strip_suffix(':'));
    named.is_some_and(|named| named.eq_ignore_ascii_case(host))
}

/// The host of a URL, or of `host:port`, and its port: the scheme's own where the URL names none.
pub fn host_and_port(url: &str) -> (&str, Option<&str>) {
    let (scheme, after_scheme) = url.split_once("://").unwrap_or(("", url));
    let authority = after_scheme
        .split(['/', '?', '#'])
        .next()
        .unwrap_or_default();
    let authority = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    match authority.rfind(':') {
        Some(colon) if !authority[colon..].contains(']') => {
            (&authority[..colon], Some(&authority[colon + 1..]))
        }
        _ => {
            let is =
                |schemes: [&str; 2]| schemes.iter().any(|one| scheme.eq_ignore_ascii_case(one));
            let port = if is(["http", "ws"]) {
                Some("80")
            } else if is(["https", "wss"]) {
                Some("443")
            } else {
                None
            };
            (authority, port)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Seen, seen};
    use super::*;

    #[test]
    fn every_part_of_a_filter_must_hold() {
        let entry = Seen {
            scope: "blue",
            kind: Kind::Llm,
            tool: Some("search"),
            url: "https://API.example:8443/v1?q=x",
            status: Some(503),
            fault: Some("error"),
            ..seen(1000)
        };
        let all = Filter {
            scopes: Scopes::Of("blue".into()),
            scope: Some("blue".into()),
            kind: Some(Kind::Llm),
            host: Some("api.EXAMPLE".into()),
            tool: Some("search".into()),
            fault: Some("error".into()),
            status: Some(StatusFilter::Class(5)),
            since_ms: Some(1000),
        };
        assert!(all.holds(&entry));
        let among_others = Seen {
            tool: Some("mail"),
            more_tools: vec!["book".into(), "search".into()],
            ..entry.clone()
        };
        assert!(all.holds(&among_others));
        let asked_for_by_a_model = Seen {
            tool: None,
            tool_calls: vec!["mail".to_owned(), "search".to_owned()],
            ..entry.clone()
        };
        assert!(all.holds(&asked_for_by_a_model));
        let told_of_otherwise = Seen {
            tool: None,
            told_of: Some("search"),
            ..entry.clone()
        };
        assert!(all.holds(&told_of_otherwise));
        for (part, filter) in [
            (
                "scope",
                Filter {
                    scope: Some("green".into()),
                    ..all.clone()
                },
            ),
            (
                "kind",
                Filter {
                    kind: Some(Kind::Tool),
                    ..all.clone()
                },
            ),
            (
                "host",
                Filter {
                    host: Some("example".into()),
                    ..all.clone()
                },
            ),
            (
                "tool",
                Filter {
                    tool: Some("mail".into()),
                    ..all.clone()
                },
            ),
            (
                "fault",
                Filter {
                    fault: Some("slow".into()),
                    ..all.clone()
                },
            ),
            (
                "status",
                Filter {
                    status: Some(StatusFilter::Exactly(500)),
                    ..all.clone()
                },
            ),
            (
                "since",
                Filter {
                    since_ms: Some(1001),
                    ..all.clone()
                },
            ),
        ] {
            assert!(!filter.holds(&entry), "{part}");
        }
    }

    #[test]
    fn a_host_is_named_with_or_without_its_port() {
        for (url, host, is_there) in [
            ("https://api.example/v1", "api.example", true),
            ("https://api.example:8443/v1", "api.example", true),
            ("https://api.example:8443/v1", "api.example:8443", true),
            ("https://api.example:8443/v1", "api.example:443", false),
            ("http://[::1]:80/", "[::1]", true),
            ("http://u:p@h/", "h", true),
            ("https://other/api.example", "api.example", false),
            ("tunnel.example:443", "tunnel.example", true),
            ("http://api.example/v1", "API.example:80", true),
            ("http://api.example/v1", "api.example:443", false),
            ("https://api.example", "api.example:443", true),
            ("wss://api.example/live", "api.example:443", true),
            ("http://[::1]/v1", "[::1]:80", true),
            ("http://api.example:8080/v1", "api.example:80", false),
            ("tunnel.example", "tunnel.example:443", false),
        ] {
            assert_eq!(is_at_host(url, host), is_there, "{url} at {host}");
        }
    }

    #[test]
    fn statuses_are_named_alone_or_by_class() {
        for (text, expected) in [
            ("503", Some(StatusFilter::Exactly(503))),
            ("5xx", Some(StatusFilter::Class(5))),
            ("none", Some(StatusFilter::NoAnswer)),
            ("50", None),
            ("5x", None),
            ("abc", None),
            ("0xx", None),
            ("6xx", None),
            ("9xx", None),
        ] {
            assert_eq!(StatusFilter::parse(text), expected, "{text}");
        }
        assert!(
            !StatusFilter::NoAnswer.holds(None, Outcome::Open),
            "it may still get one"
        );
        assert!(StatusFilter::NoAnswer.holds(None, Outcome::Injected));
    }
}
