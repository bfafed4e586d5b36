//! Errors as `api.openai.com` reports them: status, headers, body.

use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER, SERVER};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use crate::dialect::{ErrorContext, WireReply};
use crate::json::quote;
use crate::model::ModelError;

/// Requests per minute that a made-up rate limit claims.
const REQUESTS_PER_MINUTE: u64 = 500;

/// Tokens per minute that a made-up rate limit claims.
const TOKENS_PER_MINUTE: u64 = 30_000;

/// The wait that a rate limit names in its message when it announces none in its headers.
const USUAL_WAIT: Duration = Duration::from_secs(1);

/// The reply for `error`.
pub(super) fn reply(error: &ModelError, context: &ErrorContext<'_>) -> WireReply {
    match error {
        ModelError::RateLimit { retry_after } => rate_limit(*retry_after, context),
        ModelError::ServerError { status } => server_error(*status, context),
        ModelError::Overloaded => overloaded(context),
    }
}

fn rate_limit(retry_after: Option<Duration>, context: &ErrorContext<'_>) -> WireReply {
    let wait = retry_after.unwrap_or(USUAL_WAIT);
    let subject = context
        .model
        .map(|model| format!(" for {model}"))
        .unwrap_or_default();
    let message = format!(
        "Rate limit reached{subject} in organization {} on requests per min (RPM): Limit {limit}, \
         Used {limit}, Requested 1. Please try again in {}. Visit \
         https://platform.openai.com/account/rate-limits to learn more.",
        organisation(context.draw),
        go_duration(wait),
        limit = REQUESTS_PER_MINUTE,
    );
    let mut headers = api_headers(context.draw);
    let tokens_left = TOKENS_PER_MINUTE - irregular(context.draw, 3) % (TOKENS_PER_MINUTE / 2);
    for (name, value) in [
        (
            "x-ratelimit-limit-requests",
            REQUESTS_PER_MINUTE.to_string(),
        ),
        ("x-ratelimit-limit-tokens", TOKENS_PER_MINUTE.to_string()),
        ("x-ratelimit-remaining-requests", "0".to_owned()),
        ("x-ratelimit-remaining-tokens", tokens_left.to_string()),
        ("x-ratelimit-reset-requests", go_duration(wait)),
        (
            "x-ratelimit-reset-tokens",
            go_duration(refill(TOKENS_PER_MINUTE - tokens_left)),
        ),
    ] {
        insert(&mut headers, HeaderName::from_static(name), value);
    }
    if let Some(wait) = retry_after {
        // Whole seconds never promise too little.
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        insert(&mut headers, RETRY_AFTER, seconds.to_string());
        let name = HeaderName::from_static("retry-after-ms");
        insert(&mut headers, name, wait.as_millis().to_string());
    }
    let body = envelope(&message, "requests", &quote("rate_limit_exceeded"));
    WireReply {
        status: StatusCode::TOO_MANY_REQUESTS,
        headers,
        body,
    }
}

fn server_error(status: u16, context: &ErrorContext<'_>) -> WireReply {
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
        503 => return overloaded(context),
        _ => {}
    }
    let message = format!(
        "The server had an error while processing your request. Sorry about that! You can retry \
         your request, or contact us through our help center at help.openai.com if you keep \
         seeing this error. (Please include the request ID {} in your message.)",
        request_id(context.draw),
    );
    WireReply {
        status: StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
        headers: api_headers(context.draw),
        body: envelope(&message, "server_error", "null"),
    }
}

fn overloaded(context: &ErrorContext<'_>) -> WireReply {
    let message = "The server is currently overloaded with other requests. Sorry about that! You \
                   can retry your request, or contact us through our help center at \
                   help.openai.com if the error persists.";
    WireReply {
        status: StatusCode::SERVICE_UNAVAILABLE,
        headers: api_headers(context.draw),
        body: envelope(message, "server_error", "null"),
    }
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
fn envelope(message: &str, kind: &str, code: &str) -> Bytes {
    Bytes::from(format!(
        "{{\n    \"error\": {{\n        \"message\": {},\n        \"type\": {},\n        \
         \"param\": null,\n        \"code\": {code}\n    }}\n}}\n",
        quote(message),
        quote(kind)
    ))
}

/// Headers of every answer that the API itself gives. `x-should-retry` is not among them: OpenAI
/// leaves these errors to its clients' own rules.
fn api_headers(draw: u64) -> HeaderMap {
    let mut headers = edge_headers(draw);
    for (name, value) in [
        ("openai-organization", organisation_slug(draw)),
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
fn organisation(draw: u64) -> String {
    const LETTERS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    let letter = |place: u64| {
        let index = irregular(draw, 16 + place) % 62;
        char::from(LETTERS[usize::try_from(index).unwrap_or_default()])
    };
    let mut id = String::from("org-");
    id.extend((0..24).map(letter));
    id
}

fn organisation_slug(draw: u64) -> String {
    format!("user-{:016x}", irregular(draw, 2))
}

/// How long it takes until that many tokens are free again.
fn refill(tokens: u64) -> Duration {
    Duration::from_millis(tokens * 60_000 / TOKENS_PER_MINUTE)
}

/// The `place`th irregular figure that follows from `draw` (`SplitMix64`).
fn irregular(draw: u64, place: u64) -> u64 {
    let mut z = draw.wrapping_add((place + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A duration as Go prints it, in milliseconds below a second: `12ms`, `1.5s`, `6m0s`, `1h0m0s`.
fn go_duration(duration: Duration) -> String {
    let millis = duration.as_millis();
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
