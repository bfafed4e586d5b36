//! What the proxy says for itself: RFC 9457 problem bodies.
//!
//! An agent that reads one of these was talking to Squall, not to its upstream; the `type` says so.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{HeaderMap, StatusCode};
use squall_profiles::plan::Reply;

/// One reason why the proxy answers by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    /// Status, also in the body.
    pub(crate) status: StatusCode,
    /// Last part of the problem's `type`, such as `upstream-refused`.
    pub(crate) slug: &'static str,
    /// Short and the same for every occurrence.
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
    pub(crate) fn to_reply(&self) -> Reply {
        let body = serde_json::json!({
            "type": format!("urn:squall:problem:{}", self.slug),
            "title": self.title,
            "status": self.status.as_u16(),
            "detail": self.detail,
        });
        let mut headers = HeaderMap::with_capacity(2);
        headers.insert(
            CONTENT_TYPE,
            HeaderValue::from_static("application/problem+json"),
        );
        Reply {
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
        assert_eq!(reply.headers[CONTENT_TYPE], "application/problem+json");
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
