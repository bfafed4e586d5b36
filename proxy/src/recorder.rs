//! Passes exchanges from the data plane to the journal, without blocking.
//!
//! A worker records an exchange as an [`ExchangeNote`] with raw parts only, and pushes it onto a
//! bounded lock-free queue. One collector thread takes notes from it in batches. It redacts them,
//! updates the metrics, adds them to the ring and the event log, and wakes event streams. Readers
//! do the formatting.
//!
//! ```text
//! worker ─ record() ─┐                               ┌─ metrics
//! worker ─ record() ─┼─▶ queue ─▶ collector: redact ─┼─ ring   ─▶ exchanges(), exchange()
//! worker ─ record() ─┘   bounded                     └─ events ─▶ events_after(), changes()
//! ```
//!
//! The bytes of calls in the queue are bounded. If there is no room, the call's record lacks what
//! they contain (model, tokens, tools), and the call is counted as dropped.
//!
//! The collector checks the queue every `PERIOD`, or earlier when a batch is full or the bytes take
//! half of their room. So a worker seldom makes a system call.

mod answering;
mod calls;
mod capture;
mod collector;
mod mcp;
mod meter;
mod model;
mod near_miss;
mod note;
#[cfg(test)]
mod tests;
mod traffic;
mod websocket;

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::thread::{JoinHandle, Thread};
use std::time::{Duration, Instant, SystemTime};

use crossbeam_queue::SegQueue;
use squall_journal::activation::ChaosEvent;
use squall_journal::events::{self, Batch, EventId, EventLog};
use squall_journal::id::ExchangeId;
use squall_journal::redact::Redactor;
use squall_journal::ring::{self, Filter, Page, Ring};
use tokio::sync::watch;

pub(crate) use self::answering::Answering;
pub(crate) use self::calls::CallTap;
pub(crate) use self::capture::Capture;
use self::collector::Collector;
pub(crate) use self::mcp::RpcTraffic;
pub(crate) use self::meter::Meter;
pub(crate) use self::model::ModelTraffic;
pub use self::near_miss::dry_run;
pub(crate) use self::note::spent;
pub use self::note::{CanaryNote, CanaryOrigin, ExchangeNote};
pub(crate) use self::traffic::Traffic;
pub(crate) use self::websocket::SocketTap;
use crate::lock::lock;
use crate::metrics::{Metrics, Sink};

/// Longest time that a note waits for the collector. A wake-up per note would cost an exchange more
/// than all other work for the journal.
const PERIOD: Duration = Duration::from_millis(20);

/// Most notes of one batch. A batch is added under one lock, so this bounds the wait of readers.
/// This many queued notes wake the collector early.
const BATCH: usize = 512;

/// Limits of the journal.
#[derive(Debug, Clone)]
pub struct RecorderOptions {
    /// Exchanges that can be listed.
    pub ring: ring::Bounds,
    /// Events that a stream can resume from.
    pub events: events::Bounds,
    /// Most notes in the queue, at least 1; more are dropped and counted. Default 65 536.
    pub queue: usize,
    /// Most bytes of model calls and MCP requests in the queue. More are not parsed, and counted as
    /// dropped. Default 32 MiB.
    pub unread: usize,
    /// Removes secrets from everything before it is stored.
    pub redactor: Redactor,
}

impl Default for RecorderOptions {
    fn default() -> Self {
        Self {
            ring: ring::Bounds::default(),
            events: events::Bounds::default(),
            queue: 65_536,
            unread: 32 << 20,
            redactor: Redactor::default(),
        }
    }
}

/// An event for event streams.
#[derive(Debug, Clone)]
pub enum JournalEvent {
    /// An exchange ended.
    Exchange(Arc<ExchangeNote>),
    /// The activation of a scope changed.
    Chaos(Arc<ChaosEvent>),
    /// A run made progress.
    Run {
        /// The run's scope.
        scope: Arc<str>,
        /// The progress, as a JSON document.
        document: Arc<str>,
    },
}

/// Observes exchanges at their end.
pub trait ExchangeObserver: Send + Sync {
    /// An exchange ended; its secrets are redacted. Called on the collector's thread, so it must
    /// not block.
    fn ended(&self, note: &Arc<ExchangeNote>);
}

/// Records exchanges; clones write into the same journal.
#[derive(Debug, Clone)]
pub struct Recorder {
    shared: Arc<Shared>,
}

/// The start time of the recorder on both clocks, to convert instants to dates.
#[derive(Debug, Clone, Copy)]
struct Anchor {
    instant: Instant,
    unix_ms: u64,
}

/// An item in the collector's queue.
enum Queued {
    Exchange(Noted),
    /// The sender waits until all earlier items are in the journal.
    Flush(SyncSender<()>),
}

/// An exchange, with the bytes that the collector parses.
struct Noted {
    note: Arc<ExchangeNote>,
    traffic: Option<Box<Traffic>>,
}

struct Shared {
    /// Grows in segments, so an idle daemon holds none; [`Recorder::record`] enforces the bound.
    queue: SegQueue<Queued>,
    most_queued: usize,
    /// Bytes that queued notes hold for the collector.
    unread: AtomicUsize,
    most_unread: usize,
    counter: AtomicU32,
    daemon: u16,
    anchor: Anchor,
    redactor: Redactor,
    metrics: Arc<Metrics>,
    journal: Mutex<Journal>,
    changed: watch::Sender<()>,
    observers: Mutex<Vec<Box<dyn ExchangeObserver>>>,
    thread: OnceLock<Thread>,
    stopping: AtomicBool,
    /// The collector no longer checks the queue.
    ended: AtomicBool,
    join: Mutex<Option<JoinHandle<()>>>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder")
            .field("queued", &self.queue.len())
            .finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct Journal {
    ring: Ring<Arc<ExchangeNote>>,
    events: EventLog<JournalEvent>,
}

impl Recorder {
    /// Starts the collector thread. Fails only if the system cannot start a thread.
    pub fn start(options: RecorderOptions, metrics: Arc<Metrics>) -> std::io::Result<Self> {
        let anchor = Anchor::now();
        // Differs between restarts of this daemon and between daemons on one machine.
        let daemon = anchor.unix_ms.wrapping_mul(0x9e37_79b9_7f4a_7c15)
            ^ u64::from(std::process::id()).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let log = (daemon >> 32) as u32;
        let shared = Arc::new(Shared {
            queue: SegQueue::new(),
            most_queued: options.queue.max(1),
            unread: AtomicUsize::new(0),
            most_unread: options.unread,
            counter: AtomicU32::new(0),
            daemon: (log >> 16) as u16,
            anchor,
            redactor: options.redactor,
            metrics,
            journal: Mutex::new(Journal {
                ring: Ring::new(options.ring),
                events: EventLog::new(log, options.events),
            }),
            changed: watch::Sender::new(()),
            observers: Mutex::default(),
            thread: OnceLock::new(),
            stopping: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            join: Mutex::new(None),
        });
        let collector = Collector::new(shared.clone());
        let thread = std::thread::Builder::new()
            .name("squall-journal".into())
            .spawn(move || collector.run())?;
        // The recorder is not shared yet, so the cell is empty.
        let _ = shared.thread.set(thread.thread().clone());
        *lock(&shared.join) = Some(thread);
        Ok(Self { shared })
    }

    /// The id of an exchange that starts at `started`.
    pub fn begin(&self, started: Instant) -> ExchangeId {
        let counter = self.shared.counter.fetch_add(1, Ordering::Relaxed);
        ExchangeId::new(
            self.shared.anchor.unix_ms(started),
            counter,
            self.shared.daemon,
        )
    }

    /// Records an exchange at its end, and once before with outcome `open` if it runs longer than a
    /// second. It never waits; if the queue is full, the note is dropped and counted.
    pub fn record(&self, note: impl Into<Arc<ExchangeNote>>) {
        self.record_with(note.into(), None);
    }

    /// [`Self::record`], with bytes for the collector.
    pub(crate) fn record_with(&self, note: Arc<ExchangeNote>, mut traffic: Option<Box<Traffic>>) {
        // Concurrent workers may exceed the bound by one note each.
        if self.shared.queue.len() >= self.shared.most_queued {
            return self.shared.lose(&note);
        }
        if let Some(traffic) = &mut traffic
            && !self.shared.has_room(traffic.unread())
        {
            self.shared.lose(&note);
            (traffic.model, traffic.mcp) = (None, None);
        }
        let noted = Noted { note, traffic };
        self.shared.queue.push(Queued::Exchange(noted));
        if self.shared.queue.len() == BATCH {
            self.shared.wake();
        }
    }

    /// Publishes a change of an activation to event streams.
    pub(crate) fn publish(&self, event: ChaosEvent) {
        let size = size_of::<ChaosEvent>() + event.now.scope.len() + event.now.profile.len() + 128;
        self.shared
            .journal()
            .events
            .push(JournalEvent::Chaos(Arc::new(event)), size);
        self.shared.changed.send_replace(());
    }

    /// Publishes a run's progress to event streams of its scope.
    pub fn publish_run(&self, scope: &str, document: &str) {
        let size = scope.len() + document.len() + 64;
        let event = JournalEvent::Run {
            scope: scope.into(),
            document: document.into(),
        };
        self.shared.journal().events.push(event, size);
        self.shared.changed.send_replace(());
    }

    /// Calls `observer` for every exchange that ends from now on.
    pub fn observe(&self, observer: Box<dyn ExchangeObserver>) {
        lock(&self.shared.observers).push(observer);
    }

    /// A page of exchanges, newest first; see [`Ring::page`].
    pub fn exchanges(
        &self,
        filter: &Filter,
        after: Option<ExchangeId>,
        limit: usize,
    ) -> Page<Arc<ExchangeNote>> {
        self.shared.journal().ring.page(filter, after, limit)
    }

    /// One exchange, while the ring holds it.
    pub fn exchange(&self, id: ExchangeId) -> Option<Arc<ExchangeNote>> {
        self.shared.journal().ring.find(id).cloned()
    }

    /// The newest event's id: the start for a stream that needs no past events.
    pub fn newest_event(&self) -> EventId {
        self.shared.journal().events.newest()
    }

    /// Events after `last`; see [`EventLog::after`]. A gap is counted as dropped events.
    pub fn events_after(&self, last: EventId, limit: usize) -> Batch<JournalEvent> {
        let batch = self.shared.journal().events.after(last, limit);
        if let Some(missed) = batch.gap.and_then(|gap| gap.missed) {
            self.shared.metrics.dropped(Sink::Events, missed);
        }
        batch
    }

    /// Changes when there are new events. Call [`Self::events_after`] before waiting on it.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.shared.changed.subscribe()
    }

    /// Time of `instant`, milliseconds since 1970.
    pub fn unix_ms(&self, instant: Instant) -> u64 {
        self.shared.anchor.unix_ms(instant)
    }

    /// Removes secrets from everything that is stored.
    pub fn redactor(&self) -> &Redactor {
        &self.shared.redactor
    }

    /// Waits until everything recorded before is in the journal. Blocks the thread; for tests and
    /// shutdown.
    pub fn flush(&self) {
        let (done, flushed) = sync_channel(1);
        self.shared.queue.push(Queued::Flush(done));
        self.shared.wake();
        // The collector empties the queue once more after it has set `ended`.
        if !self.shared.ended.load(Ordering::SeqCst) {
            // An error means that the collector has ended.
            let _ = flushed.recv();
        }
    }

    /// Stores what is queued and ends the collector thread. Later notes are lost. Blocks the
    /// thread.
    pub fn stop(&self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
        self.shared.wake();
        let thread = lock(&self.shared.join).take();
        if let Some(Err(panic)) = thread.map(JoinHandle::join) {
            std::panic::resume_unwind(panic);
        }
    }
}

impl Shared {
    fn journal(&self) -> MutexGuard<'_, Journal> {
        lock(&self.journal)
    }

    /// Counts an exchange whose note, or whose parsed bytes, are missing in the journal.
    fn lose(&self, note: &ExchangeNote) {
        self.metrics.dropped(Sink::Journal, 1);
        if let Some(run) = &note.run {
            run.lose_one();
        }
    }

    /// Reserves room for bytes that the collector parses; false if there is none.
    fn has_room(&self, bytes: usize) -> bool {
        if bytes == 0 {
            return true;
        }
        // Concurrent workers may exceed the bound by one call each.
        let has_room = self.unread.load(Ordering::Relaxed) + bytes <= self.most_unread;
        if has_room {
            let before = self.unread.fetch_add(bytes, Ordering::Relaxed);
            let half = self.most_unread / 2;
            if before < half && before + bytes >= half {
                self.wake();
            }
        }
        has_room
    }

    /// Releases reserved room.
    fn was_read(&self, bytes: usize) {
        self.unread.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn wake(&self) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }
}

impl Anchor {
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place that gives what was seen its date; everything goes by the instant"
    )]
    fn now() -> Self {
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let unix_ms = since_1970.map_or(0, millis);
        Self {
            instant: Instant::now(),
            unix_ms,
        }
    }

    fn unix_ms(self, instant: Instant) -> u64 {
        match instant.checked_duration_since(self.instant) {
            Some(later) => self.unix_ms.saturating_add(millis(later)),
            None => self.unix_ms.saturating_sub(millis(self.instant - instant)),
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
