//! `agent:`: the program under test, and how it is invoked.

mod headers;
mod reset;
pub(crate) mod variables;

use std::time::Duration;

use reqwest::Method;
use squall_documents::{At, Fields, ValueReader};
use squall_profiles::json_path;

/// The agent under test.
#[derive(Debug, Clone, PartialEq)]
pub struct Agent {
    /// The interface to the agent.
    pub way: Way,
    /// Time-out of one invocation. Default 30 s, 1 s to 5 min.
    pub timeout: Duration,
    /// How the agent's state is reset; `None`: the agent is assumed to be stateless.
    pub reset: Option<Reset>,
    /// Whether a reset affects only the invocation whose scope it names.
    pub reset_isolated: bool,
    /// How an http agent is started; `None`: it already runs.
    pub start: Option<Start>,
}

/// The interface to an agent.
#[derive(Debug, Clone, PartialEq)]
pub enum Way {
    /// An HTTP endpoint with its own format.
    Http(Box<HttpAgent>),
    /// A program: the prompt on stdin, the answer on stdout.
    Command(Vec<String>),
    /// A Python function or a `LangChain` Runnable, in a child process.
    Python {
        /// `module:attribute`.
        target: String,
        /// Whether it is declared as a `LangChain` Runnable.
        langchain: bool,
    },
    /// A chat endpoint with `OpenAI`'s API.
    OpenAi(OpenAiAgent),
}

impl Agent {
    /// The agent of a suite that only explores an application. Such a suite has no prompt, so no run invokes it.
    pub(crate) fn absent() -> Self {
        Self {
            way: Way::Command(vec!["false".to_owned()]),
            timeout: Duration::ZERO,
            reset: None,
            reset_isolated: false,
            start: None,
        }
    }
}

impl Way {
    /// Its name in `agent.type`.
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
    /// Absolute URL, including its query.
    pub endpoint: String,
    /// Request method. Default POST.
    pub method: Method,
    /// The request body, with placeholders for the prompt (`{prompt}`) and for names from the prompt's lines.
    /// Absent: a JSON object with the prompt as `input`.
    pub request_template: Option<String>,
    /// The path of the answer: a dot path, or a `JSONPath` that starts with `$`; absent: it is detected.
    pub response_path: Option<String>,
    /// Parameters added to the URL.
    pub query_params: Pairs,
    /// Headers added to the request.
    pub headers: Pairs,
    /// Whether `name: value` lines of the prompt define names for the template. Default true.
    pub parse_structured_input: bool,
}

/// An agent that is a chat endpoint.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenAiAgent {
    /// Absolute URL of the endpoint, or of its API.
    pub endpoint: String,
    /// The model in requests.
    pub model: String,
    /// Headers added to the request.
    pub headers: Pairs,
}

/// Names and values in order. `Debug` prints only the names, because values may be secrets.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Pairs(pub Vec<(String, String)>);

impl std::fmt::Debug for Pairs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set()
            .entries(self.0.iter().map(|(name, _)| name))
            .finish()
    }
}

/// How an agent's state is reset.
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
    /// The agent is ready when a GET to this URL returns 2xx.
    pub ready_url: String,
}

squall_documents::named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum Type {
        Http = "http",
        Command = "command",
        Python = "python",
        LangChain = "langchain",
        OpenAi = "openai",
    }
}

pub(crate) const METHODS: [(&str, Method); 5] = [
    ("GET", Method::GET),
    ("POST", Method::POST),
    ("PUT", Method::PUT),
    ("PATCH", Method::PATCH),
    ("DELETE", Method::DELETE),
];

/// Fields that are meaningful only for HTTP agents; the first also for chat endpoints.
const ONLY_HTTP: [&str; 6] = [
    "headers",
    "method",
    "request_template",
    "response_path",
    "query_params",
    "parse_structured_input",
];

pub(crate) fn read(fields: &mut Fields<'_, '_>) -> Option<Agent> {
    let about = "How it is reached; default `http`.";
    let kind = fields.word("type", about, "agent type", Type::NAMES);
    let about = "How long one invocation may take, milliseconds; default 30000.";
    let timeout = fields.whole("timeout", about, 1000..=300_000, " milliseconds");
    let about = "Its URL; of type `python` and `langchain`: `module:attribute`.";
    let endpoint = fields.words("endpoint", about);
    let about = "Of type `command`: the program; prompt on stdin, answer on stdout.";
    let command = command(fields, "command", about);
    let model = fields.words("model", "Of type `openai`: the model to ask for.");
    let http = http_fields(fields);
    let reset = reset::read(fields);
    let reset_isolated = reset::isolated(fields);
    let about = "How an agent with an endpoint is started.";
    let what = "a map with `command` and `ready_url`";
    let start = fields.block("start", about, what, read_start);
    let kind = match kind {
        None if fields.has("type") || fields.reader.is_describing() => return None,
        None => Type::Http,
        Some(kind) => kind,
    };
    belongs(fields, kind);
    let way = match kind {
        Type::Http => {
            let endpoint = absolute(fields, "endpoint", &endpoint?)?;
            Way::Http(Box::new(HttpAgent { endpoint, ..http }))
        }
        Type::Command => Way::Command(command?),
        Type::Python | Type::LangChain => Way::Python {
            target: named_attribute(fields, "endpoint", &endpoint?.value)?,
            langchain: kind == Type::LangChain,
        },
        Type::OpenAi => Way::OpenAi(OpenAiAgent {
            endpoint: absolute(fields, "endpoint", &endpoint?)?,
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

/// Reports fields that the type does not support, and missing fields.
fn belongs(fields: &mut Fields<'_, '_>, kind: Type) {
    let name = kind.as_str();
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
    let idle = match kind {
        Type::Http => &[],
        Type::OpenAi => &ONLY_HTTP[1..],
        Type::Command | Type::Python | Type::LangChain => &ONLY_HTTP[..],
    };
    for field in idle {
        if fields.has(field) {
            let message = format!("`{field}` does nothing for an agent of type `{name}`");
            fields.note(field, message);
        }
    }
}

fn without_effect(fields: &mut Fields<'_, '_>, field: &str, reason: &str) {
    fields.note(field, format!("`{field}` has no effect {reason}"));
}

/// Reads the fields of an http agent, except its endpoint.
fn http_fields(fields: &mut Fields<'_, '_>) -> HttpAgent {
    let method = fields.word(
        "method",
        "Request method; default POST.",
        "method",
        &METHODS,
    );
    let template = fields.text("request_template", "What is sent, with `{prompt}` in it.");
    let about = "Where the answer is: a dot path, or a JSONPath that begins with `$`.";
    let response_path = fields.field("response_path", about, response_path);
    let query_params = fields.field("query_params", "Parameters added to the URL.", |value| {
        value.pairs("a map from name to value", |_, value| {
            Some(value.text()?.value)
        })
    });
    let headers = read_headers(fields);
    let about = "Whether lines like `name: value` give names for the template; default true.";
    let parse = fields.flag("parse_structured_input", about);
    HttpAgent {
        endpoint: String::new(),
        method: method.unwrap_or(Method::POST),
        request_template: template.map(|text| text.value),
        response_path,
        query_params: owned(query_params),
        headers,
        parse_structured_input: parse.unwrap_or(true),
    }
}

/// `headers`, of requests that Squall sends.
pub(crate) fn read_headers(fields: &mut Fields<'_, '_>) -> Pairs {
    let about = "Headers added to the request; secrets as `${VAR}`.";
    let headers = fields.field("headers", about, |value| {
        value.pairs("a map from name to value", |name, value| {
            let text = value.text()?;
            headers::check(value.reader, name, &text);
            Some(text.value)
        })
    });
    owned(headers)
}

fn owned(pairs: Option<Vec<(&At<String>, String)>>) -> Pairs {
    let pairs = pairs.unwrap_or_default().into_iter();
    Pairs(
        pairs
            .map(|(name, value)| (name.value.clone(), value))
            .collect(),
    )
}

/// A dot path, or a `JSONPath`, depending on its first character.
fn response_path(value: &mut ValueReader<'_, '_>) -> Option<String> {
    let At {
        value: path,
        position,
    } = value.words()?;
    if path.starts_with('$')
        && let Err(error) = json_path::parse(&path, &value.reader.limits)
    {
        let found = value.reader.shown(position);
        value.error(format!(
            "`{found}` {error}; write `$.choices[0].message.content`, or the dot \
             path `choices.0.message.content`"
        ));
        return None;
    }
    Some(path)
}

pub(crate) fn read_start(fields: &mut Fields<'_, '_>) -> Option<Start> {
    let command = command(
        fields,
        "command",
        "The program; it gets the proxy variables.",
    );
    let about = "GET to this URL answers 2xx when the agent is ready.";
    let ready_url = fields.words("ready_url", about);
    fields.require("command", "the program, like `[python, server.py]`");
    let example = "the URL that answers when the agent is ready, like \
                   `http://127.0.0.1:8000/health`";
    fields.require("ready_url", example);
    Some(Start {
        command: command?,
        ready_url: absolute(fields, "ready_url", &ready_url?)?,
    })
}

/// A list of words, or one text that is split at white space.
fn command(fields: &mut Fields<'_, '_>, name: &'static str, about: &str) -> Option<Vec<String>> {
    let what = "a program with its arguments, like `[python, agent.py]`";
    let texts = fields.texts(name, about, what)?;
    let words: Vec<String> = match &texts[..] {
        [one] if !one.value.contains(['"', '\'', '\\']) => {
            one.value.split_whitespace().map(str::to_owned).collect()
        }
        [one] => {
            let message = format!("quotes are not taken apart here; write {what}");
            fields.reader.error(one.position, message);
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

pub(crate) fn absolute(
    fields: &mut Fields<'_, '_>,
    name: &str,
    written: &At<String>,
) -> Option<String> {
    let parsed: Option<http::Uri> = written.value.trim().parse().ok();
    // `Uri` accepts any digits as a port.
    let has_port = reqwest::Url::parse(written.value.trim()).is_ok();
    let fits = has_port
        && parsed.is_some_and(|uri| {
            matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some()
        });
    if fits {
        return Some(written.value.trim().to_owned());
    }
    let found = match fields.reader.shown(written.position) {
        found if found.is_empty() => "this".to_owned(),
        found => format!("`{found}`"),
    };
    let message = format!("{found} is no absolute URL; write `http://localhost:8000/invoke`");
    fields.error(name, message);
    None
}

fn named_attribute(fields: &mut Fields<'_, '_>, name: &str, written: &str) -> Option<String> {
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
        let message = "expected `module:attribute`, like `my_agent:chat`".to_owned();
        fields.error(name, message);
        return None;
    }
    Some(written.to_owned())
}
