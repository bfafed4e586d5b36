//! `explore:` of a suite: the application, the actions that may be sent to it, and what counts as an anomaly.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use reqwest::{Method, Url};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use squall_documents::{At, Fields, ValueReader};

use super::anomalies::{self, Anomaly};
use crate::agents::pointing::encode;
use crate::agents::settings::{METHODS, Pairs, Start, absolute, read_headers, read_start};

/// An application with state, and how it is explored.
#[derive(Debug)]
pub struct Exploration {
    /// The URL before the path of each action.
    pub base_url: String,
    /// Headers of every request.
    pub headers: Pairs,
    /// How the application is started if it does not run.
    pub start: Option<Start>,
    /// GET to this URL returns the state as JSON.
    pub state: String,
    /// The request that resets the state.
    pub reset: ActionRequest,
    /// GET to this URL returns the log; `None`: the log is the output of the started program.
    pub logs: Option<String>,
    /// A response header with the latency in milliseconds, instead of the measured one.
    pub latency_header: Option<String>,
    /// Time-out of each request. Default 10 s.
    pub timeout: Duration,
    /// The actions. At least one.
    pub actions: Vec<Action>,
    /// What counts as an anomaly. At least one.
    pub anomalies: Vec<Anomaly>,
}

/// A request that Squall sends.
#[derive(Debug, Clone, PartialEq)]
pub struct ActionRequest {
    /// Its method. Default POST.
    pub method: Method,
    /// Absolute URL.
    pub url: String,
    /// Its JSON body.
    pub body: Option<Value>,
}

/// A declared action: a request with placeholders.
#[derive(Debug)]
pub struct Action {
    name: String,
    method: Method,
    path: String,
    body: Option<Value>,
    /// The values of each placeholder.
    parameters: Vec<(String, Vec<Value>)>,
}

/// An action with one value for each of its parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ActionChoice {
    /// The name of the action.
    pub action: String,
    /// Its parameters.
    #[serde(default)]
    pub parameters: BTreeMap<String, Value>,
}

impl fmt::Display for ActionChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.action)?;
        for (index, (name, value)) in self.parameters.iter().enumerate() {
            let separator = if index == 0 { " (" } else { ", " };
            write!(f, "{separator}{name} {value}")?;
        }
        f.write_str(if self.parameters.is_empty() { "" } else { ")" })
    }
}

/// Most combinations of actions and parameters.
const MOST_CHOICES: usize = 1_000;

impl Exploration {
    /// Every action with every combination of its parameters, in the order of the suite.
    pub fn choices(&self) -> Vec<ActionChoice> {
        self.actions.iter().flat_map(Action::choices).collect()
    }

    /// The request of a choice; `None`: the suite does not declare it.
    pub fn request(&self, choice: &ActionChoice) -> Option<ActionRequest> {
        let action = self.actions.iter().find(|it| it.name == choice.action)?;
        action.choices().contains(choice).then(|| ActionRequest {
            method: action.method.clone(),
            url: self.base_url.clone() + &filled_path(&action.path, &choice.parameters),
            body: (action.body.as_ref()).map(|body| filled(body, &choice.parameters)),
        })
    }
}

impl Action {
    fn choices(&self) -> Vec<ActionChoice> {
        let mut all = vec![BTreeMap::new()];
        for (name, values) in &self.parameters {
            let with = |known: &BTreeMap<String, Value>, value: &Value| {
                let mut known = known.clone();
                known.insert(name.clone(), value.clone());
                known
            };
            let each = all
                .iter()
                .flat_map(|known| values.iter().map(|value| with(known, value)));
            all = each.collect();
        }
        let choice = |parameters| ActionChoice {
            action: self.name.clone(),
            parameters,
        };
        all.into_iter().map(choice).collect()
    }

    fn uses(&self, name: &str) -> bool {
        let placeholder = placeholder(name);
        let body = self.body.as_ref().map(Value::to_string);
        self.path.contains(&placeholder) || body.is_some_and(|body| body.contains(&placeholder))
    }
}

fn placeholder(name: &str) -> String {
    format!("{{{name}}}")
}

fn text(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

/// The path with encoded values, so that a value cannot change the host or add a segment.
fn filled_path(path: &str, parameters: &BTreeMap<String, Value>) -> String {
    let mut path = path.to_owned();
    for (name, value) in parameters {
        path = path.replace(&placeholder(name), &encode(&text(value)).to_string());
    }
    path
}

/// The body with values: a text that is only a placeholder becomes the value itself.
fn filled(body: &Value, parameters: &BTreeMap<String, Value>) -> Value {
    match body {
        Value::String(written) => {
            let mut filled = written.clone();
            for (name, value) in parameters {
                let placeholder = placeholder(name);
                if *written == placeholder {
                    return value.clone();
                }
                filled = filled.replace(&placeholder, &text(value));
            }
            Value::String(filled)
        }
        Value::Array(items) => items.iter().map(|item| filled(item, parameters)).collect(),
        Value::Object(members) => {
            let members = members.iter();
            Value::Object(
                members
                    .map(|(name, member)| (name.clone(), filled(member, parameters)))
                    .collect(),
            )
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => body.clone(),
    }
}

pub(crate) fn read(fields: &mut Fields<'_, '_>) -> Option<Exploration> {
    let example = "`base_url: http://127.0.0.1:8000`, where the application listens";
    fields.require("base_url", example);
    let base = fields.words(
        "base_url",
        "URL of the application; no other host is called.",
    );
    let base = base.and_then(|base| base_url(fields, &base));
    let headers = read_headers(fields);
    let about = "How the application is started if `ready_url` does not respond.";
    let what = "a map with `command` and `ready_url`";
    let start = fields.block("start", about, what, read_start);
    let base = base.as_deref();
    fields.require(
        "state",
        "`state: {url: /state}`, which returns the state as JSON",
    );
    let state = read_url(
        fields,
        "state",
        "GET to this URL returns the state as JSON.",
        base,
    );
    fields.require(
        "reset",
        "`reset: {url: /reset}`, a request that resets the state",
    );
    let what = "a map with `url`";
    let reset = fields.block(
        "reset",
        "The request that resets the state.",
        what,
        |fields| {
            let method = fields.word("method", "Default POST.", "method", &METHODS);
            let body = fields
                .any("body", "Its JSON body.")
                .map(|body| body.value.to_json());
            let url = url(fields, base)?;
            let method = method.unwrap_or(Method::POST);
            Some(ActionRequest { method, url, body })
        },
    );
    let about = "GET to this URL returns the log; default: the output of the started program.";
    let logs = read_url(fields, "logs", about, base);
    let about = "A response header with the latency in milliseconds; default: it is measured.";
    let latency_header = fields.words("latency_header", about);
    let about = "Time-out of each request, milliseconds; default 10000.";
    let timeout = fields.whole("timeout_ms", about, 1..=300_000, " milliseconds");
    fields.require(
        "actions",
        "what may be sent, a list of maps with `name` and `path`",
    );
    let actions = fields.field("actions", "What may be sent.", |value| {
        let mut names = Vec::new();
        let empty = "the list is empty; write at least one action";
        value.some("a list of actions", empty, |value| {
            let action = value.fields("a map with `name` and `path`", action)?;
            if names.contains(&action.name) {
                value.error(format!("there is already an action `{}`", action.name));
            }
            names.push(action.name.clone());
            Some(action)
        })
    });
    let choices = actions.iter().flatten().map(|action: &Action| {
        let values = action.parameters.iter().map(|(_, values)| values.len());
        values.fold(1, usize::saturating_mul)
    });
    if choices.fold(0, usize::saturating_add) > MOST_CHOICES {
        let message = format!("the actions have more than {MOST_CHOICES} combinations of values");
        fields.error("actions", message);
        return None;
    }
    fields.require("anomalies", "what must not happen, a list");
    let anomalies = fields.field("anomalies", "What must not happen.", |value| {
        let empty = "the list is empty; write at least one anomaly";
        value.some("a list of anomalies", empty, |value| {
            value.fields(anomalies::WHAT, anomalies::read)
        })
    });
    Some(Exploration {
        base_url: base?.to_owned(),
        headers,
        start,
        state: state?,
        reset: reset?,
        logs,
        latency_header: latency_header.map(|name| name.value),
        timeout: Duration::from_millis(timeout.unwrap_or(10_000)),
        actions: actions?,
        anomalies: anomalies?,
    })
}

/// The base URL without a slash at its end.
fn base_url(fields: &mut Fields<'_, '_>, written: &At<String>) -> Option<String> {
    let base = absolute(fields, "base_url", written)?;
    if base.contains(['?', '#']) {
        fields.error(
            "base_url",
            "a base URL has no query and no fragment; leave it out",
        );
        return None;
    }
    Some(base.trim_end_matches('/').to_owned())
}

fn read_url(
    fields: &mut Fields<'_, '_>,
    name: &'static str,
    about: &str,
    base: Option<&str>,
) -> Option<String> {
    fields.block(name, about, "a map with `url`", |fields| url(fields, base))
}

/// `url`: a path below the base URL, or an absolute URL.
fn url(fields: &mut Fields<'_, '_>, base: Option<&str>) -> Option<String> {
    fields.require("url", "a path like `/state`, or an absolute URL");
    let written = fields.words("url", "A path below `base_url`, or an absolute URL.")?;
    match base {
        _ if !written.value.starts_with('/') => absolute(fields, "url", &written),
        Some(base) => below(fields, "url", base, &written.value),
        None => None,
    }
}

/// The URL of a path below the base URL. Its host is always the declared one.
fn below(fields: &mut Fields<'_, '_>, name: &str, base: &str, path: &str) -> Option<String> {
    let url = format!("{base}{path}");
    let origin = |url: &str| Some(Url::parse(url).ok()?.origin());
    if !path.starts_with('/') || origin(&url).is_none() || origin(&url) != origin(base) {
        fields.error(name, "expected a path below `base_url`, like `/orders`");
        return None;
    }
    Some(url)
}

fn action(fields: &mut Fields<'_, '_>) -> Option<Action> {
    fields.require("name", "its name");
    fields.require("path", "its path, like `/orders/{id}`");
    let name = fields.name("name", "Its name.");
    let method = fields.word("method", "Default POST.", "method", &METHODS);
    let about = "Path below `base_url`, with `{NAME}` for the value of a parameter.";
    let path = fields.words("path", about);
    let about = "JSON body, with `\"{NAME}\"` for the value of a parameter.";
    let body = fields.any("body", about).map(|body| body.value.to_json());
    let parameters = fields.field("parameters", "The values of each placeholder.", |value| {
        value.pairs("a map from name to a list of values", |_, value| {
            let empty = "the list is empty; write at least one value";
            value.some("a list of values", empty, |value| scalar(value))
        })
    });
    let parameters = parameters.unwrap_or_default().into_iter();
    let action = Action {
        name: name?.value,
        method: method.unwrap_or(Method::POST),
        path: path?.value,
        body,
        parameters: parameters
            .map(|(name, values)| (name.value.clone(), values))
            .collect(),
    };
    below(fields, "path", "http://a.test", &action.path)?;
    for (name, _) in &action.parameters {
        if !action.uses(name) {
            let message = format!(
                "nothing uses the parameter `{name}`; write `{{{name}}}` in `path` or `body`"
            );
            fields.error("parameters", message);
        }
    }
    let mut named = action.path.split('{').skip(1);
    let declared = |rest: &str| {
        let name = rest.split('}').next().unwrap_or_default();
        action.parameters.iter().any(|(known, _)| known == name)
    };
    if let Some(rest) = named.find(|rest| !declared(rest)) {
        let name = rest.split('}').next().unwrap_or_default();
        let message = format!("`{{{name}}}` is not in `parameters`; add it with its values");
        fields.error("path", message);
    }
    Some(action)
}

/// A text, a number or a flag.
fn scalar(value: &mut ValueReader<'_, '_>) -> Option<Value> {
    let node = value.any()?;
    let json = node.value.to_json();
    if json.is_object() || json.is_array() || json.is_null() {
        value.error("expected a text, a number or a flag");
        return None;
    }
    Some(json)
}
