//! `Idempotency-Key`: a repeated request gets the first response, and nothing is done twice.
//!
//! One layer for every POST. Whoever comes first writes the key down in the store and acts; those that come
//! with the same key meanwhile wait, in whichever daemon, and are given that answer. What was begun is done
//! to its end even if the client has gone. Failures of ours (5xx) are no answers: the key is free again.
//! When a daemon dies in the middle nobody knows whether it was done, so it is not done again under that key.
//!
//! ```text
//! POST ─▶ key taken? ─┬─ no ─▶ route ─▶ answer ─▶ written down ─▶ given
//!                     ├─ being acted on ─▶ wait ─▶ look again
//!                     ├─ given up by its daemon ─▶ 409
//!                     └─ answered ───────────────▶ given again
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

/// How long an answer is given again.
const KEPT: Duration = Duration::from_hours(24);
/// How long an attempt is waited for whose daemon says nothing any more.
const LEASE: Duration = Duration::from_secs(10);
/// How long a request waits for another one with its key.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often it looks whether another daemon has answered.
const LOOKS: Duration = Duration::from_millis(100);
/// Most answers that a store keeps; the oldest make room.
const MOST: i64 = 10_000;
/// How often keys are looked for whose end is over.
const PRUNES: Duration = Duration::from_mins(1);

/// Milliseconds since 1970.
type Clock = Arc<dyn Fn() -> u64 + Send + Sync>;

/// The keys of one daemon's store.
pub(crate) struct Keys {
    store: Store,
    /// Paths that a POST goes to.
    paths: Vec<&'static str>,
    clock: Clock,
    /// What this daemon is at, by the key's id.
    running: Mutex<HashMap<String, Running>>,
    /// When keys were pruned, by the clock.
    pruned_at: Mutex<u64>,
}

/// An attempt of this daemon's.
#[derive(Debug, Clone)]
struct Running {
    /// Digest of what is asked.
    request: String,
    /// Closed when it is over.
    over: watch::Receiver<()>,
}

/// What a request with a key is to do.
enum Claim {
    /// Act.
    Act(Attempt),
    /// Give this answer again.
    Repeat(KeptAnswer),
}

/// Dropped when this daemon is no longer at it, however that came.
struct Attempt {
    keys: Arc<Keys>,
    id: String,
    /// Closed for those who wait, once the key is no longer among those that are acted on.
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

    /// Takes the key, or waits for the answer of whoever has it.
    async fn claim(self: &Arc<Self>, key: &IdempotencyKey) -> Result<Claim, Problem> {
        let claiming = async {
            loop {
                if let Some(claim) = self.try_claim(key).await? {
                    return Ok(claim);
                }
                let here = self.running().get(&key.id).map(|here| here.over.clone());
                match here {
                    // An error says that it is over.
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

    /// `None` while another attempt is at it.
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

    /// Waits for the answer and writes it down.
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

    /// Deletes what is over, once in a while.
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

/// The same key stands for the same request.
fn same(key: &IdempotencyKey, request: &str) -> Result<(), Problem> {
    if key.request == request {
        return Ok(());
    }
    let detail =
        "this Idempotency-Key came with another request before; a new request needs a new key";
    Err(Problem::invalid(vec![Detail::header(&KEY, detail)]))
}

/// Doing it again could be doing it twice.
fn abandoned() -> Problem {
    Problem::conflict(
        "the daemon that was asked with this Idempotency-Key ended before it answered, or lost its store: what \
         was asked may have been done or not, and is not done again. Look at what there is now; a new \
         request needs a new key",
    )
}

/// What was done is done: a store that fails after that is a matter for the log.
fn complain(result: Result<(), StoreError>) {
    if let Err(error) = result {
        tracing::warn!("an Idempotency-Key cannot be kept: {error}");
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
