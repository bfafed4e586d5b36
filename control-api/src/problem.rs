//! Errors of the API: RFC 9457 problem details.

use std::time::Duration;

use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use squall_documents::DocumentError;
use squall_proxy::problem;

use crate::credential::random_hex;
use crate::store::{StoreError, StoreFailure};

/// An error of the API, as `application/problem+json`.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{detail}")]
pub struct ApiProblem {
    status: StatusCode,
    /// Last part of its `type`.
    slug: &'static str,
    title: &'static str,
    detail: String,
    errors: Vec<ProblemDetail>,
    /// Further members.
    more: Option<Box<Value>>,
    /// Seconds until a retry makes sense.
    retry_after: Option<u64>,
}

/// One error in a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "ProblemDetail")]
pub struct ProblemDetail {
    /// The error, and how to fix it.
    pub detail: String,
    /// JSON pointer (RFC 6901) into the document that was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
    /// Name of the query parameter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameter: Option<String>,
    /// Name of the header.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<String>,
}

impl ProblemDetail {
    /// An error in a document that was sent, with its place.
    pub(crate) fn located(error: &DocumentError) -> Self {
        let place = error.position;
        let detail = if place.line == 0 {
            error.message.clone()
        } else {
            format!(
                "line {}, column {}: {}",
                place.line, place.column, error.message
            )
        };
        Self::at(error.pointer.clone(), detail)
    }

    /// The same with its pointer only: the text is another than the client's.
    pub(crate) fn pointed(error: &DocumentError) -> Self {
        Self::at(error.pointer.clone(), error.message.clone())
    }

    /// An error at `pointer` in the document.
    pub fn at(pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        Self {
            detail: detail.into(),
            pointer: Some(pointer.into()),
            parameter: None,
            header: None,
        }
    }

    /// An error in a query parameter.
    pub fn parameter(name: impl Into<String>, detail: impl Into<String>) -> Self {
        Self {
            detail: detail.into(),
            pointer: None,
            parameter: Some(name.into()),
            header: None,
        }
    }

    /// An error in a header.
    pub(crate) fn header(name: &HeaderName, detail: impl Into<String>) -> Self {
        Self {
            detail: detail.into(),
            pointer: None,
            parameter: None,
            header: Some(name.to_string()),
        }
    }
}

impl ApiProblem {
    /// A problem with this `slug`, the last part of its `type`.
    fn new(
        status: StatusCode,
        slug: &'static str,
        title: &'static str,
        detail: impl Into<String>,
    ) -> Self {
        Self {
            status,
            slug,
            title,
            detail: detail.into(),
            errors: Vec::new(),
            more: None,
            retry_after: None,
        }
    }

    /// 422: it can be parsed but is invalid; `errors` has the places.
    pub(crate) fn invalid(errors: Vec<ProblemDetail>) -> Self {
        let detail = match errors.as_slice() {
            [only] => only.detail.clone(),
            several => format!("{} things are wrong with the document", several.len()),
        };
        let status = StatusCode::UNPROCESSABLE_ENTITY;
        Self::new(status, "invalid", "Invalid document", detail).with_errors(errors)
    }

    /// 422: it is invalid at `pointer`.
    pub(crate) fn invalid_at(pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::invalid(vec![ProblemDetail::at(pointer, detail)])
    }

    /// 422: an invalid profile. Errors without a pointer mean that the text could not be parsed.
    pub(crate) fn profile(errors: &[DocumentError]) -> Self {
        Self::invalid(errors.iter().map(ProblemDetail::located).collect())
    }

    /// 429: too many requests; `wait` is the time until a retry.
    pub(crate) fn too_many(detail: impl Into<String>, wait: Duration) -> Self {
        let whole = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        let status = StatusCode::TOO_MANY_REQUESTS;
        Self {
            retry_after: Some(whole.max(1)),
            ..Self::new(status, "rate-limited", "Too many requests", detail)
        }
    }

    /// Its status.
    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    /// The problem with these `errors`.
    #[must_use]
    pub(crate) fn with_errors(self, errors: Vec<ProblemDetail>) -> Self {
        Self { errors, ..self }
    }

    /// The problem with the members of an object added to its own.
    #[must_use]
    pub(crate) fn with_more(self, more: Value) -> Self {
        Self {
            more: Some(Box::new(more)),
            ..self
        }
    }

    fn document(&self) -> Value {
        let mut document = problem::document(self.status, self.slug, self.title, &self.detail);
        if !self.errors.is_empty() {
            document["errors"] = json!(self.errors);
        }
        if let Some(Value::Object(more)) = self.more.as_deref() {
            for (name, value) in more {
                document[name] = value.clone();
            }
        }
        document
    }
}

/// Constructors of problems: status, last part of the `type`, and title.
macro_rules! problems {
    ($($(#[$about:meta])* $name:ident: $status:ident, $slug:literal, $title:literal;)*) => {
        impl ApiProblem { $(
            $(#[$about])*
            pub(crate) fn $name(detail: impl Into<String>) -> Self {
                Self::new(StatusCode::$status, $slug, $title, detail)
            }
        )* }
    };
}

problems! {
    /// The request cannot be read.
    malformed: BAD_REQUEST, "malformed", "Malformed request";
    /// The token is missing or unknown.
    unauthenticated: UNAUTHORIZED, "unauthenticated", "Token required";
    /// Not allowed from this origin, or with this token.
    forbidden: FORBIDDEN, "forbidden", "Not allowed";
    /// No such object.
    not_found: NOT_FOUND, "not-found", "Not found";
    /// The path exists, the method does not.
    method_not_allowed: METHOD_NOT_ALLOWED, "method-not-allowed", "Method not allowed";
    /// The current state does not allow it.
    conflict: CONFLICT, "conflict", "Conflict";
    /// It is not the version that the request names.
    precondition_failed: PRECONDITION_FAILED, "precondition-failed", "It has changed";
    /// The document is longer than its limit.
    too_large: PAYLOAD_TOO_LARGE, "too-large", "Document too large";
    /// The content type is not supported here.
    unsupported_type: UNSUPPORTED_MEDIA_TYPE, "unsupported-type", "Unsupported content type";
    /// A failure of Squall.
    internal: INTERNAL_SERVER_ERROR, "internal", "Squall failed";
    /// Temporarily not available.
    not_ready: SERVICE_UNAVAILABLE, "not-ready", "Not ready";
}

/// 503 when the store cannot be reached, 500 when it rejects the query. The details go to the log only: a client
/// cannot use them and need not know where the store is.
impl From<StoreError> for ApiProblem {
    fn from(error: StoreError) -> Self {
        if error.kind == StoreFailure::Rejected {
            // Id that links the response to the log line; empty without a source of random bits.
            let id = random_hex::<8>().unwrap_or_default();
            tracing::error!(id, "{error}");
            return Self::internal(format!(
                "the store rejected a query of Squall; the daemon's log has the reason, with the id {id}"
            ));
        }
        let status = StatusCode::SERVICE_UNAVAILABLE;
        let detail = error.to_string();
        Self::new(status, "store-unavailable", "Store unavailable", detail)
    }
}

impl IntoResponse for ApiProblem {
    fn into_response(self) -> Response {
        let body = self.document().to_string();
        let content_type = [(CONTENT_TYPE, problem::CONTENT_TYPE)];
        let mut response = (self.status, content_type, body).into_response();
        if self.status == StatusCode::UNAUTHORIZED {
            // Required by RFC 9110 §15.5.2.
            let scheme = HeaderValue::from_static("Bearer");
            response.headers_mut().insert(WWW_AUTHENTICATE, scheme);
        }
        if self.status == StatusCode::UNSUPPORTED_MEDIA_TYPE {
            // The supported types (RFC 9110 §15.5.16).
            let read = HeaderValue::from_static("application/json, application/yaml");
            response.headers_mut().insert(ACCEPT, read);
        }
        if let Some(seconds) = self.retry_after {
            // RFC 6585 §4.
            let seconds = HeaderValue::from(seconds);
            response.headers_mut().insert(RETRY_AFTER, seconds);
        }
        response
    }
}
