//! The input of a decision: the properties of one exchange that rules match on.
//!
//! The proxy fills it in: URL, method and headers from the request's head, the rest from the body
//! if a rule needs it.

use std::cell::{Cell, OnceCell};

use http::header::UPGRADE;
use http::{HeaderMap, Method, Uri};
pub use squall_journal::record::Kind;

use crate::json_tree::{self, JsonTree, NotRead};

/// One exchange, as rules see it.
#[derive(Debug, Clone)]
pub struct Facts<'a> {
    /// What the exchange is.
    pub kind: Kind,
    /// Name of the dialect, for kind `llm` and for an upgrade to a WebSocket of model calls.
    pub dialect: Option<&'a str>,
    /// Tool names that match this exchange: from the `tools:` map, or the called MCP tool.
    pub tools: &'a [String],
    /// Whether an MCP exchange is a tool call (`tools/call`), according to a header or the body; whether one with an
    /// agent sends it a message.
    pub rpc_tool_call: bool,
    /// Whether an MCP exchange lists the tools (`tools/list`), according to a header or the body.
    pub mcp_tool_list: bool,
    /// Name of the calling agent, if it is known.
    pub from: Option<&'a str>,
    /// Whether the body may still show that the exchange is MCP or A2A: older versions have no header for
    /// it.
    pub may_be_rpc: bool,
    /// The request's method; `CONNECT` for [`Stage::Connect`].
    pub method: &'a Method,
    /// Where the exchange goes.
    pub url: &'a CanonicalUrl,
    /// The request's headers as the agent sent them.
    pub headers: &'a HeaderMap,
    /// The requested model, once the body is read.
    pub model: Option<&'a str>,
    /// Whether the agent requests a stream, once the body is read.
    pub stream: Option<bool>,
    /// For a model call: the tools with new results in the request, once the body is read. The name
    /// is empty if the tool is unknown. `None`: not inspected.
    pub results: Option<&'a [String]>,
    /// The request's body, decoded, when it was read ahead.
    pub body: Option<Body<'a>>,
}

/// Most values that the `JSONPath`s of all rules visit in one exchange.
const MOST_LOOKED_AT: usize = 1_000_000;

/// Search budget of all regular expressions in one exchange: compiled bytes times bytes of the
/// body.
const MOST_SEARCHED: usize = 1 << 38;

/// A request's body. It is parsed as JSON once, when the first rule needs it.
#[derive(Debug, Clone)]
pub struct Body<'a> {
    /// The body, decoded.
    pub bytes: &'a [u8],
    json: OnceCell<Result<JsonTree, NotRead>>,
    /// Remaining number of values that `JSONPath`s may visit.
    left: Cell<usize>,
    /// Remaining search budget of regular expressions.
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

    /// Takes `values` from the visit budget; false if it is exceeded, and from then on.
    pub(crate) fn may_look_at(&self, values: usize) -> bool {
        takes(&self.left, values)
    }

    /// Takes the cost of an expression of this compiled size from the search budget; false if it is
    /// exceeded, and from then on.
    pub(crate) fn may_be_searched(&self, size: usize) -> bool {
        takes(&self.left_to_search, size.saturating_mul(self.bytes.len()))
    }

    /// Why rules cannot inspect the whole body.
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

/// Takes `much` from the budget; if that exceeds it, nothing remains.
fn takes(left: &Cell<usize>, much: usize) -> bool {
    let after = left.get().checked_sub(much);
    left.set(after.unwrap_or(0));
    after.is_some()
}

impl Facts<'_> {
    /// Whether the request is an upgrade to a WebSocket.
    pub(crate) fn opens_a_websocket(&self) -> bool {
        let protocols = self.headers.get_all(UPGRADE).iter();
        let mut protocols =
            protocols.flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
        protocols.any(|name| name.trim_ascii().eq_ignore_ascii_case(b"websocket"))
    }

    /// Whether it is the upgrade to a WebSocket of model calls.
    pub(crate) fn opens_model_socket(&self) -> bool {
        self.kind == Kind::Other && self.dialect.is_some()
    }

    /// Whether a model call has tool results whose tools are unknown.
    pub(crate) fn brings_nameless_results(&self) -> bool {
        self.results
            .is_some_and(|tools| tools.iter().any(String::is_empty))
    }

    /// Whether the unread body decides if this is MCP or A2A, or which call it makes.
    pub(crate) fn mcp_is_open(&self) -> bool {
        let may = self.kind == Kind::Mcp || self.may_be_rpc;
        may && self.body.is_none() && self.method == Method::POST
    }
}

/// The point at which a decision is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// At a CONNECT, before the upstream is dialled: only scheme and authority are known.
    Connect,
    /// At a request.
    Request {
        /// The request came through a tunnel, for which [`Stage::Connect`] already decided
        /// connection faults.
        behind_connect: bool,
    },
}

/// An upstream URL in the normal form that globs match.
///
/// Scheme and host are lower case, default ports are removed, and an empty path is `/`. `ws`
/// becomes `http` and `wss` becomes `https`. Path and query stay byte for byte as sent.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CanonicalUrl {
    text: String,
    /// Where the authority begins: after `://`.
    authority: usize,
    /// Where the path begins.
    path: usize,
}

impl CanonicalUrl {
    /// Builds a URL from its parts; `authority` is `host` or `host:port`, with an IPv6 host in
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
        // User information is not part of the destination.
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

    /// Parses an absolute URL.
    pub fn parse(url: &str) -> Option<Self> {
        let uri = url.parse::<Uri>().ok()?;
        let (scheme, authority) = (uri.scheme_str()?, uri.authority()?);
        let rest = url.find("://").map_or("", |at| &url[at + 3..]);
        let path = rest.find('/').map_or("/", |slash| &rest[slash..]);
        Some(Self::new(scheme, authority.as_str(), path))
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
