//! Stores responses and reads them back.

use axum::body::{Body, HttpBody as _, to_bytes};
use axum::response::Response;
use http::header::{CACHE_CONTROL, HeaderName, HeaderValue};
use http::{HeaderMap, StatusCode};

use crate::problem::Problem;
use crate::store::KeptAnswer;

/// Longest body that is stored, bytes.
const LONGEST: u64 = 64 << 10;

/// The stored part of a response, and the response. Only the status is stored if it has `no-store` (it holds a
/// secret), is too long or has no length.
pub(super) async fn kept(response: Response) -> Result<(KeptAnswer, Response), Problem> {
    let status = response.status().as_u16();
    let secret = response.headers().get_all(CACHE_CONTROL).iter();
    let is_secret = secret
        .filter_map(|said| said.to_str().ok())
        .any(|said| said.contains("no-store"));
    let length = response.body().size_hint().exact();
    if is_secret || length.is_none_or(|length| length > LONGEST) {
        let content = None;
        return Ok((KeptAnswer { status, content }, response));
    }
    let (head, body) = response.into_parts();
    let body = to_bytes(body, usize::MAX)
        .await
        .map_err(|error| Problem::internal(format!("the answer cannot be read: {error}")))?;
    let content = Some((written(&head.headers), body.to_vec()));
    let response = Response::from_parts(head, Body::from(body));
    Ok((KeptAnswer { status, content }, response))
}

/// Rebuilds a stored response.
pub(super) fn given_again(kept: KeptAnswer) -> Result<Response, Problem> {
    let Some((headers, body)) = kept.content else {
        return Err(Problem::conflict(format!(
            "the request with this Idempotency-Key was carried out and answered with {}, and that answer is \
             not kept: it is long, or holds a secret that is shown once. Look at what there is now; a new \
             request needs a new key",
            kept.status
        )));
    };
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = StatusCode::from_u16(kept.status).unwrap_or(StatusCode::OK);
    *response.headers_mut() = read(&headers);
    Ok(response)
}

/// Headers as JSON: `[["name", "value"], …]`. Values that are not text are left out; no route sends any.
fn written(headers: &HeaderMap) -> String {
    let texts = headers.iter();
    let texts: Vec<_> = texts
        .filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)))
        .collect();
    serde_json::json!(texts).to_string()
}

fn read(headers: &str) -> HeaderMap {
    // Only this module writes the column.
    let texts: Vec<(String, String)> = serde_json::from_str(headers).unwrap_or_default();
    let pairs = texts.into_iter().filter_map(|(name, value)| {
        let name = HeaderName::try_from(name).ok()?;
        Some((name, HeaderValue::try_from(value).ok()?))
    });
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        headers.append(name, value);
    }
    headers
}
