//! Filters of exchanges.

use std::sync::Arc;

use super::Entry;
use crate::record::{Kind, Outcome};
use crate::scopes::Scopes;

/// The parts of an exchange that filters read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traits<'a> {
    /// Scope.
    pub scope: &'a str,
    /// Kind.
    pub kind: Kind,
    /// Tool name, if one is known.
    pub tool: Option<&'a str>,
    /// Other tools that were called in the same request.
    pub more_tools: &'a [Arc<str>],
    /// Tools that a model's response calls.
    pub tool_calls: &'a [String],
    /// Upstream URL.
    pub url: &'a str,
    /// Status that the agent got.
    pub status: Option<u16>,
    /// How it ended, or [`Outcome::Open`].
    pub outcome: Outcome,
    /// Id of its run.
    pub run: Option<&'a str>,
}

impl Traits<'_> {
    fn is_of(&self, tool: &str) -> bool {
        self.tool == Some(tool)
            || self.more_tools.iter().any(|more| **more == *tool)
            || self.tool_calls.iter().any(|call| call == tool)
    }
}

/// A filter of exchanges; all parts that are set must match.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// The scopes that the caller may see.
    pub scopes: Scopes,
    /// The scope's name.
    pub scope: Option<String>,
    /// The kind.
    pub kind: Option<Kind>,
    /// The upstream's host, or host and port, also the scheme's default; case does not matter.
    pub host: Option<String>,
    /// Name of a tool of the exchange: called in it, called by a model's response, or with results that a rule
    /// changed for the model.
    pub tool: Option<String>,
    /// Id or mode of a rule that was applied; `*` for any.
    pub fault: Option<String>,
    /// Status that the agent got.
    pub status: Option<StatusFilter>,
    /// Id of its run.
    pub run: Option<String>,
    /// Started at this time or later, milliseconds since 1970.
    pub since_ms: Option<u64>,
}

/// A filter of statuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusFilter {
    /// Exactly this one: `503`.
    Exactly(u16),
    /// By the first digit: `5xx`.
    Class(u8),
    /// No response: `none`.
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
    /// Whether an exchange matches the filter.
    pub fn holds(&self, entry: &impl Entry) -> bool {
        let it = entry.traits();
        let wants =
            |part: &Option<String>, holds: &dyn Fn(&str) -> bool| part.as_deref().is_none_or(holds);
        let since = self.since_ms.unwrap_or(0);
        entry.id().started_ms() >= since
            && self.scopes.hold(it.scope)
            && wants(&self.scope, &|scope| scope == it.scope)
            && self.kind.is_none_or(|kind| kind == it.kind)
            && wants(&self.tool, &|tool| it.is_of(tool) || entry.told_of(tool))
            && (self.status).is_none_or(|status| status.holds(it.status, it.outcome))
            && wants(&self.run, &|run| it.run == Some(run))
            && wants(&self.host, &|host| is_at_host(it.url, host))
            && wants(&self.fault, &|fault| entry.had_fault(fault))
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

/// The host of a URL, or of `host:port`, and its port: that of the scheme if the URL has none.
pub fn host_and_port(url: &str) -> (&str, Option<&str>) {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let (_, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    match host.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => {
            let is = |one: &str| scheme.eq_ignore_ascii_case(one);
            let secure = is("https") || is("wss");
            let plain = is("http") || is("ws");
            (host, secure.then_some("443").or(plain.then_some("80")))
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
            run: Some("r1"),
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
            run: Some("r1".into()),
            since_ms: Some(1000),
        };
        let entry = |change: fn(&mut Seen)| {
            let mut entry = entry.clone();
            change(&mut entry);
            entry
        };
        for fits in [
            entry(|_| ()),
            entry(|it| {
                (it.tool, it.more_tools) = (Some("mail"), vec!["book".into(), "search".into()]);
            }),
            entry(|it| {
                (it.tool, it.tool_calls) = (None, vec!["mail".into(), "search".into()]);
            }),
            entry(|it| (it.tool, it.told_of) = (None, Some("search"))),
        ] {
            assert!(all.holds(&fits), "{fits:?}");
        }
        for other in [
            entry(|it| it.scope = "green"),
            entry(|it| it.kind = Kind::Tool),
            entry(|it| it.url = "https://example:8443/v1"),
            entry(|it| it.tool = Some("mail")),
            entry(|it| it.fault = Some("slow")),
            entry(|it| it.status = Some(400)),
            entry(|it| it.run = None),
            entry(|it| it.run = Some("r2")),
            entry(|it| it.id = seen(999).id),
        ] {
            assert!(!all.holds(&other), "{other:?}");
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
