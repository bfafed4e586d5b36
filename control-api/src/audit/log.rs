//! Writes entries to the store.
//!
//! While the store is away entries wait in memory, in order. So that none is lost, calls that change something
//! are rejected once [`MOST`] entries wait. Calls that end chaos are never rejected.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use http::StatusCode;
use squall_proxy::chaos::Chaos;
use squall_proxy::recorder::Recorder;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::denied::{self, Denied};
use super::{AuditEntry, AuditOutcome, AuditedCall, RESERVED, digest_of};
use crate::lock;
use crate::outage::Outage;
use crate::problem::ApiProblem;
use crate::store::{DEFAULT_WORKSPACE, Store};

/// Most entries that wait for the store.
const MOST: usize = 1_000;

/// Entries written in one transaction.
const AT_ONCE: usize = 100;

/// Pause before a retry while the store is away.
const AGAIN: Duration = Duration::from_secs(1);

/// The audit log of one daemon.
#[derive(Debug)]
pub struct AuditLog {
    store: Store,
    /// Source of the time.
    recorder: Recorder,
    queue: Mutex<Queue>,
    denied: Mutex<Denied>,
    outage: Outage,
    /// Serializes writers, so that entries keep their order.
    turn: tokio::sync::Mutex<()>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Queue {
    entries: VecDeque<AuditEntry>,
    /// Number of entries dropped for lack of room.
    lost: u64,
}

impl AuditLog {
    /// With a store; the clock is `recorder`'s.
    pub fn new(store: Store, recorder: Recorder) -> Arc<Self> {
        Arc::new(Self {
            store,
            recorder,
            queue: Mutex::default(),
            denied: Mutex::default(),
            outage: Outage::of("the audit log is not written, its entries wait"),
            turn: tokio::sync::Mutex::default(),
            changed: Notify::new(),
        })
    }

    /// Milliseconds since 1970.
    pub(crate) fn now(&self) -> u64 {
        self.recorder.unix_ms(Instant::now())
    }

    /// Rejects a call that changes something when too many entries wait.
    pub(crate) fn check_room(&self) -> Result<(), ApiProblem> {
        if lock(&self.queue).entries.len() < MOST {
            return Ok(());
        }
        Err(ApiProblem::not_ready(format!(
            "the store is away and {MOST} entries of the audit log wait for it: nothing is changed until it is \
             back, but chaos can be ended"
        )))
    }

    /// Writes the entry of a call, unless the store has it. Waits for it at most `patience`, and not at all while
    /// the store is known to be away.
    pub(crate) async fn answered(
        self: &Arc<Self>,
        call: &AuditedCall,
        status: StatusCode,
        patience: Duration,
    ) {
        if call.is_written() {
            return;
        }
        self.push(call.answered(status, self.now()));
        if self.outage.is_on() {
            self.changed.notify_one();
            return;
        }
        let log = Arc::clone(self);
        let writing = tokio::spawn(async move {
            log.write().await;
            // The writer retries what the store rejected.
            log.changed.notify_one();
        });
        // After the timeout the call is answered; the entry is written later.
        let _ = tokio::time::timeout(patience, writing).await;
    }

    /// Counts a denied call.
    pub(crate) fn denied(&self, status: StatusCode) {
        lock(&self.denied).count(status);
        self.changed.notify_one();
    }

    /// Writes an entry for all chaos that ends without a call from now on.
    pub fn witness(self: &Arc<Self>, chaos: &Chaos) {
        let log = Arc::downgrade(self);
        chaos.witness(move |event, was| {
            if let (Some(log), Some(reason)) = (log.upgrade(), &event.reason) {
                log.record(AuditEntry {
                    action: "chaos ended".to_owned(),
                    target: event.now.scope.clone(),
                    detail: reason.clone(),
                    before: digest_of(was),
                    after: digest_of(&event.now),
                    ..AuditEntry::default()
                });
            }
        });
    }

    /// Queues an entry for something that happened without a call. The default of the workspace is the default one,
    /// of the outcome [`AuditOutcome::Done`].
    pub fn record(&self, entry: AuditEntry) {
        let or = |text: String, default: &str| match text {
            empty if empty.is_empty() => default.to_owned(),
            text => text,
        };
        self.push(AuditEntry {
            at: i64::try_from(self.now()).unwrap_or(i64::MAX),
            workspace: or(entry.workspace, DEFAULT_WORKSPACE),
            outcome: or(entry.outcome, AuditOutcome::Done.as_str()),
            actor: RESERVED[0].to_owned(),
            source: "-".to_owned(),
            ..entry
        });
        self.changed.notify_one();
    }

    fn push(&self, entry: AuditEntry) {
        let mut queue = lock(&self.queue);
        if queue.entries.len() < MOST {
            queue.entries.push_back(entry);
        } else {
            queue.lost += 1;
        }
    }

    /// Writes queued entries until `stopping`.
    pub async fn keep_writing(self: Arc<Self>, stopping: CancellationToken) {
        loop {
            let is_behind = !lock(&self.queue).entries.is_empty() && !self.store.is_blank();
            let has_denied = !lock(&self.denied).is_empty();
            tokio::select! {
                () = self.changed.notified() => {}
                () = tokio::time::sleep(denied::EVERY), if has_denied => {}
                () = tokio::time::sleep(AGAIN), if is_behind => {}
                () = stopping.cancelled() => return,
            }
            self.write_all(false).await;
        }
    }

    /// Writes the entries that still wait, as far as the store accepts them.
    pub async fn stop(&self) {
        self.write_all(true).await;
    }

    async fn write_all(&self, is_last: bool) {
        let denied = lock(&self.denied).take(Instant::now(), is_last);
        if let Some(detail) = denied {
            self.record(AuditEntry {
                action: "denied".to_owned(),
                target: "-".to_owned(),
                outcome: AuditOutcome::Refused.as_str().to_owned(),
                detail,
                ..AuditEntry::default()
            });
        }
        // Do not open an in-memory store only for this.
        if !self.store.is_blank() {
            self.write().await;
        }
    }

    /// Writes all waiting entries, oldest first; the store's failures leave them in the queue.
    async fn write(&self) {
        let _turn = self.turn.lock().await;
        loop {
            let entries: Vec<_> = {
                let queue = lock(&self.queue);
                queue.entries.iter().take(AT_ONCE).cloned().collect()
            };
            if entries.is_empty() {
                return;
            }
            if let Err(error) = self.store.append_audit(&entries).await {
                return self.outage.begin(&error);
            }
            self.outage.end();
            let mut queue = lock(&self.queue);
            queue.entries.drain(..entries.len());
            let lost = std::mem::take(&mut queue.lost);
            drop(queue);
            if lost > 0 {
                self.record(AuditEntry {
                    action: "lost".to_owned(),
                    target: "-".to_owned(),
                    outcome: AuditOutcome::Failed.as_str().to_owned(),
                    detail: format!("{lost} entries found no room while the store was away"),
                    ..AuditEntry::default()
                });
            }
        }
    }
}
