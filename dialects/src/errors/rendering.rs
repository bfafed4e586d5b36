//! From the layers of a provider's file to a reply or an event.

use std::str::Split;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use super::Given;
use super::functions::{NoSuchValue, Term};
use crate::dialect::{Credential, WireReply};
use crate::json::{Document, Kind, Value, quote};
use crate::model::{LimitScope, ModelError};
use crate::stream::Made;

/// In which form an error is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// By a reply instead of an answer.
    Reply,
    /// By an event in a stream.
    Event,
}

/// The words of a placeholder that have not been read.
pub(super) type Words<'w> = Split<'w, char>;

/// An error in the course of being rendered.
pub(super) struct Rendering<'a> {
    file: &'static Document<'static>,
    /// The layers that match, the last one on top.
    pub(super) layers: Vec<Value<'static>>,
    pub(super) given: Given<'a>,
}

impl<'a> Rendering<'a> {
    pub(super) fn new(file: &'static Document<'static>, given: Given<'a>, form: Form) -> Self {
        let names = names(given.error);
        let mut conditions = conditions(&given, form);
        conditions.extend(given.conditions);
        let has = |list: &[&str], item: &Value<'_>| {
            let item = item.as_str();
            item.is_some_and(|item| list.contains(&&*item))
        };
        let names = [names.0, &names.1];
        let matches = |layer: &Value<'static>| {
            let any = |key| Some(layer.get(key)?.items().any(|name| has(&names, &name)));
            any("for").unwrap_or(true)
                && !any("except").unwrap_or(false)
                && layer
                    .get("when")
                    .is_none_or(|when| when.items().all(|it| has(&conditions, &it)))
        };
        let layers = file.root().get("errors").into_iter();
        Self {
            file,
            layers: layers.flat_map(Value::items).filter(matches).collect(),
            given,
        }
    }

    pub(super) fn reply(&self) -> WireReply {
        let status = self.named("status").and_then(Term::number);
        let status = status.and_then(|status| u16::try_from(status).ok());
        let status = status.and_then(|status| StatusCode::from_u16(status).ok());
        WireReply {
            status: status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            headers: self.headers(),
            body: Bytes::from(self.body().unwrap_or_default()),
        }
    }

    pub(super) fn event(&self) -> Option<Made> {
        let body = self.body()?;
        let named = |key| self.term(self.field(key)?).and_then(Term::text);
        Some(match (named("event"), named("exception")) {
            (Some(name), _) => Made::event(name, body),
            (None, Some(name)) => Made::exception(name, body),
            (None, None) => Made::data(body),
        })
    }

    fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let groups = self.file.root().get("headers");
        let names = self.field("headers").into_iter().flat_map(Value::items);
        let group = |name: Value<'_>| groups?.get(&name.as_str()?);
        for header in names.filter_map(group).flat_map(Value::members) {
            let name = header
                .key()
                .and_then(|name| HeaderName::try_from(&*name).ok());
            let several = header.items();
            let one = (header.kind() == Kind::String).then_some(header);
            for value in one.into_iter().chain(several) {
                let value = self.term(value).and_then(Term::text);
                let value = value.and_then(|value| HeaderValue::try_from(value).ok());
                if let (Some(name), Some(value)) = (&name, value) {
                    headers.append(name, value);
                }
            }
        }
        headers
    }

    fn body(&self) -> Option<String> {
        let number = |key| self.field(key).and_then(Value::as_u64);
        let text = |key| {
            let text = self.term(self.field(key)?).and_then(Term::text);
            Some(text.unwrap_or_default())
        };
        let indent = number("indent").and_then(|spaces| usize::try_from(spaces).ok());
        let mut body = match self.term(self.field("body")?)? {
            Term::Node(node) if node.is_null() => return None,
            Term::Node(node) => self.json(node, indent, 0)?,
            other => other.text()?,
        };
        if self.field("html_safe").and_then(Value::as_bool) == Some(true) {
            for (letter, escaped) in [("&", "\\u0026"), ("<", "\\u003c"), (">", "\\u003e")] {
                body = body.replace(letter, escaped);
            }
        }
        let around = [text("prefix"), text("suffix")].map(Option::unwrap_or_default);
        Some([&*around[0], &body, &around[1]].concat())
    }

    /// A value of the file as JSON, inside of `depth` others.
    fn json(&self, node: Value<'static>, indent: Option<usize>, depth: usize) -> Option<String> {
        let pad = |depth| match indent {
            None | Some(0) => String::new(),
            Some(spaces) => format!("\n{}", " ".repeat(spaces * depth)),
        };
        let list = |items: Vec<String>| {
            let inner = pad(depth + 1);
            format!("{inner}{}{}", items.join(&format!(",{inner}")), pad(depth))
        };
        let written = |value| self.json(value, indent, depth + 1);
        let colon = if indent.is_some() { ": " } else { ":" };
        let member = |value: Value<'static>| {
            Some(format!(
                "{}{colon}{}",
                quote(&value.key()?),
                written(value)?
            ))
        };
        Some(match node.kind() {
            Kind::Object => format!("{{{}}}", list(node.members().filter_map(member).collect())),
            Kind::Array => format!("[{}]", list(node.items().filter_map(written).collect())),
            Kind::String => match self.term(node)? {
                Term::Node(node) => self.json(node, indent, depth)?,
                Term::Raw(value) => value.raw().to_owned(),
                Term::Number(number) => number.to_string(),
                Term::Text(text) => quote(&text),
                Term::Wait(_) => return None,
            },
            Kind::Number | Kind::True | Kind::False | Kind::Null => node.raw().to_owned(),
        })
    }

    /// The uppermost layer's member, or a text of the file.
    fn field(&self, name: &str) -> Option<Value<'static>> {
        let of_layers = self.layers.iter().rev().find_map(|layer| layer.get(name));
        of_layers.or_else(|| self.file.root().get("texts")?.get(name))
    }

    /// What a value of the file stands for.
    fn term(&self, node: Value<'static>) -> Option<Term<'a>> {
        match (node.as_str(), node.as_u64()) {
            (Some(template), _) => self.filled(&template),
            (None, Some(number)) => Some(Term::Number(number)),
            (None, None) => Some(Term::Node(node)),
        }
    }

    /// A template with its placeholders filled in.
    fn filled(&self, template: &str) -> Option<Term<'a>> {
        let alone = template
            .strip_prefix('{')
            .and_then(|it| it.strip_suffix('}'));
        if let Some(words) = alone.filter(|words| !words.contains('{')) {
            return self.value(&mut words.split(' '));
        }
        let mut filled = String::new();
        let mut rest = template;
        while let Some((before, more)) = rest.split_once('{') {
            let (words, after) = more.split_once('}')?;
            let needed = words.strip_suffix('?');
            let value = self.value(&mut needed.unwrap_or(words).split(' '));
            let text = value.and_then(Term::text);
            filled.push_str(before);
            filled.push_str(&match needed {
                Some(_) => text.unwrap_or_default(),
                None => text?,
            });
            rest = after;
        }
        filled.push_str(rest);
        Some(Term::Text(filled))
    }

    /// The value with this name: of the exchange, else of the file.
    pub(super) fn named(&self, name: &str) -> Option<Term<'a>> {
        match self.of_exchange(name) {
            Ok(Some(term)) => Some(term),
            Ok(None) => self.term(self.field(name)?),
            Err(NoSuchValue) => {
                debug_assert!(self.is_of_file(name), "there is no value `{name}`");
                self.term(self.field(name)?)
            }
        }
    }

    /// Whether any layer, or the texts, hold a value with this name.
    fn is_of_file(&self, name: &str) -> bool {
        let root = self.file.root();
        let errors = root.get("errors").into_iter().flat_map(Value::items);
        errors
            .chain(root.get("texts"))
            .any(|values| values.get(name).is_some())
    }
}

/// What `for` calls an error: in general, and with its status.
fn names(error: &ModelError) -> (&'static str, String) {
    let name = match error {
        ModelError::RateLimit { .. } => "rate_limit",
        ModelError::QuotaExhausted => "quota_exhausted",
        ModelError::ContextLength => "context_length_exceeded",
        ModelError::ContentFilter => "content_filter",
        ModelError::Auth => "auth_error",
        ModelError::ModelNotFound => "model_not_found",
        ModelError::Timeout => "timeout",
        ModelError::ServerError { status } => {
            return ("server_error", format!("server_error_{status}"));
        }
        ModelError::Overloaded => "overloaded",
    };
    (name, name.to_owned())
}

/// The conditions that hold for every provider's errors.
fn conditions(given: &Given<'_>, form: Form) -> Vec<&'static str> {
    let mut holding = vec![match form {
        Form::Reply => "reply",
        Form::Event => "event",
    }];
    if let ModelError::RateLimit {
        scope,
        retry_after,
        figures,
    } = given.error
    {
        holding.extend(retry_after.map(|_| "waits"));
        holding.push(match scope {
            LimitScope::Requests => "requests",
            LimitScope::Tokens => "tokens",
        });
        if let Some(figures) = figures {
            holding.push("kept");
            holding.extend(figures.is_too_large().then_some("too_large"));
        }
    }
    if let Some(Credential::Bearer(_)) = given.context.credential {
        holding.push("bearer");
    }
    holding
}
