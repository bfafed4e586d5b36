//! Errors as `api.anthropic.com` reports them: status, headers, body.

use std::time::Duration;

use bytes::Bytes;
use http::header::{
    CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, SERVER, STRICT_TRANSPORT_SECURITY, VIA,
};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use crate::dialect::{Credential, ErrorContext, WireReply};
use crate::figures::{irregular, uuid};
use crate::json::quote;
use crate::model::{LimitFigures, LimitScope, ModelError};
use crate::waits::whole_seconds;

/// Requests per minute that a made-up rate limit claims: those of the first usage tier.
const REQUESTS_PER_MINUTE: u64 = 50;

/// Tokens in per minute that a made-up rate limit claims.
const INPUT_PER_MINUTE: u64 = 30_000;

/// Tokens out per minute that a made-up rate limit claims.
const OUTPUT_PER_MINUTE: u64 = 8_000;

/// The wait until a limit is free again when none is announced.
const USUAL_WAIT: Duration = Duration::from_secs(1);

/// Tokens that the context of a made-up overflow holds.
const CONTEXT: u64 = 200_000;

/// The status that Anthropic gave its own meaning: overloaded.
const OVERLOADED: u16 = 529;

/// The reply for `error`.
pub(super) fn reply(error: &ModelError, context: &ErrorContext<'_>) -> WireReply {
    let status = match error {
        ModelError::ServerError { status: 502 } => return bad_gateway(context.draw),
        ModelError::RateLimit { .. } => 429,
        ModelError::QuotaExhausted | ModelError::ContextLength | ModelError::ContentFilter => 400,
        ModelError::Auth => 401,
        ModelError::ModelNotFound => 404,
        ModelError::Timeout => 504,
        ModelError::ServerError { status } => *status,
        ModelError::Overloaded => OVERLOADED,
    };
    let mut headers = api_headers(context, status);
    if let ModelError::RateLimit {
        scope,
        retry_after,
        figures,
    } = error
    {
        limit_headers(&mut headers, *scope, *retry_after, *figures, context);
    }
    let (kind, message) = words(error, context);
    let body = format!(
        "{{\"type\":\"error\",\"error\":{{\"type\":{},\"message\":{}}},\"request_id\":{}}}",
        quote(kind),
        quote(&message),
        quote(&request_id(context.draw)),
    );
    WireReply {
        status: StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
        headers,
        body: Bytes::from(body),
    }
}

/// The data of the event that reports `error` in a stream.
pub(super) fn event(error: &ModelError, context: &ErrorContext<'_>) -> String {
    let (kind, message) = words(error, context);
    format!(
        "{{\"type\":\"error\",\"error\":{{\"details\":null,\"type\":{},\"message\":{}}},\
         \"request_id\":{}}}",
        quote(kind),
        quote(&message),
        quote(&request_id(context.draw)),
    )
}

/// An error's type and message.
fn words(error: &ModelError, context: &ErrorContext<'_>) -> (&'static str, String) {
    match error {
        ModelError::RateLimit { scope, figures, .. } => {
            ("rate_limit_error", limit_message(*scope, *figures, context))
        }
        ModelError::QuotaExhausted => (
            "invalid_request_error",
            "Your credit balance is too low to access the Anthropic API. Please go to Plans & \
             Billing to upgrade or purchase credits."
                .to_owned(),
        ),
        ModelError::ContextLength => {
            let tokens = context.input_tokens.unwrap_or_default();
            let tokens = tokens.max(CONTEXT + 1 + irregular(context.draw, 6) % 9000);
            let message = format!("prompt is too long: {tokens} tokens > {CONTEXT} maximum");
            ("invalid_request_error", message)
        }
        ModelError::ContentFilter => (
            "invalid_request_error",
            "Output blocked by content filtering policy".to_owned(),
        ),
        ModelError::Auth => {
            let message = match context.credential {
                Some(Credential::Bearer(_)) => "Invalid bearer token",
                Some(Credential::Key(_)) | None => "invalid x-api-key",
            };
            ("authentication_error", message.to_owned())
        }
        ModelError::ModelNotFound => ("not_found_error", format!("model: {}", model(context))),
        ModelError::Timeout | ModelError::ServerError { status: 504 } => {
            ("timeout_error", "Request timed out".to_owned())
        }
        ModelError::Overloaded | ModelError::ServerError { status: OVERLOADED } => {
            ("overloaded_error", "Overloaded".to_owned())
        }
        ModelError::ServerError { .. } => ("api_error", "Internal server error".to_owned()),
    }
}

fn model<'a>(context: &ErrorContext<'a>) -> &'a str {
    context.model.unwrap_or("claude-sonnet-4-6")
}

fn limit_message(
    scope: LimitScope,
    figures: Option<LimitFigures>,
    context: &ErrorContext<'_>,
) -> String {
    let most = |usual| thousands(figures.map_or(usual, |figures| figures.per_minute));
    let limit = match scope {
        LimitScope::Requests => format!("{} requests", most(REQUESTS_PER_MINUTE)),
        LimitScope::Tokens => format!("{} input tokens", most(INPUT_PER_MINUTE)),
    };
    format!(
        "This request would exceed your organization's rate limit of {limit} per minute (org: {}, \
         model: {}). For details, refer to: https://docs.claude.com/en/api/rate-limits. You can \
         see the response headers for current usage. Please reduce the prompt length or the \
         maximum tokens requested, or try again later. You may also contact sales at \
         https://claude.com/contact-sales to discuss your options for a rate limit increase.",
        uuid(context.account, 0),
        model(context),
    )
}

/// `30,000`.
fn thousands(number: u64) -> String {
    match number / 1000 {
        0 => number.to_string(),
        more => format!("{},{:03}", thousands(more), number % 1000),
    }
}

/// The limits, what is left of them and when they are whole again.
fn limit_headers(
    headers: &mut HeaderMap,
    scope: LimitScope,
    retry_after: Option<Duration>,
    figures: Option<LimitFigures>,
    context: &ErrorContext<'_>,
) {
    // What is left of tokens is rounded to thousands.
    let left = |limit: u64, place| limit - irregular(context.draw, place) % (limit / 2000) * 1000;
    let output = left(OUTPUT_PER_MINUTE, 3);
    let usual = (REQUESTS_PER_MINUTE, INPUT_PER_MINUTE);
    let over = figures.map(|figures| (figures.per_minute, figures.remaining()));
    let ((requests_limit, requests), (input_limit, input)) = match scope {
        LimitScope::Requests => (over.unwrap_or((usual.0, 0)), (usual.1, left(usual.1, 4))),
        LimitScope::Tokens => ((usual.0, usual.0 - 1), over.unwrap_or((usual.1, 0))),
    };
    let wait = retry_after.unwrap_or(USUAL_WAIT);
    for (family, limit, left) in [
        ("requests", requests_limit, requests),
        ("input-tokens", input_limit, input),
        ("output-tokens", OUTPUT_PER_MINUTE, output),
        ("tokens", input_limit + OUTPUT_PER_MINUTE, input + output),
    ] {
        let mut put = |what: &str, value: String| {
            let name = format!("anthropic-ratelimit-{family}-{what}");
            if let Ok(name) = HeaderName::try_from(name) {
                insert(headers, name, value);
            }
        };
        put("limit", limit.to_string());
        put("remaining", left.to_string());
        // Half of it is free again in half a minute; none of it, when the wait is over.
        let full_in = if left == 0 {
            wait
        } else {
            Duration::from_secs((limit - left) * 60 / limit.max(1))
        };
        if let Some(now) = context.now {
            put("reset", date(now.saturating_add(full_in)));
        }
    }
    if let Some(wait) = retry_after {
        insert(headers, RETRY_AFTER, whole_seconds(wait).to_string());
    }
}

/// Headers of every answer that the API itself gives to an error.
fn api_headers(context: &ErrorContext<'_>, status: u16) -> HeaderMap {
    let draw = context.draw;
    let mut headers = edge_headers(draw);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let retries = status == 429 || status >= 500;
    for (name, value) in [
        (CACHE_CONTROL, "no-store, no-cache".to_owned()),
        (HeaderName::from_static("request-id"), request_id(draw)),
        (
            STRICT_TRANSPORT_SECURITY,
            "max-age=31536000; includeSubDomains; preload".to_owned(),
        ),
        (VIA, "1.1 google".to_owned()),
        (HeaderName::from_static("x-robots-tag"), "none".to_owned()),
        (
            HeaderName::from_static("x-envoy-upstream-service-time"),
            (8 + irregular(draw, 2) % 90).to_string(),
        ),
    ] {
        insert(&mut headers, name, value);
    }
    if retries {
        let name = HeaderName::from_static("x-should-retry");
        headers.insert(name, HeaderValue::from_static("true"));
    }
    // Whose key it is, nobody knows when it is wrong.
    if status != 401 {
        let name = HeaderName::from_static("anthropic-organization-id");
        insert(&mut headers, name, uuid(context.account, 0));
    }
    headers
}

/// Headers of every answer that comes through the gateway in front.
fn edge_headers(draw: u64) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(SERVER, HeaderValue::from_static("cloudflare"));
    let name = HeaderName::from_static("cf-cache-status");
    headers.insert(name, HeaderValue::from_static("DYNAMIC"));
    let ray = format!("{:016x}-IAD", irregular(draw, 5));
    insert(&mut headers, HeaderName::from_static("cf-ray"), ray);
    headers
}

/// The gateway's own page: it never reached the API, so it has no request id.
fn bad_gateway(draw: u64) -> WireReply {
    let mut headers = edge_headers(draw);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html"));
    WireReply {
        status: StatusCode::BAD_GATEWAY,
        headers,
        body: Bytes::from_static(
            b"<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n<center><h1>502 \
              Bad Gateway</h1></center>\r\n<hr><center>cloudflare</center>\r\n</body>\r\n</html>\r\n",
        ),
    }
}

/// Adds a header whose value is printable ASCII.
fn insert(headers: &mut HeaderMap, name: HeaderName, value: String) {
    if let Ok(value) = HeaderValue::try_from(value) {
        headers.insert(name, value);
    }
}

/// `req_011C` and 20 digits of base 58, as Bitcoin writes them.
fn request_id(draw: u64) -> String {
    const DIGITS: &[u8; 58] = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
    let digit = |place: u64| {
        let index = irregular(draw, 16 + place) % 58;
        char::from(DIGITS[usize::try_from(index).unwrap_or_default()])
    };
    let mut id = String::from("req_011C");
    id.extend((0..20).map(digit));
    id
}

/// A time since 1970 as RFC 3339 writes it, in whole seconds: `2026-11-22T04:00:00Z`.
fn date(since_1970: Duration) -> String {
    let seconds = since_1970.as_secs();
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    // Days since 1 March of year 0, in eras of 400 years: leap days come last in each year.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year_of_era = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month + 2) / 5 + 1;
    let (month, later) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    format!(
        "{:04}-{month:02}-{day_of_month:02}T{:02}:{:02}:{:02}Z",
        era * 400 + year_of_era + later,
        of_day / 3600,
        of_day / 60 % 60,
        of_day % 60
    )
}
