//! `Idempotency-Key`: a repeated request gets the first response, and its effect happens once.
//!
//! One layer for every POST. The first request writes the key to the store and acts. Concurrent requests with the
//! same key, on any daemon, wait and get its response. The work continues to its end even if the client
//! disconnects. A failure of Squall (5xx) frees the key. If a daemon dies before it responds, the outcome is
//! unknown: a request with that key is then rejected.
//!
//! ```text
//! POST ─▶ key taken? ─┬─ no ─▶ route ─▶ response ─▶ stored ─▶ sent
//!                     ├─ in progress ─▶ wait ─▶ check again
//!                     ├─ abandoned by its daemon ─▶ 409
//!                     └─ response stored ─▶ sent again
//! ```

mod answer;
mod key;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::Body;
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use http::Method;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep, timeout};

pub(crate) use self::key::KEY;
use crate::audit::Repeated;
use crate::document;
use crate::problem::{Detail, Problem};
use crate::store::{Begun, IdempotencyKey, KeptAnswer, Store, StoreError};
use crate::tasks;

/// How long a response is repeated.
const KEPT: Duration = Duration::from_hours(24);
/// How long an attempt may be silent before it counts as abandoned.
const LEASE: Duration = Duration::from_secs(10);
/// How long a request waits for another one with its key.
const PATIENCE: Duration = Duration::from_secs(30);
/// Interval between checks for another daemon's response.
const LOOKS: Duration = Duration::from_millis(100);
/// Most responses in a store; the oldest are deleted.
const MOST: i64 = 10_000;
/// Interval between deletions of expired keys.
const PRUNES: Duration = Duration::from_mins(1);

/// Milliseconds since 1970.
type Clock = Arc<dyn Fn() -> u64 + Send + Sync>;

/// The keys in one daemon's store.
pub(crate) struct Keys {
    store: Store,
    /// Paths of all POST routes.
    paths: Vec<&'static str>,
    clock: Clock,
    /// This daemon's attempts, by the key's id.
    running: Mutex<HashMap<String, Running>>,
    /// Time of the last pruning, by the clock.
    pruned_at: Mutex<u64>,
}

/// An attempt of this daemon.
#[derive(Debug, Clone)]
struct Running {
    /// Digest of the request.
    request: String,
    /// Closed when it is over.
    over: watch::Receiver<()>,
}

/// What to do with a request that has a key.
enum Claim {
    /// Carry it out.
    Act(Attempt),
    /// Repeat this response.
    Repeat(KeptAnswer),
}

/// Dropped when this daemon stops the attempt for any reason.
struct Attempt {
    keys: Arc<Keys>,
    id: String,
    /// Closed for waiting requests, after the key is removed from `running`.
    _over: watch::Sender<()>,
}

impl Drop for Attempt {
    fn drop(&mut self) {
        self.keys.running().remove(&self.id);
    }
}

/// The layer.
pub(crate) async fn once(
    State(keys): State<Arc<Keys>>,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let path = request.extensions().get::<MatchedPath>();
    let is_route = path.is_some_and(|path| keys.paths.contains(&path.as_str()));
    if request.method() != Method::POST || !is_route || !request.headers().contains_key(KEY) {
        return Ok(next.run(request).await);
    }
    let (head, body) = request.into_parts();
    let body = document::body(Request::from_parts(head.clone(), body)).await?;
    let key = key::of(&head, &body)?;
    let attempt = match keys.claim(&key).await? {
        Claim::Repeat(kept) => {
            let mut again = answer::given_again(kept)?;
            again.extensions_mut().insert(Repeated);
            return Ok(again);
        }
        Claim::Act(attempt) => attempt,
    };
    let request = Request::from_parts(head, Body::from(body));
    tasks::spawned(async move {
        let answer = attempt.keys.act(&key, next.run(request)).await;
        drop(attempt);
        Ok(answer)
    })
    .await
}

impl Keys {
    pub(crate) fn new(store: Store, paths: Vec<&'static str>, clock: Clock) -> Arc<Self> {
        Arc::new(Self {
            store,
            paths,
            clock,
            running: Mutex::default(),
            pruned_at: Mutex::default(),
        })
    }

    /// Takes the key, or waits for the response of the attempt that holds it.
    async fn claim(self: &Arc<Self>, key: &IdempotencyKey) -> Result<Claim, Problem> {
        let claiming = async {
            loop {
                if let Some(claim) = self.try_claim(key).await? {
                    return Ok(claim);
                }
                let here = self.running().get(&key.id).map(|here| here.over.clone());
                match here {
                    // An error means that it is over.
                    Some(mut over) => drop(timeout(LOOKS * 10, over.changed()).await),
                    None => sleep(LOOKS).await,
                }
            }
        };
        match timeout(PATIENCE, claiming).await {
            Ok(claim) => claim,
            Err(_) => Err(Problem::conflict(
                "the first request with this Idempotency-Key is still being carried out; ask again later",
            )),
        }
    }

    /// `None` while another attempt holds the key.
    async fn try_claim(self: &Arc<Self>, key: &IdempotencyKey) -> Result<Option<Claim>, Problem> {
        let here = self.running().get(&key.id).cloned();
        if let Some(here) = here {
            return same(key, &here.request).map(|()| None);
        }
        let now = (self.clock)();
        let begun = self.store.begin_key(key, now + millis(LEASE), now).await;
        match begun? {
            Begun::Yours => {
                let (sender, over) = watch::channel(());
                let attempt = Attempt {
                    keys: Arc::clone(self),
                    id: key.id.clone(),
                    _over: sender,
                };
                let request = key.request.clone();
                self.running()
                    .insert(key.id.clone(), Running { request, over });
                Ok(Some(Claim::Act(attempt)))
            }
            Begun::Running { request } => same(key, &request).map(|()| None),
            Begun::Abandoned { request } => same(key, &request).and(Err(abandoned())),
            Begun::Answered { request, answer } => {
                same(key, &request).map(|()| Some(Claim::Repeat(answer)))
            }
        }
    }

    /// Waits for the response and stores it.
    async fn act(&self, key: &IdempotencyKey, work: impl Future<Output = Response>) -> Response {
        let mut work = std::pin::pin!(work);
        let mut prolong = interval_at(Instant::now() + LEASE / 3, LEASE / 3);
        prolong.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let response = loop {
            tokio::select! {
                response = &mut work => break response,
                _ = prolong.tick() => {
                    let until = (self.clock)() + millis(LEASE);
                    complain(self.store.prolong_key(key, until).await);
                }
            }
        };
        if response.status().is_server_error() {
            complain(self.store.free_key(key).await);
            return response;
        }
        let (kept, response) = match answer::kept(response).await {
            Ok(both) => both,
            Err(problem) => return problem.into_response(),
        };
        let now = (self.clock)();
        complain(self.store.answer_key(key, &kept, now + millis(KEPT)).await);
        self.prune(now).await;
        response
    }

    /// Deletes expired keys, at most once per interval.
    async fn prune(&self, now: u64) {
        let is_due = {
            let mut at = self
                .pruned_at
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            let is_due = now >= at.saturating_add(millis(PRUNES));
            if is_due {
                *at = now;
            }
            is_due
        };
        if is_due {
            complain(self.store.prune_keys(now, MOST).await);
        }
    }

    fn running(&self) -> MutexGuard<'_, HashMap<String, Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Rejects a key that was used for another request.
fn same(key: &IdempotencyKey, request: &str) -> Result<(), Problem> {
    if key.request == request {
        return Ok(());
    }
    let detail =
        "this Idempotency-Key came with another request before; a new request needs a new key";
    Err(Problem::invalid(vec![Detail::header(&KEY, detail)]))
}

/// A retry could repeat the effect.
fn abandoned() -> Problem {
    Problem::conflict(
        "the daemon that was asked with this Idempotency-Key ended before it answered, or lost its store: what \
         was asked may have been done or not, and is not done again. Look at what there is now; a new \
         request needs a new key",
    )
}

/// The effect has happened: a later failure of the store is only logged.
fn complain(result: Result<(), StoreError>) {
    if let Err(error) = result {
        tracing::warn!("an Idempotency-Key cannot be kept: {error}");
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
