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
use crate::metrics::Side;
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
    pub(crate) upstreams: Upstreams,
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
    fn new(engine: Arc<Engine>, draining: CancellationToken) -> Rc<Self> {
        Rc::new(Self {
            upstreams: Upstreams::new(Arc::clone(&engine.upstream_shared)),
            engine,
            draining,
            connections: RefCell::default(),
            open: RefCell::default(),
        })
    }

    /// Counts a connection as open and watches it until the slot is dropped; an idle one is ended by
    /// [`Worker::round`].
    pub(crate) fn slot(
        self: &Rc<Self>,
        control: &Rc<Control>,
        permit: OwnedSemaphorePermit,
    ) -> Slot {
        self.engine.metrics.connections(Side::Agent).inc();
        let watched = self.connections.borrow_mut().insert(Watched {
            control: Rc::downgrade(control),
            bytes_seen: Cell::new(0),
            idle_for: Cell::new(Duration::ZERO),
        });
        Slot {
            worker: Rc::clone(self),
            watched,
            _permit: permit,
        }
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

/// The place of a connection among those that are open, given back when this is dropped: in a panic too.
pub(crate) struct Slot {
    worker: Rc<Worker>,
    watched: usize,
    _permit: OwnedSemaphorePermit,
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.worker.engine.metrics.connections(Side::Agent).dec();
        let mut connections = self.worker.connections.borrow_mut();
        connections.try_remove(self.watched);
    }
}

/// A worker's life: serve what arrives until told to stop.
async fn run(engine: Arc<Engine>, workers: Arc<Workers>, mut jobs: mpsc::UnboundedReceiver<Job>) {
    let worker = Worker::new(engine, workers.draining.clone());
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

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use squall_profiles::library::Library;
    use squall_profiles::tools::ToolNames;

    use super::*;
    use crate::chaos::{Chaos, Defaults};
    use crate::config::ProxyConfig;
    use crate::daemon::{Parts, Proxy};
    use crate::metrics::Metrics;
    use crate::recorder::{Recorder, RecorderOptions};
    use crate::tls::CertificateAuthority;
    use crate::wire::Wire;

    fn proxy(home: &std::path::Path) -> Proxy {
        let metrics = Arc::new(Metrics::new("0"));
        let recorder = Recorder::start(RecorderOptions::default(), Arc::clone(&metrics)).unwrap();
        let chaos = Chaos::new(
            Library::default(),
            ToolNames::default(),
            Defaults::default(),
            recorder.clone(),
            Arc::clone(&metrics),
        );
        let mut config = ProxyConfig::with_home(home.to_owned());
        config.listen = "127.0.0.1:0".parse().unwrap();
        let ca = Arc::new(CertificateAuthority::load_or_create(home).unwrap());
        let parts = Parts {
            chaos,
            recorder,
            metrics,
            ca,
        };
        Proxy::start(config, parts).unwrap()
    }

    #[tokio::test]
    async fn a_connection_that_panics_gives_its_slot_back() {
        let home = tempfile::tempdir().unwrap();
        let proxy = proxy(home.path());
        let worker = Worker::new(Arc::clone(&proxy.engine), CancellationToken::new());
        let stream = tokio::net::TcpStream::connect(proxy.address()).await;
        let control = Wire::new(stream.unwrap()).unwrap().control();
        let permits = Arc::new(tokio::sync::Semaphore::new(1));
        let permit = Arc::clone(&permits).try_acquire_owned().unwrap();
        let served = catch_unwind(AssertUnwindSafe(|| {
            let _slot = worker.slot(&control, permit);
            assert_eq!(worker.connections.borrow().len(), 1);
            panic!("as it should");
        }));
        assert!(served.is_err());
        assert_eq!(worker.connections.borrow().len(), 0);
        assert_eq!(permits.available_permits(), 1);
    }
}
