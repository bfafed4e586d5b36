//! Errors as `generativelanguage.googleapis.com` reports them: a `google.rpc.Status` as JSON.
//!
//! The wait of a rate limit stands in the body, never in a header.

use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, REFERRER_POLICY, SERVER, VARY, X_CONTENT_TYPE_OPTIONS};
use http::header::{X_FRAME_OPTIONS, X_XSS_PROTECTION};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use super::{Call, streams_a_list};
use crate::dialect::{ErrorContext, Target, WireReply};
use crate::figures::irregular;
use crate::json::quote;
use crate::model::{LimitScope, ModelError};

/// Requests per minute that a made-up rate limit claims.
const REQUESTS_PER_MINUTE: u64 = 10;

/// Requests per day that a made-up quota claims.
const REQUESTS_PER_DAY: u64 = 250;

/// Tokens per minute that a made-up rate limit claims.
const TOKENS_PER_MINUTE: u64 = 250_000;

/// Tokens that the context of a made-up overflow holds.
const CONTEXT: u64 = 1_048_576;

/// The model that a made-up error names when the request does not.
const SOME_MODEL: &str = "gemini-2.5-flash";

/// What every error about quotas begins with.
const OVER_QUOTA: &str = "You exceeded your current quota, please check your plan and billing \
    details. For more information on this error, head to: \
    https://ai.google.dev/gemini-api/docs/rate-limits. To monitor your current usage, head to: \
    https://ai.dev/rate-limit. ";

/// The reply for `error`.
pub(super) fn reply(error: &ModelError, context: &ErrorContext<'_>) -> WireReply {
    match error {
        ModelError::ServerError { status } if !matches!(status, 500 | 503 | 504) => {
            front_end_error(*status)
        }
        error => match Status::of(error, context) {
            Some(status) => api_error(&status, context),
            None => blocked(context),
        },
    }
}

/// The data of the event that reports `error` in a stream; `None`: it cannot be one.
pub(super) fn event(error: &ModelError, context: &ErrorContext<'_>) -> Option<String> {
    let status = Status::of(error, context)?;
    Some(format!("{{\"error\": {}}}", status.json(&Layout::Line)))
}

/// A `google.rpc.Status`.
struct Status {
    code: u16,
    message: String,
    /// The name of a `google.rpc.Code`.
    name: &'static str,
    details: Vec<Json>,
}

impl Status {
    fn new(code: u16, name: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            name,
            details: Vec::new(),
        }
    }

    /// `None` for a prompt that is blocked: the API does not call that an error.
    fn of(error: &ModelError, context: &ErrorContext<'_>) -> Option<Self> {
        Some(match error {
            ModelError::RateLimit {
                scope,
                retry_after,
                figures,
            } => {
                let mut quota = Quota::of(*scope);
                quota.value = figures.map_or(quota.value, |figures| figures.per_minute);
                over_quota(&quota, *retry_after, context)
            }
            ModelError::QuotaExhausted => over_quota(&Quota::PER_DAY, None, context),
            ModelError::ContextLength => Self::new(400, "INVALID_ARGUMENT", overflow(context)),
            ModelError::ContentFilter => return None,
            ModelError::Auth => invalid_key(),
            ModelError::ModelNotFound => Self::new(404, "NOT_FOUND", not_found(context)),
            ModelError::Timeout | ModelError::ServerError { status: 504 } => Self::new(
                504,
                "DEADLINE_EXCEEDED",
                "Deadline expired before operation could complete.",
            ),
            ModelError::Overloaded | ModelError::ServerError { status: 503 } => Self::new(
                503,
                "UNAVAILABLE",
                "This model is currently experiencing high demand. Spikes in demand are usually \
                 temporary. Please try again later.",
            ),
            ModelError::ServerError { .. } => Self::new(
                500,
                "INTERNAL",
                "An internal error has occurred. Please retry or report in \
                 https://developers.generativeai.google/guide/troubleshooting",
            ),
        })
    }

    fn json(&self, layout: &Layout) -> String {
        let mut members = vec![
            ("code", Json::Number(u64::from(self.code))),
            ("message", Json::text(&self.message)),
            ("status", Json::text(self.name)),
        ];
        if !self.details.is_empty() {
            members.push(("details", Json::List(self.details.clone())));
        }
        Json::Object(members).written(layout, 1)
    }
}

/// A quota that a made-up error claims to be used up.
struct Quota {
    metric: &'static str,
    id: &'static str,
    value: u64,
}

impl Quota {
    const PER_DAY: Self = Self {
        metric: "generativelanguage.googleapis.com/generate_content_free_tier_requests",
        id: "GenerateRequestsPerDayPerProjectPerModel-FreeTier",
        value: REQUESTS_PER_DAY,
    };

    fn of(scope: LimitScope) -> Self {
        match scope {
            LimitScope::Requests => Self {
                id: "GenerateRequestsPerMinutePerProjectPerModel-FreeTier",
                value: REQUESTS_PER_MINUTE,
                ..Self::PER_DAY
            },
            LimitScope::Tokens => Self {
                metric: "generativelanguage.googleapis.com/generate_content_free_tier_input_token_count",
                id: "GenerateContentInputTokensPerModelPerMinute-FreeTier",
                value: TOKENS_PER_MINUTE,
            },
        }
    }
}

/// `Help`, `QuotaFailure`, and `RetryInfo` when there is a wait to announce.
fn over_quota(quota: &Quota, wait: Option<Duration>, context: &ErrorContext<'_>) -> Status {
    let model = model(context);
    let mut message = format!(
        "{OVER_QUOTA}\n* Quota exceeded for metric: {}, limit: {}, model: {model}",
        quota.metric, quota.value
    );
    let help = Json::Object(vec![
        detail("google.rpc.Help"),
        (
            "links",
            Json::List(vec![Json::Object(vec![
                (
                    "description",
                    Json::text("Learn more about Gemini API quotas"),
                ),
                (
                    "url",
                    Json::text("https://ai.google.dev/gemini-api/docs/rate-limits"),
                ),
            ])]),
        ),
    ]);
    let violation = Json::Object(vec![
        ("quotaMetric", Json::text(quota.metric)),
        ("quotaId", Json::text(quota.id)),
        (
            "quotaDimensions",
            Json::Object(vec![
                ("location", Json::text("global")),
                ("model", Json::text(model)),
            ]),
        ),
        ("quotaValue", Json::text(&quota.value.to_string())),
    ]);
    let failure = Json::Object(vec![
        detail("google.rpc.QuotaFailure"),
        ("violations", Json::List(vec![violation])),
    ]);
    let mut details = vec![help, failure];
    if let Some(wait) = wait {
        message = format!("{message}\nPlease retry in {}.", go_duration(wait));
        details.push(Json::Object(vec![
            detail("google.rpc.RetryInfo"),
            ("retryDelay", Json::text(&protobuf_duration(wait))),
        ]));
    }
    Status {
        details,
        ..Status::new(429, "RESOURCE_EXHAUSTED", message)
    }
}

fn invalid_key() -> Status {
    let message = "API key not valid. Please pass a valid API key.";
    let service = vec![("service", Json::text("generativelanguage.googleapis.com"))];
    Status {
        details: vec![
            Json::Object(vec![
                detail("google.rpc.ErrorInfo"),
                ("reason", Json::text("API_KEY_INVALID")),
                ("domain", Json::text("googleapis.com")),
                ("metadata", Json::Object(service)),
            ]),
            Json::Object(vec![
                detail("google.rpc.LocalizedMessage"),
                ("locale", Json::text("en-US")),
                ("message", Json::text(message)),
            ]),
        ],
        ..Status::new(400, "INVALID_ARGUMENT", message)
    }
}

fn detail(name: &str) -> (&'static str, Json) {
    ("@type", Json::text(&format!("type.googleapis.com/{name}")))
}

fn overflow(context: &ErrorContext<'_>) -> String {
    let tokens = context.input_tokens.unwrap_or_default();
    let tokens = tokens.max(CONTEXT + 1 + irregular(context.draw, 0) % 4000);
    format!(
        "The input token count ({tokens}) exceeds the maximum number of tokens allowed ({CONTEXT})."
    )
}

fn not_found(context: &ErrorContext<'_>) -> String {
    let method = Call::of(context.target).map_or("generateContent", |call| call.method);
    format!(
        "models/{} is not found for API version {}, or is not supported for {method}. Call \
         ListModels to see the list of available models and their supported methods.",
        model(context),
        version(context.target),
    )
}

/// The first segment of the path, where it is one: gateways have prefixes.
fn version(target: Target<'_>) -> &str {
    let mut segments = target.path().split('/');
    let version = segments.find(|segment| matches!(*segment, "v1" | "v1beta" | "v1alpha"));
    version.unwrap_or("v1beta")
}

fn model<'c>(context: &ErrorContext<'c>) -> &'c str {
    let asked = context.model;
    let asked = asked.or_else(|| Call::of(context.target).map(|call| call.model));
    asked.unwrap_or(SOME_MODEL)
}

fn api_error(status: &Status, context: &ErrorContext<'_>) -> WireReply {
    let listed = streams_a_list(context.target);
    let error = status.json(&Layout::Indented);
    let body = if listed {
        format!("[{{\n  \"error\": {error}\n}}\n]")
    } else {
        format!("{{\n  \"error\": {error}\n}}\n")
    };
    WireReply {
        status: StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
        headers: api_headers("application/json; charset=UTF-8", context.draw),
        body: Bytes::from(body),
    }
}

/// A prompt that is blocked is no error: the answer has no candidates.
fn blocked(context: &ErrorContext<'_>) -> WireReply {
    let tokens = Json::Number(context.input_tokens.unwrap_or(8));
    let answer = Json::Object(vec![
        (
            "promptFeedback",
            Json::Object(vec![("blockReason", Json::text("PROHIBITED_CONTENT"))]),
        ),
        (
            "usageMetadata",
            Json::Object(vec![
                ("promptTokenCount", tokens.clone()),
                ("totalTokenCount", tokens),
            ]),
        ),
        ("modelVersion", Json::text(model(context))),
        ("responseId", Json::text(&response_id(context.draw))),
    ]);
    let streams = Call::of(context.target).is_some_and(Call::streams);
    let (media_type, body) = if streams_a_list(context.target) {
        let answer = answer.written(&Layout::Indented, 0);
        ("application/json; charset=UTF-8", format!("[{answer}\n]\n"))
    } else if streams {
        let answer = answer.written(&Layout::Line, 0);
        ("text/event-stream", format!("data: {answer}\r\n\r\n"))
    } else {
        let answer = answer.written(&Layout::Indented, 0);
        ("application/json; charset=UTF-8", format!("{answer}\n"))
    };
    WireReply {
        status: StatusCode::OK,
        headers: api_headers(media_type, context.draw),
        body: Bytes::from(body),
    }
}

/// What Google's front end says when it cannot reach the API: a page.
fn front_end_error(status: u16) -> WireReply {
    let body = format!(
        "<!DOCTYPE html>\n<html lang=en>\n  <meta charset=utf-8>\n  <title>Error {status} (Server \
         Error)!!1</title>\n  <p><b>{status}.</b> <ins>That\u{2019}s an error.</ins>\n  <p>The \
         server encountered a temporary error and could not complete your request.<p>Please try \
         again in 30 seconds.  <ins>That\u{2019}s all we know.</ins>\n"
    );
    let mut headers = HeaderMap::new();
    let html = HeaderValue::from_static("text/html; charset=UTF-8");
    headers.insert(CONTENT_TYPE, html);
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    WireReply {
        status: StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY),
        headers,
        body: Bytes::from(body),
    }
}

/// Headers of every answer of the API's.
fn api_headers(media_type: &'static str, draw: u64) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in [
        (VARY, "Origin"),
        (VARY, "X-Origin"),
        (VARY, "Referer"),
        (CONTENT_TYPE, media_type),
        (SERVER, "scaffolding on HTTPServer2"),
        (X_XSS_PROTECTION, "0"),
        (X_FRAME_OPTIONS, "SAMEORIGIN"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ] {
        headers.append(name, HeaderValue::from_static(value));
    }
    let timing = format!("gfet4t7; dur={}", 40 + irregular(draw, 1) % 400);
    if let Ok(timing) = HeaderValue::try_from(timing) {
        headers.insert(HeaderName::from_static("server-timing"), timing);
    }
    headers
}

/// 22 letters, digits, `-` and `_`.
fn response_id(draw: u64) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let letter = |place: u64| {
        let index = irregular(draw, 16 + place) % 64;
        char::from(LETTERS[usize::try_from(index).unwrap_or_default()])
    };
    (0..22).map(letter).collect()
}

/// A duration as `google.protobuf.Duration` is written in JSON: no digits behind the point or three,
/// six or nine; `2s`, `1.426s`, `0.500s`.
fn protobuf_duration(duration: Duration) -> String {
    let (seconds, nanos) = (duration.as_secs(), duration.subsec_nanos());
    match nanos {
        0 => format!("{seconds}s"),
        _ if nanos % 1_000_000 == 0 => format!("{seconds}.{:03}s", nanos / 1_000_000),
        _ if nanos % 1000 == 0 => format!("{seconds}.{:06}s", nanos / 1000),
        _ => format!("{seconds}.{nanos:09}s"),
    }
}

/// A duration as Go prints it, to the nanosecond: `12ms`, `1.5s`, `6m0s`, `19h4m45s`.
fn go_duration(duration: Duration) -> String {
    let fraction = |whole: u64, rest: u32, digits: usize| {
        let fraction = format!("{rest:0digits$}");
        match fraction.trim_end_matches('0') {
            "" => whole.to_string(),
            fraction => format!("{whole}.{fraction}"),
        }
    };
    let (seconds, nanos) = (duration.as_secs(), duration.subsec_nanos());
    match (seconds, nanos) {
        (0, 0) => "0s".to_owned(),
        (0, _) => format!(
            "{}ms",
            fraction(u64::from(nanos / 1_000_000), nanos % 1_000_000, 6)
        ),
        _ => {
            let last = fraction(seconds % 60, nanos, 9);
            match (seconds / 3600, seconds / 60 % 60) {
                (0, 0) => format!("{last}s"),
                (0, minutes) => format!("{minutes}m{last}s"),
                (hours, minutes) => format!("{hours}h{minutes}m{last}s"),
            }
        }
    }
}

/// A JSON value to be written as the API writes it.
#[derive(Clone)]
enum Json {
    Text(String),
    Number(u64),
    Object(Vec<(&'static str, Self)>),
    List(Vec<Self>),
}

/// How a JSON value is laid out.
enum Layout {
    /// On one line.
    Line,
    /// Two spaces a level.
    Indented,
}

impl Json {
    fn text(text: &str) -> Self {
        Self::Text(text.to_owned())
    }

    /// The value, inside of `depth` others.
    fn written(&self, layout: &Layout, depth: usize) -> String {
        let list = |items: Vec<String>, open: char, close: char| {
            let pad = |depth: usize| match layout {
                Layout::Line => String::new(),
                Layout::Indented => format!("\n{}", "  ".repeat(depth)),
            };
            let inner = pad(depth + 1);
            let items = items.join(&format!(",{inner}"));
            format!("{open}{inner}{items}{}{close}", pad(depth))
        };
        match self {
            Self::Text(text) => quote(text),
            Self::Number(number) => number.to_string(),
            Self::Object(members) => {
                let member = |(key, value): &(&str, Self)| {
                    format!("\"{key}\": {}", value.written(layout, depth + 1))
                };
                list(members.iter().map(member).collect(), '{', '}')
            }
            Self::List(items) => {
                let items = items.iter().map(|item| item.written(layout, depth + 1));
                list(items.collect(), '[', ']')
            }
        }
    }
}
