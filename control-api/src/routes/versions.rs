//! Versions of documents in requests (RFC 9110 §13.1) and responses.

use axum::response::{IntoResponse, Response};
use http::header::{ACCEPT, CONTENT_TYPE, IF_MATCH, IF_NONE_MATCH};
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::problem::ApiProblem;
use crate::query::Params;
use crate::store::DocumentKey;

/// The parameter `version`.
pub(super) fn requested(params: &mut Params) -> Option<i64> {
    params.read("version", "a whole number from 1", |text| {
        text.parse().ok().filter(|version| *version > 0)
    })
}

/// Whether a document is requested as its original text.
pub(super) fn wants_text(headers: &HeaderMap) -> bool {
    let mut accepted = headers.get_all(ACCEPT).iter();
    accepted.any(|accept| accept.to_str().is_ok_and(|accept| accept.contains("yaml")))
}

/// A document as its original text.
pub(super) fn text(text: String) -> Response {
    ([(CONTENT_TYPE, "application/yaml")], text).into_response()
}

/// The entity tag of a digest: its first half.
pub(super) fn tag(digest: &str) -> HeaderValue {
    let half = digest.get(..32).unwrap_or(digest);
    HeaderValue::from_str(&format!("\"{half}\"")).expect("hex digits in quotes are a header value")
}

/// The error for an unknown version.
pub(super) fn missing(key: &DocumentKey, version: i64) -> ApiProblem {
    let name: String = key.name.chars().take(64).collect();
    ApiProblem::not_found(format!(
        "{} `{name}` has no version {version}, or it is no longer stored",
        key.kind.as_str()
    ))
}

/// Whether the client of a GET already has the document with this tag.
pub(super) fn is_known(headers: &HeaderMap, tag: &HeaderValue) -> bool {
    let known = headers.get_all(IF_NONE_MATCH);
    known.iter().any(|known| names(known, tag))
}

/// Checks `If-Match` and `If-None-Match` of an edit against the current tag; `None`: there is no document. `what`
/// names the document in errors.
pub(super) fn check(
    headers: &HeaderMap,
    current: Option<&HeaderValue>,
    what: &str,
) -> Result<(), ApiProblem> {
    let matches = |header: HeaderName| {
        headers.get_all(header).iter().any(|value| match current {
            Some(tag) => value == "*" || names(value, tag),
            None => false,
        })
    };
    if headers.contains_key(IF_MATCH) && !matches(IF_MATCH) {
        return Err(ApiProblem::precondition_failed(format!(
            "{what} is not the version named by If-Match; get it again and edit that"
        )));
    }
    if matches(IF_NONE_MATCH) {
        return Err(ApiProblem::precondition_failed(format!("{what} exists")));
    }
    Ok(())
}

/// Rejects `If-Match` for an object without versions: no tag can match.
pub(super) fn check_unversioned(headers: &HeaderMap, what: &str) -> Result<(), ApiProblem> {
    if headers.get_all(IF_MATCH).iter().any(|value| value != "*") {
        return Err(ApiProblem::precondition_failed(format!(
            "{what} has no versions, so If-Match can name none; leave it out"
        )));
    }
    Ok(())
}

/// Whether a list of entity tags contains this one; weak tags compare by their text.
fn names(list: &HeaderValue, tag: &HeaderValue) -> bool {
    let Ok(list) = list.to_str() else {
        return false;
    };
    list.split(',').any(|one| {
        let one = one.trim();
        one.strip_prefix("W/").unwrap_or(one) == tag
    })
}
