//! Errors as `api.openai.com` reports them: status, headers, body.

use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER, SERVER};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use crate::dialect::{Credential, ErrorContext, WireReply};
use crate::figures::irregular;
use crate::json::quote;
use crate::model::{LimitFigures, LimitScope, ModelError};
use crate::waits::{whole_millis, whole_seconds};

/// Requests per minute that a made-up rate limit claims.
const REQUESTS_PER_MINUTE: u64 = 500;

/// Tokens per minute that a made-up rate limit claims.
const TOKENS_PER_MINUTE: u64 = 30_000;

/// The wait that a rate limit names in its message when it announces none in its headers.
const USUAL_WAIT: Duration = Duration::from_secs(1);

/// Tokens that the context of a made-up overflow holds when less was asked for.
const CONTEXT: u64 = 128_000;

/// Which endpoint reports an error: some of the words are its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Endpoint {
    /// `/chat/completions`.
    Chat,
    /// `/responses`.
    Responses,
}

/// The reply for `error`.
pub(crate) fn reply(
    error: &ModelError,
    context: &ErrorContext<'_>,
    endpoint: Endpoint,
) -> WireReply {
    match error {
        ModelError::RateLimit { .. } => rate_limit(error, context, endpoint),
        ModelError::ServerError { status } => server_error(*status, context, endpoint),
        ModelError::Timeout => server_error(504, context, endpoint),
        ModelError::Overloaded => {
            api_error(StatusCode::SERVICE_UNAVAILABLE, error, context, endpoint)
        }
        ModelError::QuotaExhausted => {
            api_error(StatusCode::TOO_MANY_REQUESTS, error, context, endpoint)
        }
        ModelError::ContextLength | ModelError::ContentFilter => {
            api_error(StatusCode::BAD_REQUEST, error, context, endpoint)
        }
        ModelError::Auth => api_error(StatusCode::UNAUTHORIZED, error, context, endpoint),
        ModelError::ModelNotFound => api_error(StatusCode::NOT_FOUND, error, context, endpoint),
    }
}

/// The object that says what `error` is, as streams hold it.
pub(crate) fn object(error: &ModelError, context: &ErrorContext<'_>, endpoint: Endpoint) -> String {
    let words = words(error, context, endpoint);
    let Words {
        message,
        kind,
        param,
        code,
    } = match (endpoint, error) {
        // Streams of `/responses` have words of their own for these.
        (Endpoint::Responses, ModelError::Overloaded | ModelError::ServerError { status: 503 }) => {
            Words {
                message: "Our servers are currently overloaded. Please try again later.".to_owned(),
                kind: "service_unavailable_error",
                param: None,
                code: Some("server_is_overloaded"),
            }
        }
        (Endpoint::Responses, ModelError::ServerError { .. } | ModelError::Timeout) => Words {
            code: Some("server_error"),
            ..words
        },
        _ => words,
    };
    format!(
        "{{\"message\":{},\"type\":{},\"param\":{},\"code\":{}}}",
        quote(&message),
        quote(kind),
        param.map_or_else(null, quote),
        code.map_or_else(null, quote),
    )
}

fn api_error(
    status: StatusCode,
    error: &ModelError,
    context: &ErrorContext<'_>,
    endpoint: Endpoint,
) -> WireReply {
    WireReply {
        status,
        headers: api_headers(context, status),
        body: envelope(&words(error, context, endpoint)),
    }
}

/// What an error object says.
struct Words {
    message: String,
    kind: &'static str,
    param: Option<&'static str>,
    code: Option<&'static str>,
}

/// The words of the API itself; gateways have others.
fn words(error: &ModelError, context: &ErrorContext<'_>, endpoint: Endpoint) -> Words {
    let model = context.model.unwrap_or("gpt-5-mini");
    let (message, kind, param, code) = match error {
        ModelError::RateLimit {
            scope,
            retry_after,
            figures,
        } => {
            let wait = retry_after.unwrap_or(USUAL_WAIT);
            let kind = match scope {
                LimitScope::Requests => "requests",
                LimitScope::Tokens => "tokens",
            };
            let message = limit_message(*scope, wait, *figures, context);
            (message, kind, None, Some("rate_limit_exceeded"))
        }
        ModelError::QuotaExhausted => (
            "You exceeded your current quota, please check your plan and billing details. For \
             more information on this error, read the docs: \
             https://platform.openai.com/docs/guides/error-codes/api-errors."
                .to_owned(),
            "insufficient_quota",
            None,
            Some("insufficient_quota"),
        ),
        ModelError::ContextLength if endpoint == Endpoint::Responses => (
            "Your input exceeds the context window of this model. Please adjust your input and \
             try again."
                .to_owned(),
            "invalid_request_error",
            Some("input"),
            Some("context_length_exceeded"),
        ),
        ModelError::ContextLength => (
            overflow_message(context),
            "invalid_request_error",
            Some("messages"),
            Some("context_length_exceeded"),
        ),
        ModelError::ContentFilter => (
            "Invalid prompt: your prompt was flagged as potentially violating our usage policy. \
             Please try again with a different prompt: \
             https://platform.openai.com/docs/guides/reasoning#advice-on-prompting"
                .to_owned(),
            "invalid_request_error",
            None,
            Some("invalid_prompt"),
        ),
        ModelError::Auth => (
            format!(
                "Incorrect API key provided{}. You can find your API key at \
                 https://platform.openai.com/account/api-keys.",
                named(context.credential),
            ),
            "invalid_request_error",
            None,
            Some("invalid_api_key"),
        ),
        ModelError::ModelNotFound if endpoint == Endpoint::Responses => (
            format!("The requested model '{model}' does not exist."),
            "invalid_request_error",
            Some("model"),
            Some("model_not_found"),
        ),
        ModelError::ModelNotFound => (
            format!("The model `{model}` does not exist or you do not have access to it."),
            "invalid_request_error",
            None,
            Some("model_not_found"),
        ),
        ModelError::Overloaded | ModelError::ServerError { status: 503 } => (
            "The server is currently overloaded with other requests. Sorry about that! You can \
             retry your request, or contact us through our help center at help.openai.com if the \
             error persists."
                .to_owned(),
            "server_error",
            None,
            None,
        ),
        ModelError::ServerError { .. } | ModelError::Timeout => (
            format!(
                "The server had an error while processing your request. Sorry about that! You can \
                 retry your request, or contact us through our help center at help.openai.com if \
                 you keep seeing this error. (Please include the request ID {} in your message.)",
                request_id(context.draw),
            ),
            "server_error",
            None,
            None,
        ),
    };
    Words {
        message,
        kind,
        param,
        code,
    }
}

/// The key as the API shows it: eight letters at its beginning and four at its end.
fn named(credential: Option<Credential<'_>>) -> String {
    const SHOWN: [usize; 2] = [8, 4];
    let Some(Credential::Bearer(key) | Credential::Key(key)) = credential else {
        return String::new();
    };
    let letters: Vec<char> = key.chars().collect();
    let [first, last] = SHOWN;
    let masked: String = match letters.len().checked_sub(first + last) {
        Some(hidden @ 1..) => {
            let stars = std::iter::repeat_n('*', hidden);
            let (begin, end) = (&letters[..first], &letters[letters.len() - last..]);
            begin
                .iter()
                .copied()
                .chain(stars)
                .chain(end.iter().copied())
                .collect()
        }
        Some(0) | None => "*".repeat(letters.len()),
    };
    format!(": {masked}")
}

fn limit_message(
    scope: LimitScope,
    wait: Duration,
    figures: Option<LimitFigures>,
    context: &ErrorContext<'_>,
) -> String {
    let subject = context
        .model
        .map(|model| format!(" for {model}"))
        .unwrap_or_default();
    let counted = match scope {
        LimitScope::Requests => "requests per min (RPM)",
        LimitScope::Tokens => "tokens per min (TPM)",
    };
    let figures = figures.unwrap_or_else(|| usual_figures(scope, context));
    let LimitFigures {
        per_minute,
        used,
        requested,
    } = figures;
    let organisation = organisation(context.account);
    if figures.is_too_large() {
        return format!(
            "Request too large{subject} in organization {organisation} on {counted}: Limit \
             {per_minute}, Requested {requested}. The input or output tokens must be reduced in \
             order to run successfully. Visit https://platform.openai.com/account/rate-limits to \
             learn more."
        );
    }
    format!(
        "Rate limit reached{subject} in organization {organisation} on {counted}: Limit \
         {per_minute}, Used {used}, Requested {requested}. Please try again in {}. Visit \
         https://platform.openai.com/account/rate-limits to learn more.",
        go_duration(wait),
    )
}

/// Those of an account whose limit is just used up.
fn usual_figures(scope: LimitScope, context: &ErrorContext<'_>) -> LimitFigures {
    let (per_minute, requested) = match scope {
        LimitScope::Requests => (REQUESTS_PER_MINUTE, 1),
        LimitScope::Tokens => {
            let requested = context.input_tokens.unwrap_or(1200);
            (TOKENS_PER_MINUTE, requested.clamp(1, TOKENS_PER_MINUTE))
        }
    };
    LimitFigures {
        per_minute,
        used: per_minute,
        requested,
    }
}

fn overflow_message(context: &ErrorContext<'_>) -> String {
    let tokens = context.input_tokens.unwrap_or_default();
    let tokens = tokens.max(CONTEXT + 1 + irregular(context.draw, 6) % 4000);
    format!(
        "This model's maximum context length is {CONTEXT} tokens. However, your messages resulted \
         in {tokens} tokens. Please reduce the length of the messages."
    )
}

fn rate_limit(error: &ModelError, context: &ErrorContext<'_>, endpoint: Endpoint) -> WireReply {
    let ModelError::RateLimit {
        scope,
        retry_after,
        figures,
    } = error
    else {
        return api_error(StatusCode::TOO_MANY_REQUESTS, error, context, endpoint);
    };
    let wait = retry_after.unwrap_or(USUAL_WAIT);
    let tokens_left = TOKENS_PER_MINUTE - irregular(context.draw, 3) % (TOKENS_PER_MINUTE / 2);
    let refilled = go_duration(refill(TOKENS_PER_MINUTE - tokens_left));
    let requests_left = REQUESTS_PER_MINUTE - 1 - irregular(context.draw, 7) % 20;
    let over = figures.unwrap_or_else(|| usual_figures(*scope, context));
    let (limits, [requests, tokens], [requests_reset, tokens_reset]) = match scope {
        LimitScope::Requests => (
            [over.per_minute, TOKENS_PER_MINUTE],
            [over.remaining(), tokens_left],
            [go_duration(wait), refilled],
        ),
        LimitScope::Tokens => {
            let per_request = Duration::from_millis(60_000 / REQUESTS_PER_MINUTE);
            let missing = u32::try_from(REQUESTS_PER_MINUTE - requests_left).unwrap_or(1);
            let refilled = go_duration(per_request * missing);
            (
                [REQUESTS_PER_MINUTE, over.per_minute],
                [requests_left, over.remaining()],
                [refilled, go_duration(wait)],
            )
        }
    };
    let mut headers = api_headers(context, StatusCode::TOO_MANY_REQUESTS);
    for (name, value) in [
        ("x-ratelimit-limit-requests", limits[0].to_string()),
        ("x-ratelimit-limit-tokens", limits[1].to_string()),
        ("x-ratelimit-remaining-requests", requests.to_string()),
        ("x-ratelimit-remaining-tokens", tokens.to_string()),
        ("x-ratelimit-reset-requests", requests_reset),
        ("x-ratelimit-reset-tokens", tokens_reset),
    ] {
        insert(&mut headers, HeaderName::from_static(name), value);
    }
    if let Some(wait) = retry_after {
        insert(&mut headers, RETRY_AFTER, whole_seconds(*wait).to_string());
        let name = HeaderName::from_static("retry-after-ms");
        insert(&mut headers, name, whole_millis(*wait).to_string());
    }
    WireReply {
        status: StatusCode::TOO_MANY_REQUESTS,
        headers,
        body: envelope(&words(error, context, endpoint)),
    }
}

fn server_error(status: u16, context: &ErrorContext<'_>, endpoint: Endpoint) -> WireReply {
    // Gateways in front of the API answer these themselves, in words of their own.
    match status {
        502 => {
            return edge_error(
                StatusCode::BAD_GATEWAY,
                "Bad gateway.",
                "cf_bad_gateway",
                context,
            );
        }
        504 => {
            let status = StatusCode::GATEWAY_TIMEOUT;
            return edge_error(status, "Gateway timeout.", "cf_gateway_timeout", context);
        }
        _ => {}
    }
    let error = ModelError::ServerError { status };
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    api_error(status, &error, context, endpoint)
}

/// An error of the gateway's: it never reached the API, so it has no request id.
fn edge_error(
    status: StatusCode,
    message: &str,
    kind: &str,
    context: &ErrorContext<'_>,
) -> WireReply {
    let body = format!(
        "{{\"error\":{{\"code\":{},\"message\":{},\"param\":null,\"type\":{}}}}}",
        status.as_u16(),
        quote(message),
        quote(kind)
    );
    WireReply {
        status,
        headers: edge_headers(context.draw),
        body: Bytes::from(body),
    }
}

/// OpenAI's error envelope, laid out as the API lays it out.
fn envelope(words: &Words) -> Bytes {
    Bytes::from(format!(
        "{{\n    \"error\": {{\n        \"message\": {},\n        \"type\": {},\n        \
         \"param\": {},\n        \"code\": {}\n    }}\n}}\n",
        quote(&words.message),
        quote(words.kind),
        words.param.map_or_else(null, quote),
        words.code.map_or_else(null, quote),
    ))
}

fn null() -> String {
    "null".to_owned()
}

/// Headers of every answer that the API itself gives. `x-should-retry` is not among them: OpenAI
/// leaves these errors to its clients' own rules.
fn api_headers(context: &ErrorContext<'_>, status: StatusCode) -> HeaderMap {
    let draw = context.draw;
    let mut headers = edge_headers(draw);
    // Whose key it is, nobody knows when it is wrong.
    if status != StatusCode::UNAUTHORIZED {
        let name = HeaderName::from_static("openai-organization");
        insert(&mut headers, name, organisation_slug(context.account));
    }
    for (name, value) in [
        (
            "openai-processing-ms",
            (8 + irregular(draw, 4) % 90).to_string(),
        ),
        ("openai-version", "2020-10-01".to_owned()),
        ("x-request-id", request_id(draw)),
        ("x-content-type-options", "nosniff".to_owned()),
    ] {
        insert(&mut headers, HeaderName::from_static(name), value);
    }
    headers
}

/// Headers of every answer that comes through OpenAI's gateway.
fn edge_headers(draw: u64) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(SERVER, HeaderValue::from_static("cloudflare"));
    let ray = format!("{:016x}-IAD", irregular(draw, 5));
    insert(&mut headers, HeaderName::from_static("cf-ray"), ray);
    headers
}

/// Adds a header whose value is printable ASCII.
fn insert(headers: &mut HeaderMap, name: HeaderName, value: String) {
    if let Ok(value) = HeaderValue::try_from(value) {
        headers.insert(name, value);
    }
}

/// `req_` and 32 hexadecimal digits.
fn request_id(draw: u64) -> String {
    format!("req_{:016x}{:016x}", irregular(draw, 0), irregular(draw, 1))
}

/// `org-` and 24 letters and digits.
fn organisation(account: u64) -> String {
    const LETTERS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    let letter = |place: u64| {
        let index = irregular(account, 16 + place) % 62;
        char::from(LETTERS[usize::try_from(index).unwrap_or_default()])
    };
    let mut id = String::from("org-");
    id.extend((0..24).map(letter));
    id
}

fn organisation_slug(account: u64) -> String {
    format!("user-{:016x}", irregular(account, 2))
}

/// How long it takes until that many tokens are free again.
fn refill(tokens: u64) -> Duration {
    Duration::from_millis(tokens * 60_000 / TOKENS_PER_MINUTE)
}

/// A duration as Go prints it, in milliseconds below a second: `12ms`, `1.5s`, `6m0s`, `1h0m0s`.
pub(super) fn go_duration(duration: Duration) -> String {
    let millis = whole_millis(duration);
    if millis == 0 {
        return "0s".to_owned();
    }
    if millis < 1000 {
        return format!("{millis}ms");
    }
    let (minutes, millis) = (millis / 60_000, millis % 60_000);
    let fraction = format!("{:03}", millis % 1000);
    let mut seconds = format!("{}.{}", millis / 1000, fraction.trim_end_matches('0'));
    if seconds.ends_with('.') {
        seconds.pop();
    }
    match (minutes / 60, minutes % 60) {
        (0, 0) => format!("{seconds}s"),
        (0, minutes) => format!("{minutes}m{seconds}s"),
        (hours, minutes) => format!("{hours}h{minutes}m{seconds}s"),
    }
}
