//! Groq.

use std::time::Duration;

use super::{Told, retry_after};
use crate::dialect::ErrorContext;
use crate::figures::irregular;
use crate::json::quote;
use crate::model::{LimitFigures, LimitScope, ModelError};
use crate::openai_chat::error::go_duration;
use crate::waits::whole_seconds;

/// Groq counts requests by the day …
const REQUESTS: u64 = 14_400;
/// … and tokens by the minute.
const TOKENS: u64 = 6_000;
/// When some of a day's tokens are free again, as it says once they are used up.
const QUOTA: Duration = Duration::from_mins(10);

pub(super) fn told(error: &ModelError, context: &ErrorContext<'_>) -> Told {
    let (status, message, kind, code) = words(error, context);
    let (message, kind) = (quote(&message), quote(kind));
    let code = code.map_or_else(String::new, |code| format!(",\"code\":{}", quote(code)));
    let mut headers = vec![("x-request-id", ulid("req_", context.draw, 0))];
    headers.extend(limit_headers(error));
    headers.extend(retry_after(error));
    if *error == ModelError::QuotaExhausted {
        headers.push(("retry-after", whole_seconds(QUOTA).to_string()));
    }
    Told {
        status,
        body: format!("{{\"error\":{{\"message\":{message},\"type\":{kind}{code}}}}}\n"),
        headers,
    }
}

fn model_of<'a>(context: &ErrorContext<'a>) -> &'a str {
    context.model.unwrap_or("llama-3.3-70b-versatile")
}

/// Status, message, type and code.
fn words(
    error: &ModelError,
    context: &ErrorContext<'_>,
) -> (u16, String, &'static str, Option<&'static str>) {
    let model = model_of(context);
    match error {
        ModelError::RateLimit {
            scope,
            retry_after,
            figures,
        } => {
            let wait = retry_after.unwrap_or(Duration::from_secs(1));
            let (kind, counted, most) = match (scope, figures) {
                (LimitScope::Requests, None) => ("requests", "requests per day (RPD)", REQUESTS),
                (LimitScope::Requests, Some(_)) => {
                    ("requests", "requests per minute (RPM)", REQUESTS)
                }
                (LimitScope::Tokens, _) => ("tokens", "tokens per minute (TPM)", TOKENS),
            };
            let figures = figures.unwrap_or(used_up(most));
            let message = limit(counted, figures, wait, context);
            (429, message, kind, Some("rate_limit_exceeded"))
        }
        ModelError::QuotaExhausted => (
            429,
            limit("tokens per day (TPD)", used_up(100_000), QUOTA, context),
            "tokens",
            Some("rate_limit_exceeded"),
        ),
        ModelError::ContextLength => (
            400,
            "Please reduce the length of the messages or completion.".to_owned(),
            "invalid_request_error",
            Some("context_length_exceeded"),
        ),
        ModelError::Auth => (
            401,
            "Invalid API Key".to_owned(),
            "invalid_request_error",
            Some("invalid_api_key"),
        ),
        ModelError::ModelNotFound => (
            404,
            format!("The model `{model}` does not exist or you do not have access to it."),
            "invalid_request_error",
            Some("model_not_found"),
        ),
        ModelError::Overloaded | ModelError::ServerError { status: 503 } => (
            503,
            format!(
                "{model} is currently over capacity. Please try again and back off exponentially. \
                 Visit https://groqstatus.com to see if there is an active incident."
            ),
            "internal_server_error",
            None,
        ),
        ModelError::ServerError { status } => (
            *status,
            "Internal Server Error".to_owned(),
            "internal_server_error",
            None,
        ),
        // Groq names no filter and no time-out: what comes closest.
        ModelError::ContentFilter => (
            400,
            "Failed to validate the request.".to_owned(),
            "invalid_request_error",
            None,
        ),
        ModelError::Timeout => (
            504,
            "Gateway Timeout".to_owned(),
            "internal_server_error",
            None,
        ),
    }
}

/// The limit of a usual account, just used up.
fn used_up(per_minute: u64) -> LimitFigures {
    LimitFigures {
        per_minute,
        used: per_minute,
        requested: 1,
    }
}

fn limit(
    counted: &str,
    figures: LimitFigures,
    wait: Duration,
    context: &ErrorContext<'_>,
) -> String {
    let LimitFigures {
        per_minute,
        used,
        requested,
    } = figures;
    let (what, figures) = if figures.is_too_large() {
        let advice = "please reduce your message size and try again";
        (
            "Request too large",
            format!("Limit {per_minute}, Requested {requested}, {advice}."),
        )
    } else {
        let again = go_duration(wait);
        (
            "Rate limit reached",
            format!(
                "Limit {per_minute}, Used {used}, Requested {requested}. Please try again in {again}."
            ),
        )
    };
    format!(
        "{what} for model `{}` in organization `{}` service tier `on_demand` on {counted}: \
         {figures} Need more tokens? Upgrade to Dev Tier today at \
         https://console.groq.com/settings/billing",
        model_of(context),
        ulid("org_", context.account, 4),
    )
}

fn limit_headers(error: &ModelError) -> Vec<(&'static str, String)> {
    if let ModelError::RateLimit {
        scope,
        retry_after,
        figures,
    } = error
    {
        let reset = go_duration(retry_after.unwrap_or(Duration::from_secs(1)));
        let left = figures.map_or(0, LimitFigures::remaining);
        let most = |usual| figures.map_or(usual, |figures| figures.per_minute);
        let (limits, [requests, tokens], [requests_reset, tokens_reset]) = match scope {
            LimitScope::Requests => (
                [most(REQUESTS), TOKENS],
                [left, TOKENS - 120],
                [reset, "1.2s".to_owned()],
            ),
            LimitScope::Tokens => (
                [REQUESTS, most(TOKENS)],
                [REQUESTS - 30, left],
                ["3m0s".to_owned(), reset],
            ),
        };
        return vec![
            ("x-ratelimit-limit-requests", limits[0].to_string()),
            ("x-ratelimit-limit-tokens", limits[1].to_string()),
            ("x-ratelimit-remaining-requests", requests.to_string()),
            ("x-ratelimit-remaining-tokens", tokens.to_string()),
            ("x-ratelimit-reset-requests", requests_reset),
            ("x-ratelimit-reset-tokens", tokens_reset),
        ];
    }
    Vec::new()
}

/// A sortable id: `01` and 24 digits of Crockford's base 32, in lower case.
fn ulid(prefix: &str, draw: u64, place: u64) -> String {
    const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
    let mut id = format!("{prefix}01");
    id.extend((0..24).map(|digit| {
        let word = irregular(draw, place + digit / 12);
        let at = (word >> (5 * (digit % 12))) & 31;
        char::from(DIGITS[usize::try_from(at).unwrap_or_default()])
    }));
    id
}
