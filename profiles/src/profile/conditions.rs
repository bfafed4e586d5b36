//! The conditions of a rule's match.

use http::{HeaderName, Method};
use serde_json::{Map, Value, json};
use squall_documents::{At, DocumentReader, Fields, ValueReader};

use super::definitions::Definitions;
use crate::amounts::count;
use crate::changes::Tools;
use crate::family::Family;
use crate::fault::FaultMode;
use crate::glob::{Glob, UrlGlobs};
use crate::json_path;
use crate::matching::{JsonCondition, Match, SocketMatch, StatusSet, ToolMatch, Touches};
use crate::pattern::{self, PatternError, Searched};

/// Reads the conditions of a rule, and the tools that it matches.
pub(super) fn read(
    fields: &mut Fields<'_, '_>,
    family: Family,
    mode: Option<&FaultMode>,
    definitions: &mut Definitions<'_>,
) -> (Match, Tools) {
    let urls = urls(fields);
    let about = "Name or glob: a name from `tools:` or the name of an MCP tool; `*` is every tool.";
    let tool = glob(fields, "tool", about, definitions);
    let about = "The called agent, from `agents:`, or a glob: messages to it.";
    let to = glob(fields, "to", about, definitions);
    let about = "The calling agent, from `agents:`, or a glob.";
    let from = glob(fields, "from", about, definitions);
    let methods = methods(fields, "Request methods; absent: any.");
    let about = "Request headers: name to glob over the value.";
    let headers = fields.field("headers", about, |value| {
        value.pairs("a map", |name, value| header(name, value, definitions))
    });
    let has_body = mode.is_some_and(|mode| mode.has_body);
    let body = if has_body {
        None
    } else {
        let about = "Regular expression that the request's body contains.";
        fields.field("body", about, pattern)
    };
    let about = "The same, also with modes that have a `body` of their own.";
    let match_body = fields.field("match_body", about, pattern);
    let about = "`JSONPath` (RFC 9535) in the request's body to the value that must stand there.";
    let json = fields.field("json", about, |value| value.pairs("a map", json_condition));
    let dialect = dialect(fields);
    let model = glob(
        fields,
        "model",
        "Glob over the model asked for.",
        definitions,
    );
    let stream = fields.flag("stream", "Whether a stream was asked for.");
    let status = statuses(fields);
    let websocket = if family == Family::Network {
        websocket(fields)
    } else {
        None
    };
    let tools = Tools(tool.clone());
    // For these modes, `tool` selects calls in the response; the request does not show them.
    let tool = tool.filter(|_| mode.is_some_and(|mode| !mode.of_calls));
    if to.is_some() && tool.is_some() {
        fields.error(
            "to",
            "`to` and `tool` both name what is called; remove one of them",
        );
    }
    let touches = match mode {
        // An agent's message is no result in a model call.
        Some(mode) if to.is_some() && mode.touches == Touches::Either => Touches::Calls,
        Some(mode) if mode.changes_results(fields) => Touches::Results,
        Some(mode) if mode.is_at_connect(fields) => Touches::Upgrades,
        Some(mode) => mode.touches,
        None => Touches::default(),
    };
    if to.is_some() && touches.in_results() {
        fields.error(
            "to",
            "`to` selects messages on the wire, not results in a model call",
        );
    }
    let matching = Match {
        urls,
        tool: tool.map(named).or(to.map(agent)).map(Box::new),
        from: from.map(Box::new),
        methods,
        status,
        touches,
        headers: values(headers),
        body: body.or(match_body),
        json: values(json),
        dialect,
        model,
        stream,
        websocket,
    };
    (matching, tools)
}

/// Reads the conditions of an `armed_by`.
pub(super) fn read_armed_by(
    fields: &mut Fields<'_, '_>,
    definitions: &mut Definitions<'_>,
) -> Match {
    let about = "Name or glob of the tool that must have been called.";
    let tool = glob(fields, "tool", about, definitions);
    Match {
        urls: urls(fields),
        tool: tool.map(named).map(Box::new),
        methods: methods(fields, "Methods of the exchange."),
        status: statuses(fields),
        ..Match::default()
    }
}

/// The conditions as written, in a fixed order, for the hash of a default id.
pub(super) fn written(rule: &Map<String, Value>, matching: &Match, mode: &FaultMode) -> Value {
    let text = |value: &Value| match value {
        Value::String(text) => json!(text),
        other => json!(other.to_string()),
    };
    let texts = |value: &Value| match value {
        Value::Array(items) => items.iter().map(text).collect(),
        one => Value::Array(vec![text(one)]),
    };
    let by_name = |value: &Value| match value {
        Value::Object(members) => {
            let members = members
                .iter()
                .map(|(name, value)| (name.clone(), text(value)));
            Value::Object(members.collect())
        }
        other => other.clone(),
    };
    let mut conditions = Map::new();
    for name in [
        "match_url",
        "tool",
        "to",
        "from",
        "methods",
        "headers",
        "body",
        "match_body",
        "json",
        "dialect",
        "model",
        "stream",
        "status",
    ] {
        let Some(value) = rule.get(name) else {
            continue;
        };
        let value = match name {
            "match_url" | "methods" | "status" => texts(value),
            "headers" => by_name(value),
            "body" if mode.has_body => continue,
            "body" | "json" => value.clone(),
            "stream" => json!(matching.stream),
            _ => text(value),
        };
        conditions.insert(name.to_owned(), value);
    }
    Value::Object(conditions)
}

fn named(name: Glob) -> ToolMatch {
    ToolMatch {
        name,
        urls: UrlGlobs::default(),
        is_agent: false,
    }
}

fn agent(name: Glob) -> ToolMatch {
    ToolMatch {
        is_agent: true,
        ..named(name)
    }
}

fn values<K, V>(pairs: Option<Vec<(K, V)>>) -> Vec<V> {
    let pairs = pairs.unwrap_or_default().into_iter();
    pairs.map(|(_, value)| value).collect()
}

fn urls(fields: &mut Fields<'_, '_>) -> UrlGlobs {
    let about =
        "Glob, or list of globs, over the whole URL of the upstream; `*` and `{a,b}` are special.";
    let urls = fields.field("match_url", about, |value| {
        let globs = value.texts("a glob, or leave it out to match every URL")?;
        let list = globs.iter().map(|glob| glob.value.as_str());
        UrlGlobs::within(list, &value.reader.limits)
            .map_err(|(number, error)| {
                let position = globs[number].position;
                value.reader.error(position, error.to_string());
            })
            .ok()
    });
    urls.unwrap_or_default()
}

fn glob(
    fields: &mut Fields<'_, '_>,
    name: &'static str,
    about: &str,
    definitions: &mut Definitions<'_>,
) -> Option<Glob> {
    fields.field(name, about, |value| {
        let written = value.text()?;
        compiled(&written, value.reader, definitions)
    })
}

fn compiled(
    written: &At<String>,
    reader: &mut DocumentReader,
    definitions: &mut Definitions<'_>,
) -> Option<Glob> {
    if let Some(glob) = definitions.globs.get(&written.value) {
        return Some(glob.clone());
    }
    let glob = Glob::within(&written.value, &reader.limits)
        .map_err(|error| reader.error(written.position, error.to_string()))
        .ok()?;
    definitions
        .globs
        .insert(written.value.clone(), glob.clone());
    Some(glob)
}

fn methods(fields: &mut Fields<'_, '_>, about: &str) -> Option<Box<[Method]>> {
    let written = fields.field("methods", about, |value| {
        let texts = value.texts("a method, or leave it out to match every method")?;
        let methods = texts.iter().filter_map(|text| {
            let method = Method::from_bytes(text.value.to_ascii_uppercase().as_bytes()).ok();
            if method.is_none() {
                let message = format!("no HTTP method looks like `{}`", text.value);
                value.reader.error(text.position, message);
            }
            method
        });
        Some(methods.collect::<Vec<_>>())
    });
    Some(written?.into())
}

fn statuses(fields: &mut Fields<'_, '_>) -> Option<StatusSet> {
    let about =
        "Status of the upstream's response: a number, a class such as `5xx`, or a list of them.";
    fields.field("status", about, |value| {
        let mut set = StatusSet::default();
        for text in value.texts("a status")? {
            let class = text.value.strip_suffix("xx");
            let class = class.and_then(|digit| digit.parse::<u16>().ok());
            match (class, text.value.parse::<u16>().ok()) {
                (Some(class @ 1..=5), _) => set.classes.push(class),
                (_, Some(code @ 100..=599)) => set.codes.push(code),
                _ => {
                    let allowed = "100 to 599 or a class such as `5xx`";
                    value.reader.misplaced::<()>(text.position, allowed);
                }
            }
        }
        Some(set)
    })
}

fn header(
    name: &At<String>,
    value: &mut ValueReader<'_, '_>,
    definitions: &mut Definitions<'_>,
) -> Option<(HeaderName, Glob)> {
    let typed = HeaderName::try_from(&name.value).ok();
    if typed.is_none() {
        let message = format!("`{}` is no header name", name.value);
        value.reader.error(name.position, message);
    }
    let written = value.text()?;
    let glob = compiled(&written, value.reader, definitions);
    Some((typed?, glob?))
}

fn pattern(value: &mut ValueReader<'_, '_>) -> Option<regex_automata::meta::Regex> {
    let written = value.exact_text()?.value;
    pattern::compile(&written, Searched::Bytes, &value.reader.limits)
        .map_err(|error| {
            value.error(match error {
                PatternError::Syntax(cause) => {
                    format!("`{written}` is no regular expression: {cause}")
                }
                over => over.to_string(),
            });
        })
        .ok()
}

fn json_condition(path: &At<String>, value: &mut ValueReader<'_, '_>) -> Option<JsonCondition> {
    let value_there = value.any()?.value.to_json();
    json_path::parse(&path.value, &value.reader.limits)
        .map_err(|error| {
            let message = format!("`{}` {error}", path.value);
            value.reader.error(path.position, message);
        })
        .ok()
        .map(|path| JsonCondition {
            path,
            value: value_there,
        })
}

/// An upgrade to a WebSocket, and where on it the fault begins.
fn websocket(fields: &mut Fields<'_, '_>) -> Option<SocketMatch> {
    let about = "An upgrade to a WebSocket; the fault acts on what it carries to the agent.";
    fields.block("websocket", about, "a map with `message`", |fields| {
        let about = "Number of the upstream's message with which the fault begins, from 1; absent: the first, and \
                     for `latency` every message.";
        let message = count(fields, "message", about, 1);
        Some(SocketMatch { message })
    })
}

/// Only supported dialects: a rule for another dialect would never match.
fn dialect(fields: &mut Fields<'_, '_>) -> Option<&'static str> {
    let spoken = squall_dialects::ALL.iter().map(|dialect| dialect.name());
    let known: Vec<_> = spoken.map(|name| (name, name)).collect();
    let about = "The provider's wire format, for model calls.";
    fields.word("dialect", about, "dialect", &known)
}
