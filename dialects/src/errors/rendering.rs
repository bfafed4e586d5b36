//! Renders the layers of a provider's file as a response or an event.

use std::str::Split;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde::Serialize as _;
use serde_json::Value as Json;
use serde_json::ser::{Formatter, PrettyFormatter, Serializer};

use super::functions::{
    date, go_duration, irregular, letters, masked, protobuf_duration, refill, thousands, uuid,
    whole_millis, whole_seconds,
};
use super::{Credential, ErrorContext, ErrorTerms, WireReply};
use crate::answer::Event;
use crate::model::{LimitFigures, LimitScope, ModelError};
use crate::stream::SyntheticEvent;

/// The wait of a rate limit that announces no wait.
const USUAL_WAIT: Duration = Duration::from_secs(1);

/// The form in which an error is reported.
#[derive(Debug, Clone, Copy)]
pub(super) enum Form<'a> {
    /// A response instead of an answer.
    Reply,
    /// An event in a stream, after another one.
    Event(Option<Event<'a>>),
}

/// The remaining words of a placeholder.
type Words<'w> = Split<'w, char>;

/// The value of a template.
enum Term {
    Json(Json),
    /// A duration, formatted by functions.
    Wait(Duration),
}

impl Term {
    fn number(self) -> Option<u64> {
        match self {
            Self::Json(json) => json.as_u64(),
            Self::Wait(_) => None,
        }
    }

    fn text(self) -> Option<String> {
        match self {
            Self::Json(Json::String(text)) => Some(text),
            Self::Json(Json::Number(number)) => Some(number.to_string()),
            Self::Json(_) | Self::Wait(_) => None,
        }
    }
}

impl<T: Into<Json>> From<T> for Term {
    fn from(value: T) -> Self {
        Self::Json(value.into())
    }
}

/// The state of rendering an error.
pub(super) struct Rendering<'a> {
    file: &'static Json,
    /// The matching layers, lowest first.
    pub(super) layers: Vec<&'static Json>,
    error: &'a ModelError,
    context: &'a ErrorContext<'a>,
    terms: &'a ErrorTerms,
    last: Option<Event<'a>>,
}

impl<'a> Rendering<'a> {
    pub(super) fn new(
        file: &'static Json,
        error: &'a ModelError,
        context: &'a ErrorContext<'a>,
        terms: &'a ErrorTerms,
        form: Form<'a>,
    ) -> Self {
        let names = names(error);
        let mut conditions = conditions(error, context, form);
        conditions.extend(&terms.conditions);
        let is_named = |name: &Json| names.iter().any(|known| name == known);
        let holds = |name: &Json| conditions.iter().any(|known| name == known);
        let matches = |layer: &&Json| {
            list(&layer["for"]).is_none_or(|mut names| names.any(is_named))
                && list(&layer["except"]).is_none_or(|mut names| !names.any(is_named))
                && list(&layer["when"]).is_none_or(|mut names| names.all(holds))
        };
        let layers = list(&file["errors"]).into_iter().flatten();
        Self {
            file,
            layers: layers.filter(matches).collect(),
            error,
            context,
            terms,
            last: match form {
                Form::Reply => None,
                Form::Event(last) => last,
            },
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

    pub(super) fn event(&self) -> Option<SyntheticEvent> {
        let body = self.body()?;
        Some(match (self.text("event"), self.text("exception")) {
            (Some(name), _) => SyntheticEvent::event(name, body),
            (None, Some(name)) => SyntheticEvent::exception(name, body),
            (None, None) => SyntheticEvent::data(body),
        })
    }

    fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let groups = self.field("headers").and_then(list).into_iter().flatten();
        let groups = groups.filter_map(|name| self.file["headers"][name.as_str()?].as_object());
        for (name, value) in groups.flatten() {
            let several = list(value);
            let one = several.is_none().then_some(value);
            for value in one.into_iter().chain(several.into_iter().flatten()) {
                let text = self.term(value).and_then(Term::text);
                let value = text.and_then(|text| HeaderValue::try_from(text).ok());
                let name = HeaderName::try_from(name).ok();
                headers.extend(name.zip(value));
            }
        }
        headers
    }

    fn body(&self) -> Option<String> {
        let mut body = match self.term(self.field("body")?)? {
            Term::Json(Json::Null) | Term::Wait(_) => return None,
            Term::Json(Json::String(text)) => text,
            Term::Json(json) => written(&json, self.field("indent").and_then(Json::as_u64))?,
        };
        if self.field("html_safe") == Some(&Json::Bool(true)) {
            for (letter, escaped) in [("&", "\\u0026"), ("<", "\\u003c"), (">", "\\u003e")] {
                body = body.replace(letter, escaped);
            }
        }
        let around = |key| self.text(key).unwrap_or_default();
        Some([around("prefix"), body, around("suffix")].concat())
    }

    /// A member of the topmost layer that has it, or else a text of the file.
    fn field(&self, name: &str) -> Option<&'static Json> {
        let of_layers = self.layers.iter().rev().find_map(|layer| layer.get(name));
        of_layers.or_else(|| self.file["texts"].get(name))
    }

    fn text(&self, name: &str) -> Option<String> {
        self.term(self.field(name)?).and_then(Term::text)
    }

    /// Evaluates a template of the file.
    fn term(&self, template: &Json) -> Option<Term> {
        let json = |item: &Json| match self.term(item)? {
            Term::Json(json) => Some(json),
            Term::Wait(_) => None,
        };
        Some(match template {
            Json::String(template) => return self.filled(template),
            Json::Array(items) => items.iter().filter_map(json).collect::<Json>().into(),
            Json::Object(members) => {
                let members = members.iter();
                let members = members.filter_map(|(key, it)| Some((key.clone(), json(it)?)));
                Json::Object(members.collect()).into()
            }
            other => other.clone().into(),
        })
    }

    /// Replaces the placeholders of a template.
    fn filled(&self, template: &str) -> Option<Term> {
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
        Some(filled.into())
    }

    /// The value with this name: from the exchange, or else from the file.
    fn named(&self, name: &str) -> Option<Term> {
        let of_exchange = self.of_exchange(name);
        of_exchange.or_else(|| self.term(self.field(name)?))
    }

    /// Evaluates the next words of a placeholder.
    fn value(&self, words: &mut Words<'_>) -> Option<Term> {
        let word = words.next()?;
        if let Ok(number) = word.parse::<u64>() {
            return Some(number.into());
        }
        Some(match word {
            "uuid" => uuid(self.number(words)?, self.number(words)?).into(),
            "hex" => {
                let (figure, digits) = (self.figure(words)?, self.number(words)?.clamp(1, 16));
                let digits = usize::try_from(digits).ok()?;
                format!("{:0digits$x}", figure >> (64 - 4 * digits)).into()
            }
            "letters" => {
                let (source, alphabet) = (self.number(words)?, self.value(words)?.text()?);
                letters(source, &alphabet, self.number(words)?)?.into()
            }
            "between" => {
                let from = self.number(words)?;
                (from + self.figure(words)? % self.number(words)?.max(1)).into()
            }
            "below" => {
                let most = self.number(words)?;
                let steps = self.figure(words)? % self.number(words)?.max(1);
                most.saturating_sub(steps * self.number(words)?).into()
            }
            "plus" | "max" | "min" => {
                let one = self.number(words).unwrap_or_default();
                let other = self.number(words).unwrap_or_default();
                match word {
                    "plus" => one.saturating_add(other),
                    "max" => one.max(other),
                    _ => one.min(other),
                }
                .into()
            }
            "thousands" => thousands(self.number(words)?).into(),
            "text" => self.number(words)?.to_string().into(),
            "vendor" => {
                let name = self.value(words)?.text()?;
                let vendor = name.split_once('/').map(|(vendor, _)| vendor);
                vendor.unwrap_or("OpenAI").into()
            }
            "refill" => Term::Wait(refill(self.number(words)?, self.number(words)?)),
            "reset" => match (self.number(words)?, self.number(words)?) {
                (_, 0) => return self.named("wait"),
                (limit, left) => Term::Wait(refill(limit, left)),
            },
            "seconds" => whole_seconds(self.wait(words)?).to_string().into(),
            "millis" => whole_millis(self.wait(words)?).to_string().into(),
            "ceil" => Term::Wait(Duration::from_millis(whole_millis(self.wait(words)?))),
            "go" => go_duration(self.wait(words)?).into(),
            "protobuf" => protobuf_duration(self.wait(words)?).into(),
            "date" => date(self.context.now?.saturating_add(self.wait(words)?))?.into(),
            name => return self.named(name),
        })
    }

    fn number(&self, words: &mut Words<'_>) -> Option<u64> {
        self.value(words)?.number()
    }

    fn wait(&self, words: &mut Words<'_>) -> Option<Duration> {
        match self.value(words)? {
            Term::Wait(wait) => Some(wait),
            Term::Json(_) => None,
        }
    }

    /// The random figure of a source and a place.
    fn figure(&self, words: &mut Words<'_>) -> Option<u64> {
        Some(irregular(self.number(words)?, self.number(words)?))
    }

    /// A value from the exchange, if it is known.
    fn of_exchange(&self, name: &str) -> Option<Term> {
        let context = self.context;
        let (retry_after, figures) = match self.error {
            ModelError::RateLimit {
                retry_after,
                figures,
                ..
            } => (*retry_after, *figures),
            _ => (None, None),
        };
        let status = match self.error {
            ModelError::ServerError { status } => Some(*status),
            _ => None,
        };
        let figure = |of: fn(LimitFigures) -> u64| figures.map(|it| of(it).into());
        if let Some((_, value)) = self.terms.values.iter().find(|(own, _)| *own == name) {
            return Some(value.clone().into());
        }
        match name {
            "draw" => Some(context.draw.into()),
            "account" => Some(context.account.into()),
            "model" | "asked" => context.model.map(Into::into),
            "previous_response" => context.previous_response.map(Into::into),
            "input_tokens" => context.input_tokens.map(Into::into),
            "api_version" => context.target.parameter("api-version").map(Into::into),
            "masked" => context.credential.map(|key| masked(key).into()),
            "status" => status.map(Into::into),
            "reason" => {
                let status = StatusCode::from_u16(status?).ok()?;
                status.canonical_reason().map(Into::into)
            }
            "retry_after" => retry_after.map(Term::Wait),
            "wait" => Some(Term::Wait(retry_after.unwrap_or(USUAL_WAIT))),
            "limit" => figure(|it| it.per_minute),
            "used" => figure(|it| it.used),
            "requested" => figure(|it| it.requested),
            "left" => figure(LimitFigures::remaining),
            name => {
                let member = self.last?.root().get(name.strip_prefix("last.")?)?;
                Some(member.to_json().into())
            }
        }
    }
}

fn list(json: &Json) -> Option<std::slice::Iter<'_, Json>> {
    json.as_array().map(|items| items.iter())
}

/// JSON with this indentation; absent: on one line; 0: on one line with a space after each colon.
fn written(json: &Json, indent: Option<u64>) -> Option<String> {
    let mut text = Vec::new();
    let spaces = " ".repeat(usize::try_from(indent.unwrap_or_default()).ok()?);
    let pretty = PrettyFormatter::with_indent(spaces.as_bytes());
    let written = match indent {
        None => return Some(json.to_string()),
        Some(0) => json.serialize(&mut Serializer::with_formatter(&mut text, SpacedColons)),
        Some(_) => json.serialize(&mut Serializer::with_formatter(&mut text, pretty)),
    };
    written.ok().and_then(|()| String::from_utf8(text).ok())
}

struct SpacedColons;

impl Formatter for SpacedColons {
    fn begin_object_value<W: ?Sized + std::io::Write>(
        &mut self,
        writer: &mut W,
    ) -> std::io::Result<()> {
        writer.write_all(b": ")
    }
}

/// The names of an error in `for`: in general, and with its status.
fn names(error: &ModelError) -> Vec<String> {
    let name = match error {
        ModelError::RateLimit { .. } => "rate_limit",
        ModelError::QuotaExhausted => "quota_exhausted",
        ModelError::ContextLength => "context_length_exceeded",
        ModelError::ContentFilter => "content_filter",
        ModelError::Auth => "auth_error",
        ModelError::ModelNotFound => "model_not_found",
        ModelError::PreviousResponse => "previous_response_not_found",
        ModelError::ConnectionLimit => "connection_limit",
        ModelError::Timeout => "timeout",
        ModelError::ServerError { status } => {
            return vec!["server_error".into(), format!("server_error_{status}")];
        }
        ModelError::Overloaded => "overloaded",
    };
    vec![name.into()]
}

/// The true conditions that are common to all providers.
fn conditions(error: &ModelError, context: &ErrorContext<'_>, form: Form<'_>) -> Vec<&'static str> {
    let mut holding = vec![match form {
        Form::Reply => "reply",
        Form::Event(_) => "event",
    }];
    if let ModelError::RateLimit {
        scope,
        retry_after,
        figures,
    } = error
    {
        holding.push(match scope {
            LimitScope::Requests => "requests",
            LimitScope::Tokens => "tokens",
        });
        let too_large = figures.is_some_and(LimitFigures::is_too_large);
        holding.extend(retry_after.map(|_| "waits"));
        holding.extend(figures.map(|_| "kept"));
        holding.extend(too_large.then_some("too_large"));
    }
    if let Some(Credential::Bearer(_)) = context.credential {
        holding.push("bearer");
    }
    holding
}
