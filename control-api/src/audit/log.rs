//! Writes entries to the store.
//!
//! While the store is away entries wait in memory, in order. So that none is lost, calls that change something
//! are rejected once [`MOST`] entries wait. Calls that end chaos are never rejected.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use http::StatusCode;
use serde::Serialize;
use squall_proxy::chaos::Chaos;
use squall_proxy::recorder::Recorder;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::call::digest_of;
use super::denied::{self, Denied};
use super::{Call, Draft, Outcome};
use crate::store::{DEFAULT_WORKSPACE, Store, StoreError};

/// Most entries that wait for the store.
const MOST: usize = 1_000;

/// Entries written in one transaction.
const AT_ONCE: usize = 100;

/// Pause before a retry while the store is away.
const AGAIN: Duration = Duration::from_secs(1);

/// The actor of changes without a call.
const ITSELF: &str = super::RESERVED[0];

/// The audit log of one daemon.
#[derive(Debug)]
pub struct AuditLog {
    store: Store,
    /// Source of the time.
    recorder: Recorder,
    waiting: Mutex<Waiting>,
    denied: Mutex<Denied>,
    /// Serializes writers, so that entries keep their order.
    turn: tokio::sync::Mutex<()>,
    news: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    drafts: VecDeque<Draft>,
    /// Number of entries dropped for lack of room.
    lost: u64,
    /// Whether the daemon's log reports that the store is away.
    told: bool,
}

/// SHA-256 of the state before and after.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Digests {
    /// `None`: it did not exist.
    pub before: Option<String>,
    /// `None`: it no longer exists.
    pub after: Option<String>,
}

impl Digests {
    /// Digests of two documents as JSON.
    pub(crate) fn of<T: Serialize>(before: &T, after: &T) -> Self {
        Self {
            before: digest_of(before),
            after: digest_of(after),
        }
    }
}

/// No further entry can wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the store is away and {MOST} entries of the audit log wait for it: nothing is changed until it is back, but chaos can be ended"
)]
pub(crate) struct Full;

impl AuditLog {
    /// With a store; the clock is `recorder`'s.
    pub fn new(store: Store, recorder: Recorder) -> Arc<Self> {
        Arc::new(Self {
            store,
            recorder,
            waiting: Mutex::default(),
            denied: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
            news: Notify::new(),
        })
    }

    /// Its store.
    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// Milliseconds since 1970.
    pub(crate) fn now(&self) -> u64 {
        self.recorder.unix_ms(Instant::now())
    }

    /// Whether a call that changes something may be carried out: an error when too many entries wait.
    pub(crate) fn has_room(&self) -> Result<(), Full> {
        if self.waiting().drafts.len() < MOST {
            Ok(())
        } else {
            Err(Full)
        }
    }

    /// Writes the entry of a call, unless the store has it. Waits for it at most `patience`, and not at all while
    /// the store is known to be away.
    pub(crate) async fn answered(
        self: &Arc<Self>,
        call: &Call,
        status: StatusCode,
        patience: Duration,
    ) {
        if call.is_written() {
            return;
        }
        self.push(call.answered(status, self.now()));
        if self.waiting().told {
            self.news.notify_one();
            return;
        }
        let log = Arc::clone(self);
        let writing = tokio::spawn(async move {
            log.write().await;
            // The writer retries what the store rejected.
            log.news.notify_one();
        });
        // After the timeout the call is answered; the entry is written later.
        let _ = tokio::time::timeout(patience, writing).await;
    }

    /// Counts a denied call.
    pub(crate) fn denied(&self, status: StatusCode) {
        lock(&self.denied).count(status);
        self.news.notify_one();
    }

    /// Writes an entry for all chaos that ends without a call from now on.
    pub fn witness(self: &Arc<Self>, chaos: &Chaos) {
        let log = Arc::downgrade(self);
        chaos.witness(move |event, was| {
            if let (Some(log), Some(reason)) = (log.upgrade(), &event.reason) {
                let digests = Digests::of(was, &event.now);
                log.changed(
                    "chaos ended",
                    &event.now.scope,
                    Outcome::Done,
                    reason,
                    digests,
                );
            }
        });
    }

    /// Queues an entry for something that happened without a call.
    pub fn happened(&self, action: &str, target: &str, outcome: Outcome, detail: &str) {
        self.changed(action, target, outcome, detail, Digests::default());
    }

    /// The same for something that was changed.
    pub fn changed(
        &self,
        action: &str,
        target: &str,
        outcome: Outcome,
        detail: &str,
        digests: Digests,
    ) {
        self.changed_in(DEFAULT_WORKSPACE, action, target, outcome, detail, digests);
    }

    /// The same in a workspace's log.
    pub(crate) fn changed_in(
        &self,
        workspace: &str,
        action: &str,
        target: &str,
        outcome: Outcome,
        detail: &str,
        digests: Digests,
    ) {
        self.push(Draft {
            at: self.now(),
            workspace: workspace.to_owned(),
            actor: ITSELF.to_owned(),
            source: "-".to_owned(),
            action: action.to_owned(),
            target: target.to_owned(),
            before: digests.before,
            after: digests.after,
            outcome,
            detail: detail.to_owned(),
        });
        self.news.notify_one();
    }

    fn push(&self, draft: Draft) {
        let mut waiting = self.waiting();
        if waiting.drafts.len() < MOST {
            waiting.drafts.push_back(draft);
        } else {
            waiting.lost += 1;
        }
    }

    /// Writes queued entries until `stopping`.
    pub async fn keep_writing(self: Arc<Self>, stopping: CancellationToken) {
        loop {
            tokio::select! {
                () = self.news.notified() => {}
                () = tokio::time::sleep(denied::EVERY), if self.has_denied() => {}
                () = tokio::time::sleep(AGAIN), if self.is_behind() => {}
                () = stopping.cancelled() => return,
            }
            self.tell_denied(false);
            // Do not open an in-memory store only for this.
            if !self.store.is_blank() {
                self.write().await;
            }
        }
    }

    /// Writes the entries that still wait, as far as the store accepts them.
    pub async fn stop(&self) {
        self.tell_denied(true);
        if !self.store.is_blank() {
            self.write().await;
        }
    }

    fn tell_denied(&self, last: bool) {
        if let Some(told) = lock(&self.denied).take(Instant::now(), last) {
            self.happened("denied", "-", Outcome::Refused, &told);
        }
    }

    fn has_denied(&self) -> bool {
        !lock(&self.denied).is_empty()
    }

    fn is_behind(&self) -> bool {
        !self.waiting().drafts.is_empty() && !self.store.is_blank()
    }

    /// Writes all waiting entries, oldest first; the store's failures leave them in the queue.
    async fn write(&self) {
        let _turn = self.turn.lock().await;
        loop {
            let drafts: Vec<Draft> = {
                let waiting = self.waiting();
                waiting.drafts.iter().take(AT_ONCE).cloned().collect()
            };
            if drafts.is_empty() {
                return;
            }
            match self.store.append_audit(&drafts).await {
                Ok(()) => self.written(drafts.len()),
                Err(error) => return self.kept_waiting(&error),
            }
        }
    }

    fn written(&self, count: usize) {
        let mut waiting = self.waiting();
        waiting.drafts.drain(..count);
        if waiting.told && waiting.drafts.is_empty() {
            waiting.told = false;
            tracing::info!("the audit log is written again");
        }
        let lost = std::mem::take(&mut waiting.lost);
        drop(waiting);
        if lost > 0 {
            let detail = format!("{lost} entries found no room while the store was away");
            self.happened("lost", "-", Outcome::Failed, &detail);
        }
    }

    fn kept_waiting(&self, error: &StoreError) {
        let mut waiting = self.waiting();
        if !waiting.told {
            waiting.told = true;
            tracing::error!("the audit log is not written, its entries wait: {error}");
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        lock(&self.waiting)
    }
}

/// A poisoned lock is usable: the value is consistent between any two statements.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
