//! What a decision may look at: one exchange, reduced to what rules can match on.
//!
//! The proxy fills this in as it learns it: URL, method and headers from the request's head, the
//! rest from the body when some rule asks for it.

use std::cell::{Cell, OnceCell};

use http::{HeaderMap, Method};

use crate::json_tree::{self, JsonTree, NotRead};

/// What an exchange is, as far as faults and metrics are concerned.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// A model call in a recognised dialect.
    Llm,
    /// Any other HTTP exchange.
    #[default]
    Tool,
    /// A JSON-RPC exchange with an MCP server.
    Mcp,
    /// Tunnels, upgrades and connections that never became an HTTP exchange.
    Other,
}

impl Kind {
    /// The name in files, API and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Llm => "llm",
            Self::Tool => "tool",
            Self::Mcp => "mcp",
            Self::Other => "other",
        }
    }
}

/// One exchange, as rules see it.
#[derive(Debug, Clone)]
pub struct Facts<'a> {
    /// What the exchange is.
    pub kind: Kind,
    /// Name of the dialect, for kind `llm`.
    pub dialect: Option<&'a str>,
    /// Names this exchange answers to: of the `tools:` map, of the MCP tool that is called.
    pub tools: &'a [String],
    /// Whether an MCP exchange is a tool call (`tools/call`), known from a header or the body.
    pub mcp_tool_call: bool,
    /// Whether an MCP exchange asks for the tools (`tools/list`), known likewise.
    pub mcp_tool_list: bool,
    /// Whether an exchange taken for something else may turn out to be MCP once its body is read:
    /// older versions have no header that tells.
    pub may_be_mcp: bool,
    /// The request's method; `CONNECT` for [`Stage::Connect`].
    pub method: &'a Method,
    /// Where the exchange goes.
    pub url: &'a CanonicalUrl,
    /// The request's headers as the agent sent them.
    pub headers: &'a HeaderMap,
    /// The model asked for, once the body is read.
    pub model: Option<&'a str>,
    /// Whether the agent asked for a stream, once the body is read.
    pub stream: Option<bool>,
    /// Of a model call: the tools whose results it brings and the model has not seen yet, once the
    /// body is read; empty names for those of which it is not known. `None`: nobody looked.
    pub results: Option<&'a [String]>,
    /// The request's body, decoded, when it was read ahead.
    pub body: Option<Body<'a>>,
}

/// Most values that the `JSONPath`s of all rules look at in one exchange.
const MOST_LOOKED_AT: usize = 1_000_000;

/// Most that the regular expressions of all rules search in one exchange: bytes that they compile to times bytes of the
/// body.
const MOST_SEARCHED: usize = 1 << 38;

/// A request's body. It is read as JSON once, when the first rule asks.
#[derive(Debug, Clone)]
pub struct Body<'a> {
    /// The body, decoded.
    pub bytes: &'a [u8],
    json: OnceCell<Result<JsonTree, NotRead>>,
    /// Values that `JSONPath`s may still look at.
    left: Cell<usize>,
    /// What regular expressions may still cost.
    left_to_search: Cell<usize>,
}

impl<'a> From<&'a [u8]> for Body<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            json: OnceCell::new(),
            left: Cell::new(MOST_LOOKED_AT),
            left_to_search: Cell::new(MOST_SEARCHED),
        }
    }
}

impl Body<'_> {
    pub(crate) fn json(&self) -> &Result<JsonTree, NotRead> {
        self.json.get_or_init(|| json_tree::read(self.bytes))
    }

    /// Whether `JSONPath`s may look at so many values more; once they may not, they never may.
    pub(crate) fn may_look_at(&self, values: usize) -> bool {
        takes(&self.left, values)
    }

    /// Whether an expression that compiles to so many bytes may search it; once one may not, none may.
    pub(crate) fn may_be_searched(&self, size: usize) -> bool {
        takes(&self.left_to_search, size.saturating_mul(self.bytes.len()))
    }

    /// Why rules cannot look at all of it.
    pub(crate) fn why_not_looked_at(&self) -> String {
        if self.left_to_search.get() == 0 {
            return "the regular expressions of all rules are too large to search the request's body in one exchange"
                .to_owned();
        }
        match self.json() {
            Err(why) => format!("the request's body is {why}"),
            Ok(_) => format!(
                "the JSONPaths of all rules would look at more than {MOST_LOOKED_AT} values of the request's body"
            ),
        }
    }
}

/// Takes so much of what is left; if that is too much, nothing is left.
fn takes(left: &Cell<usize>, much: usize) -> bool {
    let after = left.get().checked_sub(much);
    left.set(after.unwrap_or(0));
    after.is_some()
}

impl Facts<'_> {
    /// Whether a model call brings results of tools of which nobody knows which.
    pub(crate) fn brings_nameless_results(&self) -> bool {
        self.results
            .is_some_and(|tools| tools.iter().any(String::is_empty))
    }

    /// Whether the body will tell what is asked of an MCP server, or whether it is one.
    pub(crate) fn mcp_is_open(&self) -> bool {
        let may = self.kind == Kind::Mcp || self.may_be_mcp;
        may && self.body.is_none() && self.method == Method::POST
    }
}

/// When a decision is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// At a CONNECT, before the upstream is dialled: only scheme and authority are known.
    Connect,
    /// At a request. `behind_connect` says that connection faults were decided at a CONNECT before, by
    /// these rules.
    Request {
        /// The request came through a tunnel for which [`Stage::Connect`] was decided.
        behind_connect: bool,
    },
}

/// An upstream URL in the one form that globs are matched against.
///
/// Scheme and host in lower case, default ports elided, `ws` as `http` and `wss` as `https`, path
/// `/` when empty, path and query byte for byte as sent.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CanonicalUrl {
    text: String,
    /// Where the authority begins: after `://`.
    authority: usize,
    /// Where the path begins.
    path: usize,
}

impl CanonicalUrl {
    /// Puts a URL together from its parts; `authority` is `host` or `host:port`, an IPv6 host in
    /// brackets.
    pub fn new(scheme: &str, authority: &str, path_and_query: &str) -> Self {
        let scheme = match scheme {
            s if s.eq_ignore_ascii_case("ws") || s.eq_ignore_ascii_case("http") => "http",
            s if s.eq_ignore_ascii_case("wss") || s.eq_ignore_ascii_case("https") => "https",
            other => other,
        };
        let default_port = match scheme {
            "http" => ":80",
            "https" => ":443",
            _ => "",
        };
        // User information is no part of where an exchange goes.
        let authority = authority
            .rsplit_once('@')
            .map_or(authority, |(_, host)| host);
        let host = match authority.strip_suffix(default_port) {
            Some(host) if !default_port.is_empty() => host,
            _ => authority,
        };
        let mut text =
            String::with_capacity(scheme.len() + 3 + host.len() + path_and_query.len() + 1);
        text.push_str(scheme);
        text.push_str("://");
        let authority_start = text.len();
        text.push_str(host);
        text[..].make_ascii_lowercase();
        let path = text.len();
        if !path_and_query.starts_with('/') {
            text.push('/');
        }
        text.push_str(path_and_query);
        Self {
            text,
            authority: authority_start,
            path,
        }
    }

    /// The whole URL.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// `http` or `https`.
    pub fn scheme(&self) -> &str {
        &self.text[..self.authority - 3]
    }

    /// Host, and port unless it is the scheme's default.
    pub fn authority(&self) -> &str {
        &self.text[self.authority..self.path]
    }

    /// The host alone, without port; IPv6 keeps its brackets.
    pub fn host(&self) -> &str {
        let authority = self.authority();
        match authority.rfind(':') {
            Some(colon) if !authority[colon..].contains(']') => &authority[..colon],
            _ => authority,
        }
    }

    /// Path and query, from the first `/`.
    pub fn path_and_query(&self) -> &str {
        &self.text[self.path..]
    }

    /// Scheme and authority, without path: what is known at a CONNECT.
    pub fn origin(&self) -> &str {
        &self.text[..self.path]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_form_for_every_way_to_write_a_url() {
        for (scheme, authority, path, expected) in [
            (
                "HTTPS",
                "API.Example:443",
                "/V1?q=A",
                "https://api.example/V1?q=A",
            ),
            ("http", "api.example:443", "", "http://api.example:443/"),
            ("ws", "h:80", "/s", "http://h/s"),
            ("wss", "h", "/", "https://h/"),
            ("http", "[::1]:8080", "/x", "http://[::1]:8080/x"),
            ("http", "user:pw@h", "/x", "http://h/x"),
        ] {
            let url = CanonicalUrl::new(scheme, authority, path);
            assert_eq!(url.as_str(), expected);
        }
    }

    #[test]
    fn a_url_can_be_taken_apart() {
        let url = CanonicalUrl::new("http", "[::1]:8080", "/a?b");
        assert_eq!(
            (
                url.scheme(),
                url.authority(),
                url.host(),
                url.path_and_query(),
                url.origin()
            ),
            ("http", "[::1]:8080", "[::1]", "/a?b", "http://[::1]:8080")
        );
    }
}
