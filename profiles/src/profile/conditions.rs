//! Reading what a rule asks of an exchange.

use http::{HeaderName, Method};
use regex_automata::meta::Regex;
use serde_json::{Map, Value, json};

use super::located::{At, OneOrMany, Pairs};
use super::modes::Mode;
use super::raw::{RawArmedBy, RawRule};
use super::reader::Reader;
use crate::error::allowed;
use crate::glob::{Glob, UrlGlobs};
use crate::json_path;
use crate::matching::{JsonCondition, Match, MoreConditions, StatusSet, ToolMatch, Touches};
use crate::pattern::{self, PatternError, Searched};
use crate::rule::Family;

/// Reads the conditions of a rule. Of a mode that is not known `body` may be a parameter: it is left
/// unread.
pub(crate) fn read(raw: &RawRule, mode: Option<&Mode>, reader: &mut Reader) -> Match {
    let body = raw
        .body
        .as_ref()
        .filter(|_| mode.is_some_and(|mode| !mode.parameters.contains(&"body")));
    let body = body
        .and_then(|body| text("body", body, reader))
        .map(|body| ("body", body));
    let body = body.or_else(|| Some(("match_body", raw.match_body.clone()?)));
    let rarer = MoreConditions {
        headers: raw
            .headers
            .as_ref()
            .map_or_else(Vec::new, |at| headers(&at.value, reader)),
        body: body.and_then(|(field, pattern)| regex(field, &pattern, reader)),
        json: raw
            .json
            .as_ref()
            .map_or_else(Vec::new, |at| json_conditions(&at.value, reader)),
        dialect: raw.dialect.as_ref().and_then(|at| dialect(at, reader)),
        model: raw.model.as_ref().and_then(|at| glob("model", at, reader)),
        stream: raw.stream.as_ref().map(|at| at.value.is_set()),
    };
    let any = !rarer.headers.is_empty()
        || rarer.body.is_some()
        || !rarer.json.is_empty()
        || rarer.dialect.is_some()
        || rarer.model.is_some()
        || rarer.stream.is_some();
    Match {
        urls: urls(raw.match_url.as_ref(), reader),
        // Which call in the answer is meant is the fault's, for the request cannot tell.
        tool: tool(raw.tool.as_ref(), reader).filter(|_| mode.is_some_and(|mode| !mode.of_calls)),
        methods: methods(raw.methods.as_ref(), reader),
        status: statuses(raw.status.as_ref(), reader),
        touches: mode.map_or_else(Touches::default, |mode| touches(raw, mode)),
        more: any.then(|| Box::new(rarer)),
    }
}

/// Whether a rule is to change what the model is told of a tool's result.
pub(crate) fn in_model_input(raw: &RawRule) -> bool {
    raw.at.as_ref().is_some_and(|at| at.value == MODEL_INPUT)
}

/// The value of `at` by which a tool's fault changes what the model is told.
pub(crate) const MODEL_INPUT: &str = "model_input";

fn touches(raw: &RawRule, mode: &Mode) -> Touches {
    if mode.family == Family::Tool && in_model_input(raw) {
        Touches::Results
    } else {
        mode.touches
    }
}

/// Reads the conditions of an `armed_by`.
pub(crate) fn read_armed_by(raw: &RawArmedBy, reader: &mut Reader) -> Match {
    Match {
        urls: urls(raw.match_url.as_ref(), reader),
        tool: tool(raw.tool.as_ref(), reader),
        methods: methods(raw.methods.as_ref(), reader),
        status: statuses(raw.status.as_ref(), reader),
        touches: Touches::Calls,
        more: None,
    }
}

/// The conditions as they were written, in a fixed order: what a default id is hashed from.
pub(crate) fn written(raw: &RawRule, mode: &Mode) -> Map<String, Value> {
    let mut map = Map::new();
    let mut put = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            map.insert(name.to_owned(), value);
        }
    };
    let many = |at: &Option<At<OneOrMany>>| at.as_ref().map(|at| json!(list(&at.value)));
    let word = |at: &Option<At<String>>| at.as_ref().map(|at| json!(at.value));
    put("match_url", many(&raw.match_url));
    put("tool", word(&raw.tool));
    put("methods", many(&raw.methods));
    put("headers", raw.headers.as_ref().map(|at| pairs(&at.value)));
    if !mode.parameters.contains(&"body") {
        put("body", raw.body.as_ref().map(|at| at.value.clone()));
    }
    put("match_body", word(&raw.match_body));
    put("json", raw.json.as_ref().map(|at| pairs(&at.value)));
    put("dialect", word(&raw.dialect));
    put("model", word(&raw.model));
    put(
        "stream",
        raw.stream.as_ref().map(|at| json!(at.value.is_set())),
    );
    put("status", many(&raw.status));
    map
}

fn list(many: &OneOrMany) -> Vec<&str> {
    many.0.iter().map(|at| at.value.as_str()).collect()
}

fn pairs<T: Clone + Into<Value>>(pairs: &Pairs<T>) -> Value {
    let entries = pairs.0.iter();
    Value::Object(
        entries
            .map(|(key, at)| (key.value.clone(), at.value.clone().into()))
            .collect(),
    )
}

fn urls(globs: Option<&At<OneOrMany>>, reader: &mut Reader) -> UrlGlobs {
    let Some(globs) = globs else {
        return UrlGlobs::default();
    };
    if globs.value.0.is_empty() {
        let message = "`match_url` lists no glob; leave it out to match every URL";
        reader.error("match_url", globs.position, message);
    }
    let list = list(&globs.value);
    UrlGlobs::within(list, &reader.limits).unwrap_or_else(|(number, error)| {
        let position = globs.value.0[number].position;
        reader.error("match_url", position, error.to_string());
        UrlGlobs::default()
    })
}

fn tool(name: Option<&At<String>>, reader: &mut Reader) -> Option<Box<ToolMatch>> {
    let name = glob("tool", name?, reader)?;
    Some(Box::new(ToolMatch {
        name,
        urls: UrlGlobs::default(),
    }))
}

fn glob(field: &str, written: &At<String>, reader: &mut Reader) -> Option<Glob> {
    if let Some(glob) = reader.globs.get(&written.value) {
        return Some(glob.clone());
    }
    let glob = Glob::within(&written.value, &reader.limits)
        .map_err(|error| reader.error(field, written.position, format!("`{field}`: {error}")))
        .ok()?;
    reader.globs.insert(written.value.clone(), glob.clone());
    Some(glob)
}

/// The regular expression of `body`, which as a parameter of a fault may be any value. Where it is
/// such a parameter it is nothing to match on.
fn text(field: &str, at: &At<Value>, reader: &mut Reader) -> Option<At<String>> {
    let Value::String(text) = &at.value else {
        let message = format!("`{field}` is a regular expression over the request's body, a text");
        reader.error(field, at.position, message);
        return None;
    };
    Some(At {
        value: text.clone(),
        position: at.position,
    })
}

fn methods(written: Option<&At<OneOrMany>>, reader: &mut Reader) -> Option<Box<[Method]>> {
    let written = written?;
    if written.value.0.is_empty() {
        let message = "`methods` lists none; leave it out to match every method";
        reader.error("methods", written.position, message);
    }
    let mut methods = Vec::new();
    for at in &written.value.0 {
        if let Ok(method) = Method::from_bytes(at.value.to_ascii_uppercase().as_bytes()) {
            methods.push(method);
        } else {
            let message = format!("`methods: {}`: no HTTP method looks like that", at.value);
            reader.error("methods", at.position, message);
        }
    }
    Some(methods.into())
}

fn statuses(written: Option<&At<OneOrMany>>, reader: &mut Reader) -> Option<StatusSet> {
    let written = written?;
    let mut set = StatusSet::default();
    for at in &written.value.0 {
        let class = at
            .value
            .strip_suffix("xx")
            .and_then(|digit| digit.parse::<u16>().ok());
        let code = at.value.parse::<u16>().ok();
        match (class, code) {
            (Some(class @ 1..=5), _) => set.classes.push(class),
            (_, Some(code @ 100..=599)) => set.codes.push(code),
            _ => {
                let message = format!(
                    "`status: {}`: allowed are 100 to 599 and classes such as `5xx`",
                    at.value
                );
                reader.error("status", at.position, message);
            }
        }
    }
    Some(set)
}

fn headers(pairs: &Pairs<String>, reader: &mut Reader) -> Vec<(HeaderName, Glob)> {
    reader.below("headers", |reader| {
        let mut headers = Vec::new();
        for (name, value) in &pairs.0 {
            let typed = HeaderName::try_from(&name.value);
            if typed.is_err() {
                let message = format!("`{}` is no header name", name.value);
                reader.error(&name.value, name.position, message);
            }
            if let (Ok(header), Some(glob)) = (typed, glob(&name.value, value, reader)) {
                headers.push((header, glob));
            }
        }
        headers
    })
}

fn regex(field: &str, pattern: &At<String>, reader: &mut Reader) -> Option<Regex> {
    pattern::compile(&pattern.value, Searched::Bytes, &reader.limits)
        .map_err(|error| {
            let message = match error {
                PatternError::Syntax(cause) => format!(
                    "`{field}: {}` is no regular expression: {cause}",
                    pattern.value
                ),
                over => format!("`{field}`: {over}"),
            };
            reader.error(field, pattern.position, message);
        })
        .ok()
}

fn json_conditions(pairs: &Pairs<Value>, reader: &mut Reader) -> Vec<JsonCondition> {
    reader.below("json", |reader| {
        let mut conditions = Vec::new();
        for (path, value) in &pairs.0 {
            match json_path::parse(&path.value, &reader.limits) {
                Ok(parsed) => {
                    conditions.push(JsonCondition {
                        path: parsed,
                        value: value.value.clone(),
                    });
                }
                Err(error) => {
                    let message = format!("`{}` {error}", path.value);
                    reader.error(&path.value, path.position, message);
                }
            }
        }
        conditions
    })
}

/// Only what this version speaks: a rule for another dialect would never match.
fn dialect(written: &At<String>, reader: &mut Reader) -> Option<String> {
    let spoken = squall_dialects::ALL.iter().map(|dialect| dialect.name());
    if !spoken.clone().any(|name| name == written.value) {
        let message = format!(
            "unknown dialect `{}`{}",
            written.value,
            allowed(&written.value, spoken)
        );
        reader.error("dialect", written.position, message);
        return None;
    }
    Some(written.value.clone())
}
