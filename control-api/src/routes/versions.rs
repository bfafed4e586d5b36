//! Versions of documents, as conditional requests name them: RFC 9110 §13.1.

use http::header::{IF_MATCH, IF_NONE_MATCH};
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::problem::Problem;

/// Whether the client of a GET holds the document already that `tag` stands for.
pub(super) fn is_known(headers: &HeaderMap, tag: &HeaderValue) -> bool {
    let known = headers.get_all(IF_NONE_MATCH);
    known.iter().any(|known| names(known, tag))
}

/// `If-Match` and `If-None-Match` of an edit, against the tag of what holds, `None` for nothing. `what`
/// is the document, in the words of the problem.
pub(super) fn check(
    headers: &HeaderMap,
    current: Option<&HeaderValue>,
    what: &str,
) -> Result<(), Problem> {
    let matches = |header: HeaderName| {
        headers.get_all(header).iter().any(|value| match current {
            Some(tag) => value == "*" || names(value, tag),
            None => false,
        })
    };
    if headers.contains_key(IF_MATCH) && !matches(IF_MATCH) {
        return Err(Problem::precondition_failed(format!(
            "{what} is not the version named by If-Match; get it again and edit that"
        )));
    }
    if matches(IF_NONE_MATCH) {
        return Err(Problem::precondition_failed(format!("{what} exists")));
    }
    Ok(())
}

/// `If-Match` on what has no versions: no tag can be its own.
pub(super) fn check_unversioned(headers: &HeaderMap, what: &str) -> Result<(), Problem> {
    if headers.get_all(IF_MATCH).iter().any(|value| value != "*") {
        return Err(Problem::precondition_failed(format!(
            "{what} has no versions, so If-Match can name none; leave it out"
        )));
    }
    Ok(())
}

/// Whether a list of entity tags names this one; weak tags compare by their text.
fn names(list: &HeaderValue, tag: &HeaderValue) -> bool {
    let Ok(list) = list.to_str() else {
        return false;
    };
    list.split(',').any(|one| {
        let one = one.trim();
        one.strip_prefix("W/").unwrap_or(one) == tag
    })
}
