//! Why the API refused: RFC 9457 problem details.

use std::time::Duration;

use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use squall_profiles::error::ProfileError;
use squall_proxy::problem;

use crate::credential::random_hex;
use crate::store::StoreError;

/// Why the API refused, as `application/problem+json`.
#[derive(Debug, Clone)]
pub struct Problem {
    status: StatusCode,
    /// Last part of its `type`.
    slug: &'static str,
    title: &'static str,
    detail: String,
    errors: Vec<Detail>,
    /// Further members.
    more: Option<Box<Value>>,
    /// Seconds until it is worth another try.
    retry_after: Option<u64>,
}

/// One thing wrong with what was sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "ProblemDetail")]
pub struct Detail {
    /// What is wrong, and what to write instead.
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

/// A problem as it is written down; some have further members.
#[derive(JsonSchema)]
#[schemars(rename = "Problem")]
#[expect(dead_code, reason = "says what `Problem::document` writes")]
pub(crate) struct ProblemDocument {
    /// `urn:squall:problem:` and one word.
    #[schemars(rename = "type", regex(pattern = "^urn:squall:problem:[a-z-]+$"))]
    kind: String,
    /// What kind of problem it is.
    title: String,
    /// The answer's status.
    #[schemars(range(min = 400, max = 599))]
    status: u16,
    /// What is wrong here, and what to do instead.
    detail: String,
    /// Each thing that is wrong.
    #[schemars(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<Detail>,
}

/// A status that problems have.
pub(crate) struct Status {
    pub(crate) code: u16,
    /// When.
    pub(crate) when: &'static str,
    /// A header that comes with it, and what it says.
    pub(crate) header: Option<(&'static str, &'static str)>,
}

/// Every status that a problem has, for the API's description.
pub(crate) const STATUSES: [Status; 12] = [
    Status::of(
        400,
        "The document, the query, or a name in the path cannot be read",
    ),
    Status::of(401, "No token, or one that nobody has").with("WWW-Authenticate", "`Bearer`"),
    Status::of(403, "Not from here, or not with this role"),
    Status::of(404, "There is no such thing"),
    Status::of(405, "Not with this method").with("Allow", "The methods that there are"),
    Status::of(409, "What is there stands against it"),
    Status::of(412, "`If-Match` or `If-None-Match` does not hold"),
    Status::of(413, "More than is read"),
    Status::of(415, "A form that nobody reads here").with("Accept", "What is read instead"),
    Status::of(422, "It can be read and makes no sense"),
    Status::of(429, "Faster than a token may")
        .with("Retry-After", "Seconds until there is room again"),
    Status::of(503, "The store, or Squall itself, is not ready"),
];

impl Status {
    const fn of(code: u16, when: &'static str) -> Self {
        Self {
            code,
            when,
            header: None,
        }
    }

    const fn with(self, name: &'static str, about: &'static str) -> Self {
        Self {
            header: Some((name, about)),
            ..self
        }
    }
}

impl Detail {
    /// Something wrong with a text that was sent, and where in it.
    pub(crate) fn located(error: &ProfileError) -> Self {
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

    /// Something wrong at `pointer` in the document.
    pub fn at(pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        Self {
            detail: detail.into(),
            pointer: Some(pointer.into()),
            parameter: None,
            header: None,
        }
    }

    /// Something wrong with a query parameter.
    pub fn parameter(name: impl Into<String>, detail: impl Into<String>) -> Self {
        Self {
            detail: detail.into(),
            pointer: None,
            parameter: Some(name.into()),
            header: None,
        }
    }

    /// Something wrong with a header.
    pub(crate) fn header(name: &HeaderName, detail: impl Into<String>) -> Self {
        Self {
            detail: detail.into(),
            pointer: None,
            parameter: None,
            header: Some(name.to_string()),
        }
    }
}

impl Problem {
    /// A problem of its own `slug`, the last part of its `type`.
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

    /// 400: the request cannot be read.
    pub(crate) fn malformed(detail: impl Into<String>) -> Self {
        Self::new(
            StatusCode::BAD_REQUEST,
            "malformed",
            "Malformed request",
            detail,
        )
    }

    /// 401: no token, or one nobody knows.
    pub(crate) fn unauthenticated(detail: impl Into<String>) -> Self {
        let status = StatusCode::UNAUTHORIZED;
        Self::new(status, "unauthenticated", "Token required", detail)
    }

    /// 403: not from here, or not by this token.
    pub(crate) fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", "Not allowed", detail)
    }

    /// 404: there is no such thing.
    pub(crate) fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not-found", "Not found", detail)
    }

    /// 405: the thing is there, the method is not.
    pub(crate) fn method_not_allowed(detail: impl Into<String>) -> Self {
        let status = StatusCode::METHOD_NOT_ALLOWED;
        Self::new(status, "method-not-allowed", "Method not allowed", detail)
    }

    /// 409: what is there stands against it.
    pub(crate) fn conflict(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, "conflict", "Conflict", detail)
    }

    /// 412: it is not the version that was named.
    pub(crate) fn precondition_failed(detail: impl Into<String>) -> Self {
        let status = StatusCode::PRECONDITION_FAILED;
        Self::new(status, "precondition-failed", "It has changed", detail)
    }

    /// 413: more than is read.
    pub(crate) fn too_large(detail: impl Into<String>) -> Self {
        Self::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "too-large",
            "Document too large",
            detail,
        )
    }

    /// 415: a form nobody reads here.
    pub(crate) fn unsupported_type(detail: impl Into<String>) -> Self {
        let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        Self::new(
            status,
            "unsupported-type",
            "Unsupported content type",
            detail,
        )
    }

    /// 422: it can be read and makes no sense; `errors` says where.
    pub(crate) fn invalid(errors: Vec<Detail>) -> Self {
        let detail = match errors.as_slice() {
            [only] => only.detail.clone(),
            several => format!("{} things are wrong with the document", several.len()),
        };
        Self::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "invalid",
            "Invalid document",
            detail,
        )
        .with_errors(errors)
    }

    /// 422: a profile that makes no sense. Errors without a pointer say that the text could not be
    /// read at all.
    pub(crate) fn profile(errors: &[ProfileError]) -> Self {
        Self::invalid(errors.iter().map(Detail::located).collect())
    }

    /// 429: too fast; `wait` is how long it takes until there is room.
    pub(crate) fn too_many(detail: impl Into<String>, wait: Duration) -> Self {
        let whole = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        let problem = Self::new(
            StatusCode::TOO_MANY_REQUESTS,
            "rate-limited",
            "Too many requests",
            detail,
        );
        Self {
            retry_after: Some(whole.max(1)),
            ..problem
        }
    }

    /// 500: our fault.
    pub(crate) fn internal(detail: impl Into<String>) -> Self {
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "internal",
            "Squall failed",
            detail,
        )
    }

    /// 503: not now.
    pub(crate) fn not_ready(detail: impl Into<String>) -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "not-ready",
            "Not ready",
            detail,
        )
    }

    /// 503: the store cannot be asked; 500 when it can be and refuses. What it refused with is for the log:
    /// whoever asks can do nothing about it, and need not know where the store is.
    pub(crate) fn store(error: &StoreError) -> Self {
        let status = match error {
            StoreError::Refused { .. } => {
                // What the failure is found by in the log; nothing where the system has no random bits.
                let id = random_hex::<8>().unwrap_or_default();
                tracing::error!(id, "{error}");
                return Self::internal(format!(
                    "the store refused what Squall asked of it; the daemon's log says why, with the id {id}"
                ));
            }
            _ => StatusCode::SERVICE_UNAVAILABLE,
        };
        Self::new(
            status,
            "store-unavailable",
            "Store unavailable",
            error.to_string(),
        )
    }

    /// The status it is answered with.
    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    /// The problem with the places where it is.
    #[must_use]
    pub(crate) fn with_errors(self, errors: Vec<Detail>) -> Self {
        Self { errors, ..self }
    }

    /// The problem with the members of an object beside its own.
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

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = self.document().to_string();
        let content_type = [(CONTENT_TYPE, problem::CONTENT_TYPE)];
        let mut response = (self.status, content_type, body).into_response();
        if self.status == StatusCode::UNAUTHORIZED {
            // RFC 9110 §15.5.2 asks for it.
            let scheme = HeaderValue::from_static("Bearer");
            response.headers_mut().insert(WWW_AUTHENTICATE, scheme);
        }
        if self.status == StatusCode::UNSUPPORTED_MEDIA_TYPE {
            // RFC 9110 §15.5.16: what is read instead.
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
