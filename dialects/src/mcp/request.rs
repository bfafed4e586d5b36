//! What a request asks an MCP server.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::ACCEPT;
use http::{HeaderMap, HeaderName, Method};
use serde_json::Value as Json;

use super::structured::Output;
use crate::answer::media_type;
use crate::json::{Document, Edits, Kind, Value, quote};
use crate::target::Target;

const MCP_METHOD: HeaderName = HeaderName::from_static("mcp-method");
const MCP_NAME: HeaderName = HeaderName::from_static("mcp-name");
/// The header that names a session.
pub const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const MCP_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// The method that calls a tool.
pub(super) const CALL: &str = "tools/call";
/// The method that lists the tools.
pub(super) const LIST: &str = "tools/list";

/// Methods that only MCP has; those it shares with other protocols on JSON-RPC (`ping`, and the
/// `tasks/…` of agents among themselves) say nothing by themselves.
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

/// What the head of a request says about MCP.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Head {
    /// Whether it is MCP.
    pub sign: Sign,
    /// `Mcp-Method`.
    pub method: Option<String>,
    /// `Mcp-Name`, decoded.
    pub name: Option<String>,
    /// There is an `Mcp-Session-Id`.
    pub session: bool,
    /// What the agent takes for an answer.
    pub accepts: Accepts,
}

/// Whether a head is MCP's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Sign {
    /// One of MCP's own headers is there.
    Own,
    /// The body will tell: a POST of JSON, as MCP's older versions send it without a header of
    /// their own.
    Open,
    /// It is not.
    #[default]
    Nothing,
}

/// Forms of an answer that an agent takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accepts {
    /// `application/json`.
    pub json: bool,
    /// `text/event-stream`, by name: since 2025-03-26 every POST of a client says so.
    pub stream: bool,
}

impl Default for Accepts {
    /// Nothing said: JSON is taken.
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
                Sign::Open
            }
            // It may open a stream of a session, which has no header of MCP's in the oldest version.
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

    /// The tool that is called, as far as the head tells.
    pub fn tool(&self) -> Option<&str> {
        let calls = self.method.as_deref() == Some(CALL);
        self.name.as_deref().filter(|_| calls)
    }

    /// Whether the head says that a tool is called.
    pub fn calls_a_tool(&self) -> bool {
        self.method.as_deref() == Some(CALL)
    }

    /// Whether the head says that the tools are listed.
    pub fn lists_tools(&self) -> bool {
        self.method.as_deref() == Some(LIST)
    }
}

/// Whether a head asks for a stream of events by name.
pub fn asks_for_events(headers: &HeaderMap) -> bool {
    Accepts::of(headers).stream
}

/// Whether the request goes to the second endpoint of 2024-11-05, which only says that it was
/// accepted: the reply arrives on the event stream that the session began with.
///
/// Nothing in the specification tells such requests apart, but servers name the session in the query,
/// and no client of a later version leaves the stream out of what it accepts.
pub fn replies_out_of_band(target: Target<'_>, headers: &HeaderMap) -> bool {
    let mut names = ["sessionId", "session_id"].iter();
    let in_query = names.any(|name| target.parameter(name).is_some());
    in_query && !has_own_header(headers) && !asks_for_events(headers)
}

/// Whether a stream of events begins a session of 2024-11-05: its first event names the endpoint.
/// `beginning` holds that event.
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

/// A header's value that may be written as `=?base64?…?=`, which is how names go that no header
/// could hold.
fn decoded(value: &str) -> Cow<'_, str> {
    value
        .strip_prefix("=?base64?")
        .and_then(|value| value.strip_suffix("?="))
        .and_then(|coded| STANDARD.decode(coded).ok())
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .map_or(Cow::Borrowed(value), Cow::Owned)
}

/// The id of a JSON-RPC request, as it stands in the text: `2`, `"abc"`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Id(String);

impl Id {
    /// The id at `value`; `None` for what cannot be one.
    pub fn of(value: Value<'_>) -> Option<Self> {
        matches!(value.kind(), Kind::String | Kind::Number).then(|| match value.as_str() {
            // One way to write it, however it was escaped.
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

    /// Another id of the same type, one that no client that counts its requests uses.
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
    /// What the answer is known by; `None`: a notification, which gets none.
    pub id: Option<Id>,
    /// The method; `None`: an answer of the client's to a request of the server's.
    pub method: Option<String>,
    /// The tool, if one is called.
    pub tool: Option<String>,
    /// The token for notifications of progress, if the client wants some.
    pub progress_token: Option<Id>,
    /// What is known of the structure of the tool's results: nothing in the request itself.
    pub output: Output,
}

impl Call {
    /// Whether it calls a tool and waits for the answer.
    pub fn is_tool_call(&self) -> bool {
        self.method.as_deref() == Some(CALL) && self.id.is_some()
    }

    /// Whether it asks for the tools.
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
        Some(Self {
            id: id.and_then(Id::of),
            method: method.map(Cow::into_owned),
            tool: tool.map(Cow::into_owned),
            progress_token: token.and_then(Id::of),
            output: Output::Unknown,
        })
    }
}

/// What a request's body asks: JSON-RPC messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// They came as a list, so their answers go as one (2024-11-05, 2025-03-26).
    pub batch: bool,
    /// In the order of the text.
    pub calls: Vec<Call>,
    /// They cannot be of another protocol.
    certain: bool,
}

impl Asked {
    /// Reads a body, or the beginning of one. `None`: it is no JSON-RPC.
    pub fn read(body: &[u8]) -> Option<Self> {
        // Most bodies are not: they are not parsed.
        memchr::memmem::find(body, b"\"jsonrpc\"")?;
        let document = Document::parse_prefix(body)?;
        let root = document.root();
        let batch = root.kind() == Kind::Array;
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

    /// Names of the tools that are called, in order, each once.
    pub fn tools(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for name in self.calls.iter().filter_map(|call| call.tool.as_deref()) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// Whether a tool is called.
    pub fn calls_a_tool(&self) -> bool {
        self.calls.iter().any(Call::is_tool_call)
    }

    /// Whether the tools are listed.
    pub fn lists_tools(&self) -> bool {
        self.calls.iter().any(Call::is_tool_list)
    }

    /// A list of messages without those calls, as it is sent on. `None`: it is no list, or would be
    /// empty.
    pub fn without(body: &[u8], calls: &[Call]) -> Option<Vec<u8>> {
        let document = Document::parse(body).ok()?;
        let messages: Vec<Value<'_>> = document.root().items().collect();
        let mut edits = Edits::new(&document);
        let mut left = messages.len();
        for message in messages {
            let id = message.get("id").and_then(Id::of);
            let calls_something = message.get("method").is_some() && id.is_some();
            if calls_something && calls.iter().any(|call| call.id == id) {
                edits.remove(message.id());
                left -= 1;
            }
        }
        (left > 0).then(|| edits.apply())
    }

    /// The calls that an answer is waited for.
    pub fn requests(&self) -> impl Iterator<Item = &Call> {
        self.calls.iter().filter(|call| call.id.is_some())
    }
}

/// Whether a message is MCP's by its method and, where other protocols have a method of that name,
/// by what only MCP gives it.
fn is_mcps_own(message: Value<'_>) -> bool {
    let method = message.text("method").unwrap_or_default();
    let has = |name| {
        message
            .get("params")
            .is_some_and(|it| it.string(name).is_some())
    };
    match &*method {
        // Language servers have it too, and editors' agents with a number for the version.
        "initialize" => has("protocolVersion"),
        CALL => has("name"),
        LIST => true,
        method => OWN.iter().any(|own| match own.strip_suffix('/') {
            Some(_) => method.starts_with(own),
            None => method == *own,
        }),
    }
}
