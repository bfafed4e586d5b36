//! The journal in the store, written without delaying exchanges.
//!
//! The recorder's thread selects exchanges and puts them into a bounded queue; it never waits. A task writes them
//! in batches, one transaction each. While the store is away the task retries the batch and the queue fills;
//! exchanges that do not fit are dropped and counted. Exchanges left out by sampling have their own count.
//! [`prune`] deletes exchanges and runs beyond the limits.
//!
//! ```text
//! collector ─ ended() ▶ queue ─▶ writer ─▶ Store ◀─ prune()
//!                │ full: dropped     └─ away: the same batch again
//!                └ more than a second's share: sampled out
//! ```

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use squall_journal::id::ExchangeId;
use squall_journal::record::ExchangeRecord;
use squall_journal::ring::{Entry as _, Filter, Page};
use squall_proxy::metrics::{Metrics, Sink};
use squall_proxy::recorder::{ExchangeNote, ExchangeObserver, Recorder};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::lock;
use crate::readiness::BrokenFile;
use crate::store::{ExchangeRow, Retain, Store, StoreError, StoreFailure};

/// Most exchanges in one transaction.
const BATCH: usize = 1_024;

/// How long the first exchange of a batch waits for others, unless a reader waits.
const GATHER: Duration = Duration::from_secs(1);

/// Exchanges without a fault that are kept per second, with [`ExchangeChoice::Faulted`].
const SHARE: u32 = 1_000;

/// Pause before the writer retries a batch.
const AGAIN: Duration = Duration::from_secs(1);

/// Interval between two prunings.
const PRUNE: Duration = Duration::from_secs(10);

/// How long a reader waits for exchanges in the queue.
const SETTLE: Duration = Duration::from_secs(1);

/// Time limit for writing the last batches when the daemon stops.
const FAREWELL: Duration = Duration::from_secs(3);

/// Which exchanges are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExchangeChoice {
    /// All.
    All,
    /// Those of runs, those with an applied rule, and those with a canary; of the others at most 1,000 a second.
    Faulted,
    /// None.
    None,
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
    queue: mpsc::Sender<QueueMessage>,
    due: Arc<Notify>,
    away: Arc<Mutex<Option<StoreError>>>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
enum QueueMessage {
    Keep(Arc<ExchangeNote>),
    /// Is answered once everything before it is written.
    Settle(oneshot::Sender<()>),
    /// The last message.
    Stop,
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
        let (queue, messages) = mpsc::channel(options.queue.max(1));
        let (away, due) = (Arc::new(Mutex::new(None)), Arc::new(Notify::new()));
        recorder.observe(Box::new(QueueFiller {
            queue: queue.clone(),
            due: Arc::clone(&due),
            share,
            metrics: Arc::clone(metrics),
        }));
        let writer = Writer {
            store: store.clone(),
            metrics: Arc::clone(metrics),
            away: Arc::clone(&away),
            due: Arc::clone(&due),
            messages,
        };
        Some(Arc::new(Self {
            store: store.clone(),
            recorder: recorder.clone(),
            queue,
            due,
            away,
            writer: Mutex::new(Some(tokio::spawn(writer.run()))),
        }))
    }

    /// A page of exchanges, newest first, from memory and the store, and where the next one begins. While the store is
    /// away, the page has those in memory and a cursor; only a page beyond them is an error.
    pub(crate) async fn page(
        &self,
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
            Err(_) if !held.is_empty() => (Vec::new(), false),
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
        &self,
        id: ExchangeId,
    ) -> Result<Option<ExchangeRecord>, StoreError> {
        self.settled().await;
        self.store.exchange(id).await
    }

    /// Waits until queued exchanges are written; at most [`SETTLE`], and not while the store is away.
    pub(crate) async fn settled(&self) {
        if self.away().is_some() {
            return;
        }
        let (done, settled) = oneshot::channel();
        let settled = async {
            if self.queue.send(QueueMessage::Settle(done)).await.is_ok() {
                self.due.notify_one();
                // No reply after the writer has ended.
                let _ = settled.await;
            }
        };
        // If the store takes longer, it is read as it is.
        let _ = tokio::time::timeout(SETTLE, settled).await;
    }

    fn away(&self) -> Option<StoreError> {
        lock(&self.away).clone()
    }

    /// Why exchanges cannot be stored at the moment.
    pub fn broken(&self) -> Option<BrokenFile> {
        let error = self.away()?;
        Some(BrokenFile {
            file: "store".to_owned(),
            error: format!("exchanges are not written: {error}"),
        })
    }

    /// Writes queued exchanges and ends. The time is bounded: while the store is away they are lost.
    pub async fn stop(&self) {
        let Some(mut writer) = lock(&self.writer).take() else {
            return;
        };
        let ended = async {
            let _ = self.queue.send(QueueMessage::Stop).await;
            self.due.notify_one();
            let _ = (&mut writer).await;
        };
        if tokio::time::timeout(FAREWELL, ended).await.is_err() {
            tracing::warn!("the last exchanges could not be stored");
            writer.abort();
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
            tokio::time::sleep(PRUNE).await;
        }
    };
    stopping.run_until_cancelled(Box::pin(pruning)).await;
}

/// Selects exchanges, on the collector's thread.
struct QueueFiller {
    queue: mpsc::Sender<QueueMessage>,
    due: Arc<Notify>,
    /// Limits exchanges without a fault; `None` when all are stored. Only the collector takes the lock.
    share: Option<Mutex<SampleLimit>>,
    metrics: Arc<Metrics>,
}

impl ExchangeObserver for QueueFiller {
    fn ended(&self, note: &Arc<ExchangeNote>) {
        let matters = || note.run.is_some() || note.had_fault("*") || !note.canaries.is_empty();
        if let Some(share) = &self.share
            && !matters()
            && !lock(share).takes(Instant::now())
        {
            self.metrics.sampled_out();
        } else if self
            .queue
            .try_send(QueueMessage::Keep(Arc::clone(note)))
            .is_err()
        {
            self.metrics.dropped(Sink::Store, 1);
            if let Some(run) = &note.run {
                run.lose_one();
            }
        }
        let most = self.queue.max_capacity();
        if most - self.queue.capacity() >= BATCH.min(most) {
            self.due.notify_one();
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

/// The task that writes.
struct Writer {
    store: Store,
    metrics: Arc<Metrics>,
    away: Arc<Mutex<Option<StoreError>>>,
    /// Ends the wait for a batch: it is full, or a reader waits.
    due: Arc<Notify>,
    messages: mpsc::Receiver<QueueMessage>,
}

/// A batch from the queue.
#[derive(Default)]
struct Gathered {
    notes: Vec<Arc<ExchangeNote>>,
    waiting: Vec<oneshot::Sender<()>>,
    last: bool,
}

impl Writer {
    async fn run(mut self) {
        while let Some(first) = self.messages.recv().await {
            let gathered = self.gather(first).await;
            self.write(gathered.notes).await;
            for waiting in gathered.waiting {
                // The reader may have timed out.
                let _ = waiting.send(());
            }
            if gathered.last {
                return;
            }
        }
    }

    /// Collects messages for a second; ends at once when a batch is full or a reader waits. Single exchanges do
    /// not wake it.
    async fn gather(&mut self, first: QueueMessage) -> Gathered {
        let mut gathered = Gathered::default();
        gathered.add(first);
        self.drain(&mut gathered);
        if !gathered.is_due() {
            let _due = tokio::time::timeout(GATHER, self.due.notified()).await;
            self.drain(&mut gathered);
        }
        gathered
    }

    /// Takes what the queue holds, at most a batch.
    fn drain(&mut self, gathered: &mut Gathered) {
        while !gathered.is_full()
            && let Ok(next) = self.messages.try_recv()
        {
            gathered.add(next);
        }
    }

    /// Writes a batch; retries while the store is away.
    async fn write(&self, notes: Vec<Arc<ExchangeNote>>) {
        if notes.is_empty() {
            return;
        }
        let count = notes.len() as u64;
        let of_runs: Vec<_> = notes.iter().filter_map(|note| note.run.clone()).collect();
        // Formatting takes too long for the API's runtime.
        let format = move || {
            let records = notes.iter().map(|note| note.to_record());
            records.map(|record| ExchangeRow::of(&record)).collect()
        };
        let rows: Vec<ExchangeRow> = match tokio::task::spawn_blocking(format).await {
            Ok(rows) => rows,
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        };
        loop {
            match self.store.keep(&rows).await {
                Ok(_) => {
                    if lock(&self.away).take().is_some() {
                        tracing::info!("the store is back: exchanges are written again");
                    }
                    self.metrics.stored(count);
                    return;
                }
                Err(error) if error.kind == StoreFailure::Rejected => {
                    // A retry would fail again and block all later batches.
                    tracing::error!(count, "exchanges are lost: {error}");
                    self.metrics.dropped(Sink::Store, count);
                    for run in of_runs {
                        run.lose_one();
                    }
                    return;
                }
                Err(error) => {
                    if lock(&self.away).replace(error.clone()).is_none() {
                        tracing::error!("exchanges are not written: {error}");
                    }
                    tokio::time::sleep(AGAIN).await;
                }
            }
        }
    }
}

impl Gathered {
    fn add(&mut self, message: QueueMessage) {
        match message {
            QueueMessage::Keep(note) => self.notes.push(note),
            QueueMessage::Settle(waiting) => self.waiting.push(waiting),
            QueueMessage::Stop => self.last = true,
        }
    }

    fn is_full(&self) -> bool {
        self.last || self.notes.len() >= BATCH
    }

    fn is_due(&self) -> bool {
        self.is_full() || !self.waiting.is_empty()
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
