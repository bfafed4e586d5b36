//! `Idempotency-Key`: a repeated request gets the first response, and its effect happens once.
//!
//! One layer for every POST. The first request writes the key to the store and acts. Concurrent requests with the
//! same key, on any daemon, wait and get its response. A failure of Squall (5xx) frees the key. If a daemon dies
//! before it responds, the outcome is unknown: a request with that key is then rejected.
//!
//! ```text
//! POST ─▶ key taken? ─┬─ no ─▶ route ─▶ response ─▶ stored ─▶ sent
//!                     ├─ yes, no response yet ─▶ wait and check again; 409 after a while
//!                     └─ response stored ─▶ sent again
//! ```

mod key;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, HttpBody as _, to_bytes};
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::header::{CACHE_CONTROL, HeaderName, HeaderValue};
use http::{HeaderMap, Method, StatusCode};
use tokio::time::{Instant, sleep};

pub(crate) use self::key::KEY;
use crate::access::Needs;
use crate::audit::Unchanged;
use crate::document;
use crate::problem::{ApiProblem, ProblemDetail};
use crate::store::{IdempotencyKey, KeyState, Store, StoreError, StoredResponse};

/// How long a key is taken, and its response repeated.
const LIFETIME: Duration = Duration::from_hours(24);
/// How long a request waits for another one with its key, by default.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
/// Interval between checks for the response.
const INTERVAL: Duration = Duration::from_millis(100);
/// Longest body that is stored, bytes.
const LONGEST: u64 = 64 << 10;

/// Milliseconds since 1970.
type Clock = Arc<dyn Fn() -> u64 + Send + Sync>;

/// The keys in one daemon's store.
pub(crate) struct Keys {
    store: Store,
    clock: Clock,
    /// How long a request waits for another one with its key.
    patience: Duration,
}

/// The layer.
pub(crate) async fn once(
    State(keys): State<Arc<Keys>>,
    request: Request,
    next: Next,
) -> Result<Response, ApiProblem> {
    // Without access rules, the path has no POST.
    let is_route = request.extensions().get::<Needs>().is_some();
    if request.method() != Method::POST || !is_route || !request.headers().contains_key(KEY) {
        return Ok(next.run(request).await);
    }
    let (head, body) = request.into_parts();
    let body = document::body(Request::from_parts(head.clone(), body)).await?;
    let key = key::of(&head, &body)?;
    if let Some(stored) = keys.take(&key).await? {
        let mut again = repeated(stored)?;
        again.extensions_mut().insert(Unchanged);
        return Ok(again);
    }
    let request = Request::from_parts(head, Body::from(body));
    keys.answer(&key, next.run(request).await).await
}

impl Keys {
    pub(crate) fn new(store: Store, clock: Clock, patience: Duration) -> Arc<Self> {
        Arc::new(Self {
            store,
            clock,
            patience,
        })
    }

    /// Takes the key (`None`), or waits for the response of the request that holds it.
    async fn take(&self, key: &IdempotencyKey) -> Result<Option<StoredResponse>, ApiProblem> {
        let deadline = Instant::now() + self.patience;
        loop {
            let now = (self.clock)();
            match self
                .store
                .take_key(key, now + millis(LIFETIME), now)
                .await?
            {
                KeyState::Taken => return Ok(None),
                KeyState::Held(request, _) if request != key.request => {
                    let detail = "this Idempotency-Key was used for another request; use a new key";
                    let detail = ProblemDetail::header(&KEY, detail);
                    return Err(ApiProblem::invalid(vec![detail]));
                }
                KeyState::Held(_, Some(response)) => return Ok(Some(response)),
                KeyState::Held(_, None) if Instant::now() >= deadline => {
                    return Err(ApiProblem::conflict(
                        "the first request with this Idempotency-Key has no response: it is still in progress, or its \
                         daemon ended and it may have been carried out. Check what exists; a new request needs a new \
                         key",
                    ));
                }
                KeyState::Held(_, None) => sleep(INTERVAL).await,
            }
        }
    }

    /// Stores the response, or frees the key.
    async fn answer(
        &self,
        key: &IdempotencyKey,
        response: Response,
    ) -> Result<Response, ApiProblem> {
        if response.status().is_server_error() {
            warn(self.store.free_key(key).await);
            return Ok(response);
        }
        let (stored, response) = stored(response).await?;
        let now = (self.clock)();
        warn(
            self.store
                .answer_key(key, stored, now + millis(LIFETIME))
                .await,
        );
        Ok(response)
    }
}

/// The stored part of a response, and the response. Only the status is stored if it has `no-store` (it holds a
/// secret), is too long or has no length.
async fn stored(response: Response) -> Result<(StoredResponse, Response), ApiProblem> {
    let status = response.status().as_u16();
    let mut directives = response.headers().get_all(CACHE_CONTROL).iter();
    let is_secret = directives.any(|value| value == "no-store");
    let length = response.body().size_hint().exact();
    if is_secret || length.is_none_or(|length| length > LONGEST) {
        let content = None;
        return Ok((StoredResponse { status, content }, response));
    }
    let (head, body) = response.into_parts();
    let body = to_bytes(body, usize::MAX)
        .await
        .map_err(|error| ApiProblem::internal(format!("the response cannot be read: {error}")))?;
    let headers = head.headers.iter();
    // No route sends a header that is not text.
    let headers: Vec<_> = headers
        .filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)))
        .collect();
    let content = Some((serde_json::json!(headers).to_string(), body.to_vec()));
    let response = Response::from_parts(head, Body::from(body));
    Ok((StoredResponse { status, content }, response))
}

/// Rebuilds a stored response.
fn repeated(stored: StoredResponse) -> Result<Response, ApiProblem> {
    let Some((headers, body)) = stored.content else {
        return Err(ApiProblem::conflict(format!(
            "the request with this Idempotency-Key was carried out with status {}. Its response is not stored: it \
             is long, or holds a secret that is shown once. Check what exists; a new request needs a new key",
            stored.status
        )));
    };
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = StatusCode::from_u16(stored.status).unwrap_or(StatusCode::OK);
    // Only `stored` writes the column.
    let headers: Vec<(String, String)> = serde_json::from_str(&headers).unwrap_or_default();
    let headers = headers.into_iter().filter_map(|(name, value)| {
        let name = HeaderName::try_from(name).ok()?;
        Some((name, HeaderValue::try_from(value).ok()?))
    });
    *response.headers_mut() = headers.collect::<HeaderMap>();
    Ok(response)
}

/// The effect has happened: a later failure of the store is only logged.
fn warn(result: Result<(), StoreError>) {
    if let Err(error) = result {
        tracing::warn!("an Idempotency-Key cannot be stored: {error}");
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
