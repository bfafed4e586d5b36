//! The threads that carry traffic.
//!
//! One single-threaded runtime per core, each with its own upstream connections: an exchange is
//! carried from its first byte to its last by one thread, without a lock or a wake-up across cores.

use std::cell::{Cell, RefCell};
use std::io;
use std::net::TcpStream;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::connection;
use crate::engine::Engine;
use crate::exchange_log::ExchangeLog;
use crate::listener::{Door, Listener};
use crate::request_body::Outgoing;
use crate::upstream::Upstreams;
use crate::wire::Control;

/// How often a worker looks for connections that have been idle too long and exchanges that are
/// worth listing as open.
const ROUND: Duration = Duration::from_millis(250);

/// A connection on its way to a worker.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub(crate) stream: TcpStream,
    pub(crate) door: Door,
    /// Given back when the connection ends.
    pub(crate) permit: OwnedSemaphorePermit,
}

/// What a worker is asked to do.
enum Job {
    Connection(Arrival),
    Listen(Listener),
}

/// All workers, seen from outside.
pub(crate) struct Workers {
    jobs: Vec<mpsc::UnboundedSender<Job>>,
    next: AtomicUsize,
    /// No new connections and no new exchanges.
    pub(crate) draining: CancellationToken,
    /// Nothing any more.
    pub(crate) stopping: CancellationToken,
}

impl Workers {
    /// Starts `count` threads.
    pub(crate) fn start(
        engine: &Arc<Engine>,
        count: usize,
    ) -> io::Result<(Arc<Self>, Vec<JoinHandle<()>>)> {
        let draining = CancellationToken::new();
        let stopping = CancellationToken::new();
        let mut jobs = Vec::with_capacity(count);
        let mut receivers = Vec::with_capacity(count);
        for _ in 0..count {
            // Unbounded, but never more than the connections that the limit lets in.
            let (sender, receiver) = mpsc::unbounded_channel();
            jobs.push(sender);
            receivers.push(receiver);
        }
        let workers = Arc::new(Self {
            jobs,
            next: AtomicUsize::new(0),
            draining,
            stopping,
        });
        let mut threads = Vec::with_capacity(count);
        for (number, receiver) in receivers.into_iter().enumerate() {
            let (engine, workers) = (Arc::clone(engine), Arc::clone(&workers));
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            let thread = std::thread::Builder::new().name(format!("squall-{number}"));
            threads.push(thread.spawn(move || {
                let _precise = crate::timer::precise();
                let local = tokio::task::LocalSet::new();
                local.block_on(&runtime, run(engine, workers, receiver));
            })?);
        }
        Ok((workers, threads))
    }

    /// Gives a connection to the next worker in turn.
    pub(crate) fn hand_over(&self, arrival: Arrival) {
        let next = self.next.fetch_add(1, Ordering::Relaxed) % self.jobs.len();
        // A worker that is gone has stopped with all others; the connection is dropped with it.
        let _ = self.jobs[next].send(Job::Connection(arrival));
    }

    /// Accepts from `listener` on one of the workers.
    pub(crate) fn listen(&self, listener: Listener) {
        let next = self.next.fetch_add(1, Ordering::Relaxed) % self.jobs.len();
        let _ = self.jobs[next].send(Job::Listen(listener));
    }
}

/// What connections and exchanges of one worker share.
pub(crate) struct Worker {
    pub(crate) engine: Arc<Engine>,
    pub(crate) upstreams: Upstreams<Outgoing>,
    pub(crate) draining: CancellationToken,
    connections: RefCell<slab::Slab<Watched>>,
    open: RefCell<slab::Slab<Weak<ExchangeLog>>>,
}

/// A connection whose idleness is watched.
struct Watched {
    control: Weak<Control>,
    bytes_seen: Cell<u64>,
    idle_for: Cell<Duration>,
}

impl Worker {
    /// Watches a connection until it is gone; an idle one is ended by [`Worker::round`].
    pub(crate) fn watch(&self, control: &Rc<Control>) -> usize {
        self.connections.borrow_mut().insert(Watched {
            control: Rc::downgrade(control),
            bytes_seen: Cell::new(0),
            idle_for: Cell::new(Duration::ZERO),
        })
    }

    /// Stops watching.
    pub(crate) fn unwatch(&self, key: usize) {
        self.connections.borrow_mut().try_remove(key);
    }

    /// Lists an exchange as open from its first second on.
    pub(crate) fn opened(&self, log: &Rc<ExchangeLog>) -> usize {
        self.open.borrow_mut().insert(Rc::downgrade(log))
    }

    /// Takes an exchange off the list.
    pub(crate) fn closed(&self, key: usize) {
        self.open.borrow_mut().try_remove(key);
    }

    /// Ends idle connections and announces exchanges that are still open.
    fn round(&self) {
        let limit = self.engine.live().config.limits.idle_timeout;
        for (_, watched) in self.connections.borrow().iter() {
            let Some(control) = watched.control.upgrade() else {
                continue;
            };
            let bytes = control.received() + control.sent();
            if bytes != watched.bytes_seen.replace(bytes) {
                watched.idle_for.set(Duration::ZERO);
                continue;
            }
            watched.idle_for.set(watched.idle_for.get() + ROUND);
            if watched.idle_for.get() >= limit && !control.waits_for_others() {
                control.abort_idle();
            }
        }
        for (_, log) in self.open.borrow().iter() {
            if let Some(log) = log.upgrade() {
                log.announce_if_older_than(Duration::from_secs(1));
            }
        }
    }
}

/// A worker's life: serve what arrives until told to stop.
async fn run(engine: Arc<Engine>, workers: Arc<Workers>, mut jobs: mpsc::UnboundedReceiver<Job>) {
    let worker = Rc::new(Worker {
        upstreams: Upstreams::new(Arc::clone(&engine.upstream_shared)),
        engine,
        draining: workers.draining.clone(),
        connections: RefCell::default(),
        open: RefCell::default(),
    });
    let tasks = TaskTracker::new();
    let rounds = tokio::task::spawn_local(rounds(Rc::clone(&worker)));
    loop {
        let job = tokio::select! {
            job = jobs.recv() => job,
            () = workers.draining.cancelled() => None,
        };
        match job {
            Some(Job::Connection(arrival)) => {
                tasks.spawn_local(connection::serve(Rc::clone(&worker), arrival));
            }
            Some(Job::Listen(listener)) => {
                let limit = Arc::clone(&worker.engine.connections);
                let closing = workers.draining.clone();
                tasks.spawn_local(accepting(listener, Arc::clone(&workers), limit, closing));
            }
            None => break,
        }
    }
    tasks.close();
    tokio::select! {
        () = tasks.wait() => {}
        () = workers.stopping.cancelled() => {}
    }
    rounds.abort();
}

async fn rounds(worker: Rc<Worker>) {
    loop {
        tokio::time::sleep(ROUND).await;
        worker.round();
    }
}

async fn accepting(
    listener: Listener,
    workers: Arc<Workers>,
    limit: Arc<tokio::sync::Semaphore>,
    closing: CancellationToken,
) {
    let address = listener.address;
    if let Err(error) = listener.accept(workers, limit, closing).await {
        tracing::error!(%address, %error, "stopped listening");
    }
}
