//! The identity of a key: its caller, route and request.

use axum::extract::MatchedPath;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName};
use http::request::Parts;
use ring::digest::{Context, SHA256};
use squall_harness::digest::hex;

use crate::access::Caller;
use crate::credential::random_hex;
use crate::problem::{ApiProblem, ProblemDetail};
use crate::store::{DEFAULT_WORKSPACE, IdempotencyKey};

/// The header.
pub(crate) const KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Longest key, bytes.
const LONGEST: usize = 255;

/// The key of a request. It is specific to the caller and the route. The request is its path, query, content type
/// and body.
pub(super) fn of(head: &Parts, body: &Bytes) -> Result<IdempotencyKey, ApiProblem> {
    let mut given = head.headers.get_all(&KEY).iter();
    let key = given.next().and_then(|key| key.to_str().ok());
    // `to_str` lets tabs pass.
    let fits = |key: &&str| (1..=LONGEST).contains(&key.len()) && !key.contains('\t');
    let Some(key) = key.filter(fits).filter(|_| given.next().is_none()) else {
        let detail =
            "Idempotency-Key must be one text of 1 to 255 ASCII characters, such as a UUID";
        return Err(
            ApiProblem::malformed(detail).with_errors(vec![ProblemDetail::header(&KEY, detail)])
        );
    };
    let caller = head.extensions.get::<Caller>();
    let workspace = caller.map_or(DEFAULT_WORKSPACE, Caller::workspace);
    let who = caller.map_or_else(String::new, Caller::identity);
    let route = head.extensions.get::<MatchedPath>();
    let route = route.map_or("", MatchedPath::as_str);
    let form = head.headers.get(CONTENT_TYPE);
    let form = form.map_or(&b""[..], |form| form.as_bytes());
    let target = head
        .uri
        .path_and_query()
        .map_or("", |target| target.as_str());
    let attempt = random_hex::<16>().map_err(|error| ApiProblem::not_ready(error.to_string()))?;
    Ok(IdempotencyKey {
        id: digest([workspace, &who, head.method.as_str(), route, key].map(str::as_bytes)),
        workspace: workspace.to_owned(),
        request: digest([target.as_bytes(), form, body]),
        attempt,
    })
}

/// SHA-256 of parts, unambiguously separated.
fn digest<const N: usize>(parts: [&[u8]; N]) -> String {
    let mut context = Context::new(&SHA256);
    for part in parts {
        context.update(&(part.len() as u64).to_be_bytes());
        context.update(part);
    }
    hex(context.finish().as_ref())
}
