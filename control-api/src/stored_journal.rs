//! The journal in the store, written without delaying exchanges.
//!
//! The recorder's thread selects exchanges and puts them into a bounded queue; it never waits. A task writes them
//! in batches, one transaction each. While the store is away the queue fills; exchanges that do not fit are dropped and
//! counted. Exchanges left out by sampling have their own count. [`prune`] deletes exchanges and runs beyond the limits.
//!
//! ```text
//! collector ─ ended() ▶ queue ─▶ write() ─▶ Store ◀─ prune()
//!                │ full: dropped
//!                └ more than a second's share: sampled out
//! ```

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use squall_journal::id::ExchangeId;
use squall_journal::record::ExchangeRecord;
use squall_journal::ring::{Entry as _, Filter, Page};
use squall_proxy::metrics::{Metrics, Sink};
use squall_proxy::recorder::{ExchangeNote, ExchangeObserver, Recorder};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::outage::Outage;
use crate::readiness::BrokenFile;
use crate::store::{ExchangeRow, Retain, Store, StoreError, StoreFailure};
use crate::{lock, tasks};

/// Most exchanges in one transaction.
const BATCH: usize = 1_024;

/// How long an exchange waits for others, unless a batch is full or a reader waits; also the pause before a retry.
const GATHER: Duration = Duration::from_secs(1);

/// Exchanges without a fault that are kept per second, with [`ExchangeChoice::Faulted`].
const SHARE: u32 = 1_000;

/// Interval between two prunings.
const PRUNE: Duration = Duration::from_secs(10);

/// How long a reader waits for exchanges in the queue.
const SETTLE: Duration = Duration::from_secs(1);

/// Time limit for writing the last batches when the daemon stops.
const FAREWELL: Duration = Duration::from_secs(3);

squall_documents::named! {
    /// Which exchanges are stored.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum ExchangeChoice {
        /// All.
        All = "all",
        /// Those of runs, those with an applied rule, and those with a canary; of the others at most 1,000 a second.
        Faulted = "faulted",
        /// None.
        None = "none",
    }
}

/// Options of the stored journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JournalOptions {
    /// Which exchanges. Default [`ExchangeChoice::Faulted`].
    pub exchanges: ExchangeChoice,
    /// The limits.
    pub retain: Retain,
    /// Size of the queue to the store, at least 1; further exchanges are dropped and counted. Default 8,192.
    pub queue: usize,
}

impl Default for JournalOptions {
    fn default() -> Self {
        Self {
            exchanges: ExchangeChoice::Faulted,
            retain: Retain::default(),
            queue: 8_192,
        }
    }
}

/// The stored journal of one daemon.
#[derive(Debug)]
pub struct StoredJournal {
    store: Store,
    recorder: Recorder,
    metrics: Arc<Metrics>,
    queue: Mutex<VecDeque<Arc<ExchangeNote>>>,
    /// Size of the queue.
    most: usize,
    /// Limits exchanges without a fault; `None` when all are stored. Only the collector takes the lock.
    share: Option<Mutex<SampleLimit>>,
    /// Serializes batches.
    turn: tokio::sync::Mutex<()>,
    /// A batch is full.
    due: Arc<Notify>,
    outage: Outage,
}

impl StoredJournal {
    /// Stores exchanges that end from now on; needs the runtime that will write. `None` with [`ExchangeChoice::None`].
    pub fn start(
        store: &Store,
        options: JournalOptions,
        recorder: &Recorder,
        metrics: &Arc<Metrics>,
    ) -> Option<Arc<Self>> {
        let share = match options.exchanges {
            ExchangeChoice::All => None,
            ExchangeChoice::Faulted => Some(Mutex::new(SampleLimit::new(SHARE))),
            ExchangeChoice::None => return None,
        };
        let due = Arc::new(Notify::new());
        let journal = Arc::new(Self {
            store: store.clone(),
            recorder: recorder.clone(),
            metrics: Arc::clone(metrics),
            queue: Mutex::default(),
            most: options.queue.max(1),
            share,
            turn: tokio::sync::Mutex::default(),
            due: Arc::clone(&due),
            outage: Outage::of("exchanges are not written"),
        });
        let weak = Arc::downgrade(&journal);
        recorder.observe(Box::new(QueueFiller(weak.clone())));
        tokio::spawn(async move {
            loop {
                // It writes after a notice as after a timeout.
                let _ = timeout(GATHER, due.notified()).await;
                let Some(journal) = weak.upgrade() else {
                    return;
                };
                journal.write().await;
                // A batch that filled meanwhile gave no notice.
                if !journal.outage.is_on() && lock(&journal.queue).len() >= BATCH {
                    due.notify_one();
                }
            }
        });
        Some(journal)
    }

    /// Selects an exchange, on the collector's thread.
    fn add(&self, note: &Arc<ExchangeNote>) {
        let matters = || note.run.is_some() || note.had_fault("*") || !note.canaries.is_empty();
        if let Some(share) = &self.share
            && !matters()
            && !lock(share).takes(Instant::now())
        {
            return self.metrics.sampled_out();
        }
        let mut queue = lock(&self.queue);
        if queue.len() >= self.most {
            drop(queue);
            return self.lose(std::slice::from_ref(note));
        }
        queue.push_back(Arc::clone(note));
        if queue.len() == BATCH.min(self.most) {
            self.due.notify_one();
        }
    }

    fn lose(&self, notes: &[Arc<ExchangeNote>]) {
        self.metrics.dropped(Sink::Store, notes.len() as u64);
        for run in notes.iter().filter_map(|note| note.run.as_ref()) {
            run.lose_one();
        }
    }

    /// Writes what the queue holds now, oldest first. What the store does not accept stays in it.
    async fn write(&self) {
        let _turn = self.turn.lock().await;
        let mut left = lock(&self.queue).len();
        while left > 0 {
            let notes: Vec<_> = {
                let queue = lock(&self.queue);
                queue.iter().take(left.min(BATCH)).cloned().collect()
            };
            left -= notes.len();
            let written = notes.clone();
            // Formatting takes too long for the API's runtime.
            let rows = tasks::blocking(move || {
                let records = written.iter().map(|note| note.to_record());
                records
                    .map(|record| ExchangeRow::of(&record))
                    .collect::<Vec<_>>()
            });
            match self.store.keep(&rows.await).await {
                Ok(_) => {
                    self.outage.end();
                    self.metrics.stored(notes.len() as u64);
                }
                Err(error) if error.kind == StoreFailure::Rejected => {
                    // A retry would fail again and block all later batches.
                    tracing::error!(count = notes.len(), "exchanges are lost: {error}");
                    self.lose(&notes);
                }
                Err(error) => return self.outage.begin(&error),
            }
            lock(&self.queue).drain(..notes.len());
        }
    }

    /// A page of exchanges, newest first, from memory and the store, and where the next one begins. While the store is
    /// away, the page has those in memory and a cursor; only a page beyond them is an error.
    pub(crate) async fn page(
        self: &Arc<Self>,
        filter: &Filter,
        after: Option<ExchangeId>,
        limit: usize,
    ) -> Result<Page<ExchangeRecord>, StoreError> {
        // Before memory is read: exchanges that leave memory meanwhile are in the store.
        self.settled().await;
        let stored = self.store.exchanges(filter, after, limit + 1).await;
        let held = self.recorder.exchanges(filter, after, limit + 1).items;
        let (stored, is_whole) = match stored {
            Ok(stored) => (stored, true),
            Err(_) if after.is_none() || !held.is_empty() => (Vec::new(), false),
            Err(error) => return Err(error),
        };
        // Memory's copy of an exchange wins.
        let held = held.iter().map(|note| note.to_record());
        let records = stored.into_iter().chain(held);
        let keyed = records.filter_map(|record| Some((record.id.parse().ok()?, record)));
        let all: BTreeMap<ExchangeId, ExchangeRecord> = keyed.collect();
        let more = all.len() > limit || !is_whole;
        let items: Vec<_> = all.into_iter().rev().take(limit).collect();
        Ok(Page {
            next: items.last().filter(|_| more).map(|(id, _)| *id),
            items: items.into_iter().map(|(_, record)| record).collect(),
        })
    }

    /// One exchange that is no longer in memory.
    pub(crate) async fn exchange(
        self: &Arc<Self>,
        id: ExchangeId,
    ) -> Result<Option<ExchangeRecord>, StoreError> {
        self.settled().await;
        self.store.exchange(id).await
    }

    /// Writes queued exchanges; waits at most [`SETTLE`], and not while the store is away.
    pub(crate) async fn settled(self: &Arc<Self>) {
        if !self.outage.is_on() {
            let journal = Arc::clone(self);
            let writing = tokio::spawn(async move { journal.write().await });
            // If the store takes longer, it is read as it is, and the batch goes on.
            let _ = timeout(SETTLE, writing).await;
        }
    }

    /// Why exchanges cannot be stored at the moment.
    pub fn broken(&self) -> Option<BrokenFile> {
        self.outage.broken()
    }

    /// Writes queued exchanges. The time is bounded: while the store is away they are lost.
    pub async fn stop(&self) {
        let writing = async {
            while !lock(&self.queue).is_empty() {
                self.write().await;
                if self.outage.is_on() {
                    sleep(GATHER).await;
                }
            }
        };
        let _ = timeout(FAREWELL, writing).await;
        let left: Vec<_> = lock(&self.queue).drain(..).collect();
        if !left.is_empty() {
            tracing::warn!("the last exchanges could not be stored");
            self.lose(&left);
        }
    }
}

/// Deletes exchanges and runs beyond the limits, now and every ten seconds, until `stopping`.
pub async fn prune(store: Store, retain: Retain, recorder: Recorder, stopping: CancellationToken) {
    let pruning = async {
        loop {
            let now = recorder.unix_ms(Instant::now());
            match store.prune(retain, now).await {
                // One transaction at a time, so that writers do not wait long.
                Ok(true) => {
                    tokio::task::yield_now().await;
                    continue;
                }
                Ok(false) => {}
                Err(error) => tracing::warn!("old exchanges and runs stay for now: {error}"),
            }
            sleep(PRUNE).await;
        }
    };
    stopping.run_until_cancelled(Box::pin(pruning)).await;
}

/// The journal, for the collector.
struct QueueFiller(Weak<StoredJournal>);

impl ExchangeObserver for QueueFiller {
    fn ended(&self, note: &Arc<ExchangeNote>) {
        if let Some(journal) = self.0.upgrade() {
            journal.add(note);
        }
    }
}

/// Admits at most `most` in each second.
#[derive(Debug)]
struct SampleLimit {
    most: u32,
    second: Option<Instant>,
    taken: u32,
}

impl SampleLimit {
    fn new(most: u32) -> Self {
        Self {
            most,
            second: None,
            taken: 0,
        }
    }

    fn takes(&mut self, now: Instant) -> bool {
        let same = |second: Instant| now.saturating_duration_since(second) < Duration::from_secs(1);
        if !self.second.is_some_and(same) {
            self.second = Some(now);
            self.taken = 0;
        }
        let takes = self.taken < self.most;
        self.taken += u32::from(takes);
        takes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_takes_its_share_and_the_next_one_its_own() {
        let mut share = SampleLimit::new(2);
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let taken = [0, 10, 20, 999, 1_000, 1_001, 1_999, 5_000].map(|ms| share.takes(at(ms)));
        assert_eq!(taken, [true, true, false, false, true, true, false, true]);
    }
}
