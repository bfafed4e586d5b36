//! Errors as Ollama's server reports them: a status and `{"error": "…"}`.
//!
//! No wait is ever announced. Limits and quotas are those of the models in Ollama's cloud.

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, StatusCode};

use crate::dialect::{ErrorContext, WireReply};
use crate::figures::irregular;
use crate::json::quote;
use crate::model::ModelError;

/// The model that a made-up error names when the request does not.
const SOME_MODEL: &str = "llama3.2";

/// The reply for `error`.
pub(super) fn reply(error: &ModelError, context: &ErrorContext<'_>) -> WireReply {
    let (status, message) = words(error, context);
    let signin = match error {
        ModelError::Auth => signin_url(context.account),
        ModelError::RateLimit { .. }
        | ModelError::QuotaExhausted
        | ModelError::ContextLength
        | ModelError::ContentFilter
        | ModelError::ModelNotFound
        | ModelError::Timeout
        | ModelError::ServerError { .. }
        | ModelError::Overloaded => String::new(),
    };
    let mut headers = HeaderMap::new();
    let json = HeaderValue::from_static("application/json; charset=utf-8");
    headers.insert(CONTENT_TYPE, json);
    WireReply {
        status: StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
        headers,
        body: Bytes::from(format!("{{\"error\":{}{signin}}}", quote(&message))),
    }
}

/// Where whoever runs the server signs in, by its public key. Go escapes the `&`.
fn signin_url(account: u64) -> String {
    let figures = (0..4).map(|place| format!("{:010x}", irregular(account, place) >> 24));
    let key: String = figures.collect();
    format!(
        ",\"signin_url\":\"https://ollama.com/connect?name=ollama\\u0026key=\
         c3NoLWVkMjU1MTkgQUFBQUMzTnphQzFsWkRJMU5URTVBQUFB{key}\""
    )
}

/// The line that reports `error` in a stream; its status is told nowhere.
pub(super) fn event(error: &ModelError, context: &ErrorContext<'_>) -> String {
    let message = match error {
        ModelError::ServerError { .. } => {
            "an error was encountered while running the model".to_owned()
        }
        ModelError::RateLimit { .. }
        | ModelError::QuotaExhausted
        | ModelError::ContextLength
        | ModelError::ContentFilter
        | ModelError::Auth
        | ModelError::ModelNotFound
        | ModelError::Timeout
        | ModelError::Overloaded => words(error, context).1,
    };
    format!("{{\"error\":{}}}", quote(&message))
}

/// Status and message.
fn words(error: &ModelError, context: &ErrorContext<'_>) -> (u16, String) {
    let (status, message) = match error {
        ModelError::RateLimit { .. } => (
            429,
            "you've reached your hourly usage limit, please wait or upgrade to continue",
        ),
        ModelError::QuotaExhausted => (
            429,
            "you've reached your weekly usage limit, please wait or upgrade to continue",
        ),
        // Without `"truncate": false` the oldest messages are dropped silently instead.
        ModelError::ContextLength => (
            400,
            "the prompt is longer than the context length currently available to the model; \
             shorten the prompt, adjust the context length in settings, or use a model with a \
             longer context length",
        ),
        // There is no filter: a model that will not answer says so in words.
        ModelError::ContentFilter => (400, "the model refused the prompt"),
        ModelError::Auth => (401, "unauthorized"),
        ModelError::ModelNotFound => {
            let model = context.model.unwrap_or(SOME_MODEL);
            return (404, format!("model '{model}' not found"));
        }
        ModelError::Timeout => (
            500,
            "timed out waiting for llama-server to start: context deadline exceeded",
        ),
        ModelError::Overloaded | ModelError::ServerError { status: 503 } => (
            503,
            "server busy, please try again.  maximum pending requests exceeded",
        ),
        ModelError::ServerError { status: 500 } => {
            (500, "llama-server process has terminated: exit status 2")
        }
        ModelError::ServerError { status } => {
            return (*status, reason(*status));
        }
    };
    (status, message.to_owned())
}

/// What the server in front of a cloud model says, whose own words did not come.
fn reason(status: u16) -> String {
    let status_code = StatusCode::from_u16(status).ok();
    let reason = status_code.and_then(|status| status.canonical_reason());
    format!("{status} {}", reason.unwrap_or("Server Error"))
}
