//! The conditions of a rule.
//!
//! Conditions on the request's head put a rule on the shortlist; the others need the body. All
//! conditions must hold.

use std::fmt;

use http::{HeaderName, Method};
use regex_automata::meta::Regex;
use serde_json::Value;
use squall_dialects::mcp;

use crate::facts::{Body, Facts, Kind};
use crate::family::Family;
use crate::glob::{Glob, UrlGlobs};
use crate::json_path::Path;
use crate::json_tree::{JsonTree, NotRead};

/// The conditions of a rule; absent ones hold.
#[derive(Debug, Clone, Default)]
pub(crate) struct Match {
    pub(crate) urls: UrlGlobs,
    pub(crate) tool: Option<Box<ToolMatch>>,
    /// The calling agent.
    pub(crate) from: Option<Box<Glob>>,
    pub(crate) methods: Option<Box<[Method]>>,
    pub(crate) status: Option<StatusSet>,
    pub(crate) touches: Touches,
    pub(crate) headers: Vec<(HeaderName, Glob)>,
    pub(crate) body: Option<Regex>,
    pub(crate) json: Vec<JsonCondition>,
    pub(crate) dialect: Option<&'static str>,
    pub(crate) model: Option<Glob>,
    pub(crate) stream: Option<bool>,
    pub(crate) websocket: Option<SocketMatch>,
}

/// The message of a WebSocket with which a fault begins.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SocketMatch {
    /// From 1; `None`: the fault begins with the first.
    pub(crate) message: Option<u64>,
}

/// What a rule affects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Touches {
    /// Tool calls.
    #[default]
    Calls,
    /// Tool lists of an MCP server (`tools/list`); a tool name selects a tool in the list.
    Lists,
    /// Requests of an MCP session, and tool calls.
    Sessions,
    /// Tool results in a model call.
    Results,
    /// Tool calls, and tool results in a model call.
    Either,
    /// Upgrades to sockets of model calls.
    Upgrades,
}

impl Touches {
    /// Whether it affects tool results in a model call.
    pub(crate) fn in_results(self) -> bool {
        matches!(self, Self::Results | Self::Either)
    }
}

/// A tool name, with the URLs that the rule's file defines for it.
#[derive(Debug, Clone)]
pub(crate) struct ToolMatch {
    pub(crate) name: Glob,
    /// `match_url` of the rules in the same file with both this tool and a URL.
    pub(crate) urls: UrlGlobs,
    /// It names an agent, and only messages to it match.
    pub(crate) is_agent: bool,
}

/// A path in a JSON body and its required value.
#[derive(Debug, Clone)]
pub(crate) struct JsonCondition {
    pub(crate) path: Path,
    pub(crate) value: Value,
}

/// A set of statuses: single ones and classes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct StatusSet {
    pub(crate) codes: Vec<u16>,
    /// `5` for `5xx`.
    pub(crate) classes: Vec<u16>,
}

impl StatusSet {
    pub(crate) fn holds(&self, status: u16) -> bool {
        self.codes.contains(&status) || self.classes.contains(&(status / 100))
    }
}

impl fmt::Display for StatusSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let codes = self.codes.iter().map(ToString::to_string);
        let classes = self.classes.iter().map(|class| format!("{class}xx"));
        f.write_str(&codes.chain(classes).collect::<Vec<_>>().join(", "))
    }
}

/// Whether conditions hold, as far as known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Holds {
    No,
    /// Only the request's body will show it.
    Unknown,
    Yes,
}

impl From<bool> for Holds {
    fn from(holds: bool) -> Self {
        if holds { Self::Yes } else { Self::No }
    }
}

/// A single condition, for reports by [`crate::explain`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Condition {
    Kind,
    Url,
    Tool,
    From,
    Methods,
    Headers,
    Dialect,
    Model,
    Stream,
    Body,
    Json,
    Status,
}

impl Condition {
    /// All that the request decides, cheapest first.
    pub(crate) const ALL: [Self; 11] = [
        Self::Kind,
        Self::Methods,
        Self::Dialect,
        Self::Tool,
        Self::From,
        Self::Url,
        Self::Headers,
        Self::Stream,
        Self::Model,
        Self::Json,
        Self::Body,
    ];

    /// The field of a rule that states it.
    pub(crate) fn field(self) -> &'static str {
        match self {
            Self::Kind => "kind",
            Self::Url => "match_url",
            Self::Tool => "tool",
            Self::From => "from",
            Self::Methods => "methods",
            Self::Headers => "headers",
            Self::Dialect => "dialect",
            Self::Model => "model",
            Self::Stream => "stream",
            Self::Body => "match_body",
            Self::Json => "json",
            Self::Status => "status",
        }
    }
}

impl Match {
    /// Whether every condition holds except the URL (verified by the index) and the status.
    pub(crate) fn holds_beside_url(
        &self,
        family: Option<Family>,
        facts: &Facts<'_>,
        tool_urls: &[UrlGlobs],
    ) -> Holds {
        let mut all = Holds::Yes;
        for condition in Condition::ALL {
            if condition == Condition::Url {
                continue;
            }
            match self.holds(condition, family, facts, tool_urls) {
                Holds::No => return Holds::No,
                Holds::Unknown => all = Holds::Unknown,
                Holds::Yes => {}
            }
        }
        all
    }

    /// Whether one condition holds. `family` is the rule's; it is `None` for an `armed_by`
    /// condition, which has no family. `tool_urls` are the config's globs for the tool.
    pub(crate) fn holds(
        &self,
        condition: Condition,
        family: Option<Family>,
        facts: &Facts<'_>,
        tool_urls: &[UrlGlobs],
    ) -> Holds {
        match condition {
            Condition::Kind => self.kind_holds(family, facts),
            Condition::Url => (self.urls.is_empty() || self.urls.matches(facts.url)).into(),
            Condition::Tool => self.tool_holds(facts, tool_urls),
            Condition::From => match (&self.from, facts.from) {
                (None, _) => Holds::Yes,
                (Some(glob), Some(name)) => glob.matches(name).into(),
                (Some(_), None) => Holds::Unknown,
            },
            Condition::Methods => self
                .methods
                .as_ref()
                .is_none_or(|methods| methods.contains(facts.method))
                .into(),
            Condition::Headers => headers_hold(&self.headers, facts).into(),
            Condition::Dialect => {
                let has_dialect = facts.kind == Kind::Llm || self.touches == Touches::Upgrades;
                let dialect = self.dialect;
                (dialect.is_none() || (has_dialect && dialect == facts.dialect)).into()
            }
            Condition::Model => match &self.model {
                None => Holds::Yes,
                Some(glob) => when_read(facts, facts.model.map(|model| glob.matches(model))),
            },
            Condition::Stream => match self.stream {
                None => Holds::Yes,
                Some(expected) => when_read(facts, facts.stream.map(|stream| stream == expected)),
            },
            Condition::Json => match (&self.json[..], &facts.body) {
                ([], _) => Holds::Yes,
                (_, None) => Holds::Unknown,
                (expected, Some(body)) => json_holds(expected, body),
            },
            Condition::Status => Holds::Unknown,
            Condition::Body => match (&self.body, &facts.body) {
                (None, _) => Holds::Yes,
                (Some(regex), Some(body)) if body.may_be_searched(regex.memory_usage()) => {
                    regex.is_match(body.bytes).into()
                }
                (Some(_), Some(_) | None) => Holds::Unknown,
            },
        }
    }

    /// Whether it has conditions besides scheme, authority and path; then a connection fault is
    /// decided at the exchange.
    pub(crate) fn asks_for_an_exchange(&self) -> bool {
        self.tool.is_some()
            || self.from.is_some()
            || self.methods.is_some()
            || self.status.is_some()
            || self.asks_for_headers_or_body()
    }

    pub(crate) fn asks_for_headers_or_body(&self) -> bool {
        !self.headers.is_empty()
            || self.asks_for_the_body()
            || self.dialect.is_some()
            || self.model.is_some()
            || self.stream.is_some()
            || self.websocket.is_some()
    }

    /// Whether a condition needs the request's body.
    pub(crate) fn asks_for_the_body(&self) -> bool {
        self.body.is_some() || !self.json.is_empty()
    }

    /// Whether the exchange's kind matches the family.
    fn kind_holds(&self, family: Option<Family>, facts: &Facts<'_>) -> Holds {
        if self.websocket.is_some() && !facts.opens_a_websocket() {
            return Holds::No;
        }
        if facts.kind == Kind::Agent && self.tool.as_deref().is_some_and(|tool| tool.is_agent) {
            return is_a_tool(facts);
        }
        match self.touches {
            Touches::Calls | Touches::Lists | Touches::Sessions => {}
            Touches::Results => return (facts.kind == Kind::Llm).into(),
            Touches::Upgrades => return facts.opens_model_socket().into(),
            Touches::Either if facts.kind == Kind::Llm => return Holds::Yes,
            Touches::Either => return self.is_a_call(facts),
        }
        match family {
            None | Some(Family::Network) => Holds::Yes,
            Some(Family::Llm | Family::Context) => (facts.kind == Kind::Llm).into(),
            Some(Family::Tool) if self.touches == Touches::Lists && self.urls.is_empty() => {
                is_a_list(facts)
            }
            // With a URL or a tool name, those select the exchange.
            Some(Family::Tool) if !self.urls.is_empty() || self.tool.is_some() => Holds::Yes,
            Some(Family::Tool) if self.touches == Touches::Sessions && is_of_a_session(facts) => {
                Holds::Yes
            }
            Some(Family::Tool) => self.is_a_call(facts),
        }
    }

    /// Whether it is a tool call. A GET that opens an event stream of MCP 2024-11-05 counts only if
    /// the rule has a URL or a method.
    fn is_a_call(&self, facts: &Facts<'_>) -> Holds {
        let is_asked_for = !self.urls.is_empty() || self.methods.is_some();
        if !is_asked_for && may_only_listen(facts) {
            return Holds::No;
        }
        is_a_tool(facts)
    }

    fn tool_holds(&self, facts: &Facts<'_>, tool_urls: &[UrlGlobs]) -> Holds {
        if self.touches.in_results() && facts.kind == Kind::Llm {
            return self.result_holds(facts);
        }
        let Some(tool) = self.tool.as_deref() else {
            return Holds::Yes;
        };
        if self.touches == Touches::Lists {
            return is_a_list(facts);
        }
        if tool.name.is_everything() {
            return self.is_a_call(facts);
        }
        if facts.tools.iter().any(|name| tool.name.matches(name)) {
            return Holds::Yes;
        }
        // An MCP server has many tools at one URL, so only the called name counts.
        match facts.kind {
            // A name in the head is sufficient: servers reject one that contradicts the body.
            Kind::Mcp if facts.rpc_tool_call && !facts.tools.is_empty() => Holds::No,
            _ if facts.mcp_is_open() => Holds::Unknown,
            Kind::Mcp => Holds::No,
            Kind::Llm | Kind::Tool | Kind::Agent | Kind::Other => {
                let here = !self.urls.is_empty() && tool.name.literals().is_some();
                let known = tool.urls.matches(facts.url)
                    || tool_urls.iter().any(|urls| urls.matches(facts.url));
                // A rule with a URL and a tool name assigns the name to the URL.
                (here || known).into()
            }
        }
    }

    /// Whether a model call contains a new result of the tool.
    fn result_holds(&self, facts: &Facts<'_>) -> Holds {
        let tool = self.tool.as_deref();
        let expected = |name: &String| tool.is_none_or(|tool| tool.name.matches(name));
        let results = facts.results.map(|results| results.iter().any(expected));
        match when_read(facts, results) {
            // The unnamed result may be the tool's.
            Holds::No if facts.brings_nameless_results() => Holds::Unknown,
            holds => holds,
        }
    }
}

/// A plain HTTP tool, an MCP tool call, or a message to an agent.
fn is_a_tool(facts: &Facts<'_>) -> Holds {
    match facts.kind {
        Kind::Mcp if facts.rpc_tool_call => Holds::Yes,
        _ if facts.mcp_is_open() => Holds::Unknown,
        Kind::Tool => Holds::Yes,
        Kind::Agent => facts.rpc_tool_call.into(),
        Kind::Mcp | Kind::Llm | Kind::Other => Holds::No,
    }
}

/// Whether it is a GET for events without a tool name. An MCP 2024-11-05 session starts like this,
/// and only the response shows it.
fn may_only_listen(facts: &Facts<'_>) -> bool {
    facts.kind == Kind::Tool
        && facts.tools.is_empty()
        && facts.method == Method::GET
        && mcp::asks_for_events(facts.headers)
}

/// Whether the head names an MCP session.
fn is_of_a_session(facts: &Facts<'_>) -> bool {
    facts.kind == Kind::Mcp && facts.headers.contains_key(&mcp::SESSION)
}

/// Whether it lists an MCP server's tools.
fn is_a_list(facts: &Facts<'_>) -> Holds {
    if facts.mcp_is_open() && !facts.mcp_tool_list {
        return Holds::Unknown;
    }
    facts.mcp_tool_list.into()
}

/// A fact from the body: unknown until the body is read, and then false if absent.
fn when_read(facts: &Facts<'_>, known: Option<bool>) -> Holds {
    match known {
        Some(holds) => holds.into(),
        None if facts.body.is_none() => Holds::Unknown,
        None => Holds::No,
    }
}

fn headers_hold(expected: &[(HeaderName, Glob)], facts: &Facts<'_>) -> bool {
    expected.iter().all(|(name, glob)| {
        let mut values = facts.headers.get_all(name).iter();
        values.any(|value| glob.matches(&String::from_utf8_lossy(value.as_bytes())))
    })
}

fn json_holds(expected: &[JsonCondition], body: &Body<'_>) -> Holds {
    let JsonTree { value, values } = match body.json() {
        Ok(tree) => tree,
        Err(NotRead::NotJson(_)) => return Holds::No,
        Err(NotRead::TooLarge | NotRead::TooDeep) => return Holds::Unknown,
    };
    for condition in expected {
        if !body.may_look_at(condition.path.looks_at(*values)) {
            return Holds::Unknown;
        }
        let found = condition.path.query(value);
        if !found.iter().any(|found| same(found, &condition.value)) {
            return Holds::No;
        }
    }
    Holds::Yes
}

/// Equality that treats `1` and `1.0` as equal.
fn same(found: &Value, expected: &Value) -> bool {
    match (found, expected) {
        (Value::Number(found), Value::Number(expected)) => {
            found == expected
                || found
                    .as_f64()
                    .is_some_and(|found| Some(found) == expected.as_f64())
        }
        _ => found == expected,
    }
}
