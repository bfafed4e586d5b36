//! `agent:`: the program under test, and how it is asked.

mod reset;

use std::time::Duration;

use squall_profiles::document::At;
use squall_profiles::error::Position;
use squall_profiles::json_path;

use super::headers;
use super::reader::{Fields, Reader};

/// The agent under test.
#[derive(Debug, Clone, PartialEq)]
pub struct Agent {
    /// How it is reached.
    pub way: Way,
    /// How long one invocation may take. Default 30 s, 1 s to 5 min.
    pub timeout: Duration,
    /// How it is made to forget what it was asked before; `None`: it is taken to remember nothing.
    pub reset: Option<Reset>,
    /// Whether a reset concerns only the invocation whose scope it names.
    pub reset_isolated: bool,
    /// How an http agent is started; `None`: it runs already.
    pub start: Option<Start>,
}

/// How an agent is reached.
#[derive(Debug, Clone, PartialEq)]
pub enum Way {
    /// An HTTP endpoint of its own kind.
    Http(Box<HttpAgent>),
    /// A program: the prompt on stdin, the answer on stdout.
    Command(Vec<String>),
    /// A Python function or a `LangChain` Runnable, in a child process.
    Python {
        /// `module:attribute`.
        target: String,
        /// Whether it was declared a `LangChain` Runnable.
        langchain: bool,
    },
    /// A chat endpoint as `OpenAI`'s.
    OpenAi(OpenAiAgent),
}

impl Way {
    /// The word for it in `agent.type`.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Http(_) => "http",
            Self::Command(_) => "command",
            Self::Python {
                langchain: false, ..
            } => "python",
            Self::Python {
                langchain: true, ..
            } => "langchain",
            Self::OpenAi(_) => "openai",
        }
    }
}

/// An agent with an HTTP endpoint.
#[derive(Debug, Clone, PartialEq)]
pub struct HttpAgent {
    /// Absolute URL, its query kept.
    pub endpoint: String,
    /// Request method. Default POST.
    pub method: Method,
    /// What is sent, with `{prompt}` and names from the prompt's lines in it; absent: a JSON object
    /// with the prompt as `input`.
    pub request_template: Option<String>,
    /// Where the answer stands: a dot path, or a `JSONPath` that begins with `$`; absent: it is
    /// found.
    pub response_path: Option<String>,
    /// Parameters added to the URL.
    pub query_params: Pairs,
    /// Headers added to the request.
    pub headers: Pairs,
    /// Whether lines like `name: value` of the prompt give names for the template. Default true.
    pub parse_structured_input: bool,
}

/// An agent that is a chat endpoint.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenAiAgent {
    /// Absolute URL of the endpoint, or of the API it belongs to.
    pub endpoint: String,
    /// Model to ask for.
    pub model: String,
    /// Headers added to the request.
    pub headers: Pairs,
}

/// Names and values in order. Printing them shows the names only: values may be secrets.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Pairs(pub Vec<(String, String)>);

impl std::fmt::Debug for Pairs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set()
            .entries(self.0.iter().map(|(name, _)| name))
            .finish()
    }
}

/// Method of a request to an http agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "methods say what they are")]
pub enum Method {
    Get,
    Post,
    Put,
    Patch,
    Delete,
}

impl Method {
    /// As it is written on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }
}

/// How an agent is made to forget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reset {
    /// POST to this URL, without a body.
    Endpoint(String),
    /// Call this Python function, `module:attribute`.
    Function(String),
    /// Run this program to its end.
    Command(Vec<String>),
}

/// How an http agent is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    /// Program and arguments; it gets the proxy variables.
    pub command: Vec<String>,
    /// GET to this URL answers 2xx when the agent is ready.
    pub ready_url: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    Http,
    Command,
    Python,
    LangChain,
    OpenAi,
}

pub(super) const TYPES: [(&str, Type); 5] = [
    ("http", Type::Http),
    ("command", Type::Command),
    ("python", Type::Python),
    ("langchain", Type::LangChain),
    ("openai", Type::OpenAi),
];

pub(super) const METHODS: [(&str, Method); 5] = [
    ("GET", Method::Get),
    ("POST", Method::Post),
    ("PUT", Method::Put),
    ("PATCH", Method::Patch),
    ("DELETE", Method::Delete),
];

/// Fields that mean something for agents that are asked over HTTP only.
const ONLY_HTTP: [&str; 5] = [
    "method",
    "request_template",
    "response_path",
    "query_params",
    "parse_structured_input",
];

pub(super) fn read(fields: &mut Fields<'_, '_, '_>) -> Option<Agent> {
    let kind = match fields.node("type") {
        Some(_) => fields.word("type", "agent type", &TYPES),
        None => Some(Type::Http),
    };
    let timeout = fields.whole("timeout", 1000..=300_000, " milliseconds");
    let endpoint = fields.words("endpoint");
    let command = command(fields, "command");
    let model = fields.words("model");
    let http = http_fields(fields);
    let reset = reset::read(fields);
    let reset_isolated = reset::isolated(fields);
    let start = fields.read("start", |reader, node| {
        reader.fields(node, "a map with `command` and `ready_url`", read_start)?
    });
    let kind = kind?;
    belongs(fields, kind);
    let way = match kind {
        Type::Http => {
            let endpoint = url(fields, &endpoint?)?;
            Way::Http(Box::new(HttpAgent { endpoint, ..http }))
        }
        Type::Command => Way::Command(command?),
        Type::Python | Type::LangChain => Way::Python {
            target: module_and_attribute(fields, &endpoint?)?,
            langchain: kind == Type::LangChain,
        },
        Type::OpenAi => Way::OpenAi(OpenAiAgent {
            endpoint: url(fields, &endpoint?)?,
            model: model?.value,
            headers: http.headers,
        }),
    };
    Some(Agent {
        way,
        timeout: Duration::from_millis(timeout.unwrap_or(30_000)),
        reset,
        reset_isolated,
        start,
    })
}

/// Says which fields do not go with the type, and which are missing.
fn belongs(fields: &mut Fields<'_, '_, '_>, kind: Type) {
    let name = TYPES
        .iter()
        .find(|(_, of)| *of == kind)
        .map_or("", |(name, _)| name);
    let mut only = |field: &'static str, of: &[Type], words: &str| {
        if !of.contains(&kind) && fields.has(field) {
            let message = format!("`{field}` belongs to {words}, not to type `{name}`");
            fields.error(field, message);
        }
    };
    only("command", &[Type::Command], "type `command`");
    only("model", &[Type::OpenAi], "type `openai`");
    only(
        "start",
        &[Type::Http, Type::OpenAi],
        "agents with an endpoint",
    );
    if kind == Type::Command {
        only("endpoint", &[], "agents with an endpoint");
    }
    let (field, example) = match kind {
        Type::Http => (
            "endpoint",
            "the agent's URL, like `http://localhost:8000/invoke`",
        ),
        Type::Command => ("command", "the program, like `[python, agent.py]`"),
        Type::Python | Type::LangChain => ("endpoint", "`module:attribute`, like `my_agent:chat`"),
        Type::OpenAi => (
            "endpoint",
            "the URL of the API, like `http://localhost:8000/v1`",
        ),
    };
    if !fields.has(field) {
        fields.missing(field, example);
    }
    if kind == Type::OpenAi && !fields.has("model") {
        fields.missing("model", "the model to ask for, like `gpt-4o-mini`");
    }
    let idle: &[&str] = match kind {
        Type::Http => &[],
        Type::OpenAi => &ONLY_HTTP,
        Type::Command | Type::Python | Type::LangChain => {
            if fields.has("headers") {
                idle(fields, "headers", name);
            }
            &ONLY_HTTP
        }
    };
    for field in idle {
        if fields.has(field) {
            self::idle(fields, field, name);
        }
    }
}

fn idle(fields: &mut Fields<'_, '_, '_>, field: &str, kind: &str) {
    let message = format!("`{field}` does nothing for an agent of type `{kind}`");
    note(fields, field, message);
}

fn without_effect(fields: &mut Fields<'_, '_, '_>, field: &str, beside: &str) {
    note(fields, field, format!("`{field}` has no effect {beside}"));
}

fn note(fields: &mut Fields<'_, '_, '_>, field: &str, message: String) {
    let place = fields.place_of(field);
    fields
        .reader
        .below(field, |reader| reader.note(place, message));
}

/// What is said of an http agent, but for its endpoint.
fn http_fields(fields: &mut Fields<'_, '_, '_>) -> HttpAgent {
    let method = fields.word("method", "method", &METHODS);
    let request_template = fields.text("request_template").map(|text| text.value);
    let response_path = response_path(fields);
    let query_params = fields.pairs(
        "query_params",
        "a map from name to value",
        |reader, _, node| {
            let value = reader.text(node)?;
            let written = reader.unexpanded(value.position).map(str::to_owned);
            headers::unset(reader, written.as_deref().unwrap_or_default(), &value);
            Some(value.value)
        },
    );
    let headers = fields.pairs(
        "headers",
        "a map from name to value",
        |reader, name, node| {
            let value = reader.text(node)?;
            headers::check(reader, name, &value);
            Some(value.value)
        },
    );
    HttpAgent {
        endpoint: String::new(),
        method: method.unwrap_or(Method::Post),
        request_template,
        response_path,
        query_params: owned(query_params),
        headers: owned(headers),
        parse_structured_input: fields.flag("parse_structured_input").unwrap_or(true),
    }
}

fn owned(pairs: Option<Vec<(At<String>, String)>>) -> Pairs {
    let pairs = pairs.unwrap_or_default().into_iter();
    Pairs(pairs.map(|(name, value)| (name.value, value)).collect())
}

/// A dot path, or a `JSONPath` by its first character.
fn response_path(fields: &mut Fields<'_, '_, '_>) -> Option<String> {
    let path = fields.words("response_path")?;
    let (path, position) = (path.value, path.position);
    if path.starts_with('$')
        && let Err(error) = json_path::parse(&path, &fields.reader.limits)
    {
        let found = fields.reader.shown(position);
        let message = format!(
            "`{found}` {error}; write `$.choices[0].message.content`, or the dot \
             path `choices.0.message.content`"
        );
        fields.error("response_path", message);
        return None;
    }
    Some(path)
}

fn read_start(fields: &mut Fields<'_, '_, '_>) -> Option<Start> {
    let command = command(fields, "command");
    let ready_url = fields.words("ready_url");
    if !fields.has("command") {
        fields.missing("command", "the program, like `[python, server.py]`");
    }
    if !fields.has("ready_url") {
        let example = "the URL that answers when the agent is ready, like \
                       `http://127.0.0.1:8000/health`";
        fields.missing("ready_url", example);
    }
    Some(Start {
        command: command?,
        ready_url: absolute(fields, "ready_url", &ready_url?)?,
    })
}

/// A list of words, or one text that is split at blanks.
pub(super) fn command(fields: &mut Fields<'_, '_, '_>, name: &'static str) -> Option<Vec<String>> {
    let what = "a program with its arguments, like `[python, agent.py]`";
    let texts = fields.texts(name, what)?;
    let words: Vec<String> = match &texts[..] {
        [one] if !one.value.contains(['"', '\'', '\\']) => {
            one.value.split_whitespace().map(str::to_owned).collect()
        }
        [one] => {
            let message = format!("quotes are not taken apart here; write {what}");
            let position = one.position;
            fields.reader.error(position, message);
            return None;
        }
        several => several.iter().map(|word| word.value.clone()).collect(),
    };
    if words
        .first()
        .is_none_or(|program| program.trim().is_empty())
    {
        fields.error(name, format!("this names no program; write {what}"));
        return None;
    }
    Some(words)
}

fn url(fields: &mut Fields<'_, '_, '_>, endpoint: &At<String>) -> Option<String> {
    absolute(fields, "endpoint", endpoint)
}

fn absolute(
    fields: &mut Fields<'_, '_, '_>,
    name: &'static str,
    written: &At<String>,
) -> Option<String> {
    let parsed: Option<http::Uri> = written.value.trim().parse().ok();
    let fits = parsed.is_some_and(|uri| {
        matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some()
    });
    if fits {
        return Some(written.value.trim().to_owned());
    }
    let found = shown(fields.reader, written.position);
    let message = format!("{found} is no absolute URL; write `http://localhost:8000/invoke`");
    fields.error(name, message);
    None
}

fn shown(reader: &Reader<'_>, position: Position) -> String {
    match reader.shown(position) {
        found if found.is_empty() => "this".to_owned(),
        found => format!("`{found}`"),
    }
}

fn module_and_attribute(fields: &mut Fields<'_, '_, '_>, written: &At<String>) -> Option<String> {
    named_attribute(fields, "endpoint", &written.value)
}

fn named_attribute(
    fields: &mut Fields<'_, '_, '_>,
    name: &'static str,
    written: &str,
) -> Option<String> {
    let is_path = |path: &str| {
        !path.is_empty()
            && path.split('.').all(|part| {
                let mut letters = part.chars();
                letters
                    .next()
                    .is_some_and(|c| c.is_alphabetic() || c == '_')
                    && letters.all(|c| c.is_alphanumeric() || c == '_')
            })
    };
    let fits = written
        .split_once(':')
        .is_some_and(|(module, attribute)| is_path(module) && is_path(attribute));
    if !fits {
        let message = "allowed is `module:attribute`, like `my_agent:chat`".to_owned();
        fields.error(name, message);
        return None;
    }
    Some(written.to_owned())
}
