//! Errors as Bedrock Runtime reports them: status, headers, body, and exceptions in a stream.

use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use super::{Operation, call};
use crate::dialect::{ErrorContext, WireReply};
use crate::figures::uuid;
use crate::json::quote;
use crate::model::{LimitScope, ModelError};
use crate::stream::Made;
use crate::waits::whole_millis;

/// What stands behind the name of an error of Bedrock's own in `x-amzn-ErrorType`.
const NAMESPACE: &str = "http://internal.amazon.com/coral/com.amazon.bedrock/";

/// An error by its name.
struct Words {
    status: u16,
    name: &'static str,
    message: &'static str,
}

/// How Bedrock names an error. Statuses are those of the service model.
fn words(error: &ModelError) -> Words {
    let (status, name, message) = match error {
        ModelError::RateLimit {
            scope: LimitScope::Requests,
            ..
        } => (
            429,
            "ThrottlingException",
            "Too many requests, please wait before trying again.",
        ),
        ModelError::RateLimit {
            scope: LimitScope::Tokens,
            ..
        } => (
            429,
            "ThrottlingException",
            "Too many tokens, please wait before trying again.",
        ),
        ModelError::QuotaExhausted => (
            429,
            "ThrottlingException",
            "Too many tokens per day, please wait before trying again.",
        ),
        ModelError::ContextLength => (
            400,
            "ValidationException",
            "The model returned the following errors: Input is too long for requested model.",
        ),
        ModelError::ContentFilter => (
            400,
            "ValidationException",
            "The model returned the following errors: Output blocked by content filtering policy",
        ),
        ModelError::Auth => (
            403,
            "UnrecognizedClientException",
            "The security token included in the request is invalid.",
        ),
        ModelError::ModelNotFound => (
            404,
            "ResourceNotFoundException",
            "Could not resolve the foundation model from the provided model identifier.",
        ),
        ModelError::Timeout => (
            408,
            "ModelTimeoutException",
            "Model has timed out in processing the request. Try your request again.",
        ),
        ModelError::Overloaded | ModelError::ServerError { status: 503 } => (
            503,
            "ServiceUnavailableException",
            "Bedrock is unable to process your request.",
        ),
        ModelError::ServerError { status } => (
            *status,
            "InternalServerException",
            "The system encountered an unexpected error during processing. Try your request again.",
        ),
    };
    Words {
        status,
        name,
        message,
    }
}

/// The reply for `error`.
pub(super) fn reply(error: &ModelError, context: &ErrorContext<'_>) -> WireReply {
    let Words {
        status,
        name,
        message,
    } = words(error);
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    insert(&mut headers, "x-amzn-requestid", uuid(context.draw, 0));
    // Whoever checks signatures stands before Bedrock and names no space.
    let kind = match error {
        ModelError::Auth => name.to_owned(),
        _ => format!("{name}:{NAMESPACE}"),
    };
    insert(&mut headers, "x-amzn-errortype", kind);
    if let ModelError::RateLimit {
        retry_after: Some(wait),
        ..
    } = error
    {
        insert(&mut headers, "x-amz-retry-after", millis(*wait));
    }
    WireReply {
        status: StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
        headers,
        body: body(message),
    }
}

/// The exception that reports `error` in a stream; `None` for what is only reported before one.
pub(super) fn event(error: &ModelError, context: &ErrorContext<'_>) -> Option<Made> {
    let Words { name, message, .. } = words(error);
    let invokes = call(context.target).is_some_and(|(_, it)| it == Operation::InvokeStream);
    let (name, data) = match name {
        "ThrottlingException" => ("throttlingException", body(message)),
        "ValidationException" => ("validationException", body(message)),
        "ServiceUnavailableException" => ("serviceUnavailableException", body(message)),
        "InternalServerException" => ("internalServerException", body(message)),
        "ModelTimeoutException" if invokes => ("modelTimeoutException", body(message)),
        // `ConverseStream` has no exception for a model that took too long.
        "ModelTimeoutException" => (
            "modelStreamErrorException",
            Bytes::from(format!(
                "{{\"message\":{message},\"originalMessage\":{message},\"originalStatusCode\":408}}",
                message = quote(message)
            )),
        ),
        _ => return None,
    };
    Some(Made::exception(name, data))
}

fn body(message: &str) -> Bytes {
    Bytes::from(format!("{{\"message\":{}}}", quote(message)))
}

/// The wait in the one form that AWS SDKs read.
fn millis(wait: Duration) -> String {
    whole_millis(wait).to_string()
}

/// Adds a header whose value is printable ASCII.
fn insert(headers: &mut HeaderMap, name: &'static str, value: String) {
    if let Ok(value) = HeaderValue::try_from(value) {
        headers.insert(HeaderName::from_static(name), value);
    }
}
