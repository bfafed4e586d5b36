//! RFC 9457 problem bodies of Squall's own responses, including the control API's.
//!
//! An agent that receives one has reached Squall, not its upstream; the `type` shows it.

use bytes::Bytes;
use http::header::{self, HeaderValue};
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};
use squall_dialects::WireReply;

/// The body of a problem. `slug` is the last part of its `type`. `title` is short and constant.
/// `detail` describes the occurrence: where, what, and what to do instead.
pub fn document(status: StatusCode, slug: &str, title: &str, detail: &str) -> Value {
    json!({
        "type": format!("urn:squall:problem:{slug}"),
        "title": title,
        "status": status.as_u16(),
        "detail": detail,
    })
}

/// The media type of a problem.
pub const CONTENT_TYPE: HeaderValue = HeaderValue::from_static("application/problem+json");

/// Why the proxy responds itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    /// Status, also in the body.
    pub(crate) status: StatusCode,
    /// Last part of the problem's `type`, such as `upstream-refused`.
    pub(crate) slug: &'static str,
    /// Short and constant.
    pub(crate) title: &'static str,
    /// This occurrence: where, what, and what to do instead.
    pub(crate) detail: String,
}

impl Problem {
    /// A problem from its parts.
    pub(crate) fn new(
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
        }
    }

    /// The problem as a complete reply.
    pub(crate) fn to_reply(&self) -> WireReply {
        let body = document(self.status, self.slug, self.title, &self.detail);
        let mut headers = HeaderMap::with_capacity(2);
        headers.insert(header::CONTENT_TYPE, CONTENT_TYPE);
        WireReply {
            status: self.status,
            headers,
            body: Bytes::from(body.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_a_problem_json_document() {
        let reply = Problem::new(
            StatusCode::NOT_FOUND,
            "no-route",
            "No route",
            "nothing at /x",
        )
        .to_reply();
        assert_eq!(
            reply.headers[header::CONTENT_TYPE],
            "application/problem+json"
        );
        let body: serde_json::Value = serde_json::from_slice(&reply.body).unwrap();
        assert_eq!(
            body,
            serde_json::json!({
                "type": "urn:squall:problem:no-route",
                "title": "No route",
                "status": 404,
                "detail": "nothing at /x",
            })
        );
    }
}
