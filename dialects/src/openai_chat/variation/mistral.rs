//! Mistral.

use super::{Told, retry_after};
use crate::dialect::ErrorContext;
use crate::figures::uuid;
use crate::json::quote;
use crate::model::{LimitScope, ModelError};

/// Mistral's errors have no envelope.
pub(super) fn told(error: &ModelError, context: &ErrorContext<'_>) -> Told {
    const REFUSED: &str = "invalid_request_error";
    let (status, message, kind, param, code) = match error {
        ModelError::RateLimit { .. } => (
            429,
            "Rate limit exceeded",
            "rate_limited",
            None,
            Some("1300"),
        ),
        ModelError::Overloaded | ModelError::ServerError { status: 503 } => (
            503,
            "Service tier capacity exceeded for this model.",
            "service_tier_capacity_exceeded",
            None,
            None,
        ),
        ModelError::ServerError { status } => {
            (*status, "Internal server error", "server_error", None, None)
        }
        ModelError::Timeout => (504, "Gateway timeout", "server_error", None, None),
        ModelError::Auth => (401, "Unauthorized", "authentication_error", None, None),
        ModelError::QuotaExhausted => (402, "Payment required", REFUSED, None, None),
        ModelError::ContextLength => (
            400,
            "The prompt is too large for the model's maximum context length",
            REFUSED,
            Some("messages"),
            None,
        ),
        ModelError::ContentFilter => (403, "The prompt was moderated", REFUSED, None, None),
        ModelError::ModelNotFound => (
            404,
            "Unknown model",
            REFUSED,
            Some("model"),
            Some("unknown_model"),
        ),
    };
    let or_null = |value: Option<&str>| value.map_or_else(|| "null".to_owned(), quote);
    let body = format!(
        "{{\"object\":\"error\",\"message\":{},\"type\":{},\"param\":{},\"code\":{},\
         \"raw_status_code\":{status}}}",
        quote(message),
        quote(kind),
        or_null(param),
        or_null(code),
    );
    let mut headers = vec![("mistral-correlation-id", uuid(context.draw, 0))];
    if let ModelError::RateLimit { scope, figures, .. } = error {
        let requests = match scope {
            LimitScope::Requests => figures.map(|over| (over.per_minute, over.remaining())),
            LimitScope::Tokens => None,
        };
        let (most, left) = requests.unwrap_or((60, 0));
        headers.extend([
            ("x-ratelimit-limit-req-minute", most.to_string()),
            ("x-ratelimit-remaining-req-minute", left.to_string()),
        ]);
    }
    headers.extend(retry_after(error));
    Told {
        status,
        body,
        headers,
    }
}
