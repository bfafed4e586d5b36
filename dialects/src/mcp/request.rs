//! Requests to MCP servers.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::ACCEPT;
use http::{HeaderMap, HeaderName, Method};
use serde_json::Value as Json;

use super::structured::Output;
use crate::a2a::{self, AgentCall};
use crate::answer::media_type;
use crate::json::{Document, JsonKind, Value, quote};
use crate::target::Target;

const MCP_METHOD: HeaderName = HeaderName::from_static("mcp-method");
const MCP_NAME: HeaderName = HeaderName::from_static("mcp-name");
/// The header with the session id.
pub const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const MCP_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// The method that calls a tool.
pub(super) const CALL: &str = "tools/call";
/// The method that lists the tools.
pub(super) const LIST: &str = "tools/list";

/// Methods that only MCP has. Methods shared with other JSON-RPC protocols (`ping`, and the `tasks/…` of
/// agent-to-agent protocols) do not identify MCP.
const OWN: &[&str] = &[
    "server/discover",
    "resources/",
    "prompts/",
    "notifications/",
    "completion/complete",
    "logging/setLevel",
    "sampling/createMessage",
    "roots/list",
    "elicitation/create",
    "subscriptions/listen",
];

/// MCP data in the head of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Head {
    /// Whether it is MCP.
    pub sign: Sign,
    /// `Mcp-Method`.
    pub method: Option<String>,
    /// `Mcp-Name`, decoded.
    pub name: Option<String>,
    /// Whether there is an `Mcp-Session-Id`.
    pub session: bool,
    /// The response forms that the agent accepts.
    pub accepts: Accepts,
}

/// Whether a head identifies MCP.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Sign {
    /// It has one of MCP's own headers.
    Own,
    /// It has a header of A2A and may be a call of an agent.
    Agent,
    /// The body decides: it is a JSON POST, and older versions of MCP and A2A have no header of their own.
    Open,
    /// It is not MCP.
    #[default]
    Nothing,
}

/// Response forms that an agent accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accepts {
    /// `application/json`.
    pub json: bool,
    /// `text/event-stream`, explicitly: since 2025-03-26 every POST of a client accepts it.
    pub stream: bool,
}

impl Default for Accepts {
    /// The default accepts JSON.
    fn default() -> Self {
        Self {
            json: true,
            stream: false,
        }
    }
}

impl Head {
    /// Reads the head of a request.
    pub fn of(method: &Method, headers: &HeaderMap) -> Self {
        let text = |name: &HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
        let own = has_own_header(headers);
        let session = own && headers.contains_key(&SESSION);
        let sign = match own {
            true => Sign::Own,
            false
                if *method == Method::POST
                    && media_type(headers).as_deref() == Some("application/json") =>
            {
                if a2a::has_own_header(headers) {
                    Sign::Agent
                } else {
                    Sign::Open
                }
            }
            // It may open a session's stream; in the oldest version this has no MCP header.
            false if *method == Method::GET => {
                return Self {
                    accepts: Accepts::of(headers),
                    ..Self::default()
                };
            }
            false => return Self::default(),
        };
        Self {
            sign,
            method: text(&MCP_METHOD).map(str::to_owned),
            name: text(&MCP_NAME).map(|name| decoded(name).into_owned()),
            session,
            accepts: Accepts::of(headers),
        }
    }

    /// The called tool, if the head contains it.
    pub fn tool(&self) -> Option<&str> {
        let calls = self.method.as_deref() == Some(CALL);
        self.name.as_deref().filter(|_| calls)
    }

    /// Whether the head shows a tool call.
    pub fn calls_a_tool(&self) -> bool {
        self.method.as_deref() == Some(CALL)
    }

    /// Whether the head shows that tools are listed.
    pub fn lists_tools(&self) -> bool {
        self.method.as_deref() == Some(LIST)
    }
}

/// Whether a head explicitly accepts an event stream.
pub fn asks_for_events(headers: &HeaderMap) -> bool {
    Accepts::of(headers).stream
}

/// Whether the request is sent to the second endpoint of 2024-11-05, which only acknowledges it. The response
/// arrives on the event stream that started the session.
///
/// The specification does not mark such requests. But servers put the session id into the query, and all clients of
/// later versions accept a stream.
pub fn replies_out_of_band(target: Target<'_>, headers: &HeaderMap) -> bool {
    let mut names = ["sessionId", "session_id"].iter();
    let in_query = names.any(|name| target.parameter(name).is_some());
    in_query && !has_own_header(headers) && !asks_for_events(headers)
}

/// Whether an event stream starts a session of 2024-11-05: its first event names the endpoint. `beginning` contains
/// that event.
pub fn begins_session(beginning: &[u8]) -> bool {
    let mut lines = beginning.split(|byte| matches!(byte, b'\r' | b'\n'));
    lines.any(|line| {
        line.strip_prefix(b"event:")
            .is_some_and(|name| name.trim_ascii() == b"endpoint")
    })
}

/// Whether one of MCP's own headers is there.
fn has_own_header(headers: &HeaderMap) -> bool {
    let own = [SESSION, MCP_METHOD, MCP_VERSION];
    own.iter().any(|name| headers.contains_key(name))
}

impl Accepts {
    fn of(headers: &HeaderMap) -> Self {
        if !headers.contains_key(ACCEPT) {
            return Self::default();
        }
        let mut accepts = Self {
            json: false,
            stream: false,
        };
        let values = headers.get_all(ACCEPT).iter();
        let values = values.filter_map(|value| value.to_str().ok());
        for range in values.flat_map(|value| value.split(',')) {
            let range = range.split(';').next().unwrap_or_default().trim();
            let is = |name: &str| range.eq_ignore_ascii_case(name);
            accepts.json |= is("application/json") || is("application/*") || is("*/*");
            accepts.stream |= is("text/event-stream");
        }
        accepts
    }
}

/// Decodes a header value that may be written as `=?base64?…?=`, which is used for names that are not valid in
/// headers.
fn decoded(value: &str) -> Cow<'_, str> {
    value
        .strip_prefix("=?base64?")
        .and_then(|value| value.strip_suffix("?="))
        .and_then(|coded| STANDARD.decode(coded).ok())
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .map_or(Cow::Borrowed(value), Cow::Owned)
}

/// The id of a JSON-RPC request as JSON text: `2`, `"abc"`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Id(String);

impl Id {
    /// The id at `value`; `None` if it cannot be one.
    pub fn of(value: Value<'_>) -> Option<Self> {
        matches!(value.kind(), JsonKind::String | JsonKind::Number).then(|| match value.as_str() {
            // Normalises escapes, so that equal ids are equal.
            Some(text) => Self(quote(&text)),
            None => Self(value.raw().to_owned()),
        })
    }

    /// Its JSON text.
    pub fn as_json(&self) -> &str {
        &self.0
    }

    pub(super) fn to_json(&self) -> Json {
        serde_json::from_str(&self.0).unwrap_or_default()
    }

    /// A different id of the same type that a counting client does not use.
    #[must_use]
    pub fn another(&self) -> Self {
        match self.0.parse::<u32>() {
            Ok(number) => Self((u64::from(number) + 1_000_000).to_string()),
            Err(_) if self.0.starts_with('"') => {
                Self(format!("{}-0\"", self.0.trim_end_matches('"')))
            }
            Err(_) => Self("-1".to_owned()),
        }
    }
}

/// One message of a request's body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The id of the call; `None`: a notification, which gets no response.
    pub id: Option<Id>,
    /// The method; `None`: a client's response to a request of the server.
    pub method: Option<String>,
    /// The tool, if one is called.
    pub tool: Option<String>,
    /// The token for progress notifications, if the client requests them.
    pub progress_token: Option<Id>,
    /// The call of an agent, if it is A2A.
    pub agent: Option<AgentCall>,
    /// The known structure of the tool's results; the request itself does not contain it.
    pub output: Output,
}

impl Call {
    /// Whether it is a tool call, or a message to an agent, that expects a response.
    pub fn is_tool_call(&self) -> bool {
        let is_message = self.agent.as_ref().is_some_and(AgentCall::sends_message);
        (self.method.as_deref() == Some(CALL) || is_message) && self.id.is_some()
    }

    /// Whether faults can write its result: those of A2A are messages and tasks.
    pub fn has_result(&self) -> bool {
        self.agent.as_ref().is_none_or(AgentCall::has_result)
    }

    /// Whether its response is an event stream, whatever the agent accepts.
    pub(super) fn streams(&self) -> bool {
        self.agent.as_ref().is_some_and(AgentCall::streams)
    }

    /// Whether it lists the tools.
    pub fn is_tool_list(&self) -> bool {
        self.method.as_deref() == Some(LIST) && self.id.is_some()
    }

    fn of(message: Value<'_>) -> Option<Self> {
        if message.text("jsonrpc").as_deref() != Some("2.0") {
            return None;
        }
        let method = message.text("method");
        let params = message.get("params");
        let calls_tool = method.as_deref() == Some(CALL);
        let tool = params.filter(|_| calls_tool).and_then(|it| it.text("name"));
        let token = params.and_then(|it| it.path(&["_meta", "progressToken"]));
        let id = message.get("id").filter(|_| method.is_some());
        let agent = method
            .as_deref()
            .and_then(|method| AgentCall::of(method, params));
        Some(Self {
            id: id.and_then(Id::of),
            method: method.map(Cow::into_owned),
            tool: tool.map(Cow::into_owned),
            progress_token: token.and_then(Id::of),
            agent,
            output: Output::Unknown,
        })
    }
}

/// The JSON-RPC messages in a request's body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RpcRequest {
    /// Whether they were sent as a list, so that the responses are a list too (2024-11-05, 2025-03-26).
    pub batch: bool,
    /// The messages, in the order of the text.
    pub calls: Vec<Call>,
    /// They cannot belong to another protocol.
    certain: bool,
}

impl RpcRequest {
    /// Reads a body, or the start of one. `None`: it is not JSON-RPC.
    pub fn read(body: &[u8]) -> Option<Self> {
        // A cheap check that avoids parsing most other bodies.
        memchr::memmem::find(body, b"\"jsonrpc\"")?;
        let document = Document::parse_prefix(body)?;
        let root = document.root();
        let batch = root.kind() == JsonKind::Array;
        let messages: Vec<Value<'_>> = if batch {
            root.items().collect()
        } else {
            vec![root]
        };
        let calls: Vec<Call> = messages.iter().copied().filter_map(Call::of).collect();
        if calls.is_empty() {
            return None;
        }
        let certain = messages.iter().copied().any(is_mcps_own);
        Some(Self {
            batch,
            calls,
            certain,
        })
    }

    /// Whether the body alone shows that it is MCP and not another protocol on JSON-RPC.
    pub fn is_mcp(&self) -> bool {
        self.certain
    }

    /// Names of the called tools, in order, without duplicates.
    pub fn tools(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for name in self.calls.iter().filter_map(|call| call.tool.as_deref()) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// Whether the body alone shows that it is A2A.
    pub fn is_a2a(&self) -> bool {
        let certain = |call: &Call| call.agent.as_ref().is_some_and(|agent| agent.is_certain);
        !self.certain && self.calls.iter().any(certain)
    }

    /// The method of the first call.
    pub fn method(&self) -> Option<&str> {
        self.calls.first()?.method.as_deref()
    }

    /// Whether a tool is called, or a message sent to an agent.
    pub fn calls_a_tool(&self) -> bool {
        self.calls.iter().any(Call::is_tool_call)
    }

    /// Whether the tools are listed.
    pub fn lists_tools(&self) -> bool {
        self.calls.iter().any(Call::is_tool_list)
    }

    /// The calls that expect a response.
    pub fn requests(&self) -> impl Iterator<Item = &Call> {
        self.calls.iter().filter(|call| call.id.is_some())
    }
}

/// Whether a message's method belongs to MCP. If other protocols have the same method, MCP's own fields decide.
fn is_mcps_own(message: Value<'_>) -> bool {
    let method = message.text("method").unwrap_or_default();
    let has = |name| {
        message
            .get("params")
            .is_some_and(|it| it.string(name).is_some())
    };
    match &*method {
        // Language servers have it too, and editors' agent protocols have it with a numeric version.
        "initialize" => has("protocolVersion"),
        CALL => has("name"),
        LIST => true,
        method => OWN.iter().any(|own| match own.strip_suffix('/') {
            Some(_) => method.starts_with(own),
            None => method == *own,
        }),
    }
}
