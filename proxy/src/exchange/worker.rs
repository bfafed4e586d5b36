//! State that connections and exchanges of one worker share.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;

use slab::Slab;
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;

use crate::engine::ProxyEngine;
use crate::http1::Control;
use crate::metrics::Side;
use crate::upstream::Upstreams;

/// Interval at which a worker checks for idle connections and for exchanges to list as open.
pub(crate) const ROUND: Duration = Duration::from_millis(250);

/// A worker: the state of a thread that serves traffic.
pub(crate) struct ExchangeWorker {
    pub(crate) engine: Arc<ProxyEngine>,
    pub(crate) upstreams: Upstreams,
    pub(crate) draining: CancellationToken,
    connections: RefCell<Slab<WatchedConnection>>,
    open: RefCell<Slab<Weak<dyn OpenExchange>>>,
}

/// An exchange that has not ended.
pub(crate) trait OpenExchange {
    /// Lists it as open once it has run for `age`.
    fn announce_if_older_than(&self, age: Duration);
}

/// A connection with an idle timeout.
struct WatchedConnection {
    control: Weak<Control>,
    bytes_seen: Cell<u64>,
    idle_for: Cell<Duration>,
}

impl ExchangeWorker {
    pub(crate) fn new(engine: Arc<ProxyEngine>, draining: CancellationToken) -> Rc<Self> {
        Rc::new(Self {
            upstreams: Upstreams::new(Arc::clone(&engine.upstream_shared)),
            engine,
            draining,
            connections: RefCell::default(),
            open: RefCell::default(),
        })
    }

    /// Counts a connection as open until the slot is dropped. [`ExchangeWorker::round`] ends it
    /// when idle.
    pub(crate) fn slot(
        self: &Rc<Self>,
        control: &Rc<Control>,
        permit: OwnedSemaphorePermit,
    ) -> ConnectionSlot {
        self.engine.metrics.connections(Side::Agent).inc();
        let watched = self.connections.borrow_mut().insert(WatchedConnection {
            control: Rc::downgrade(control),
            bytes_seen: Cell::new(0),
            idle_for: Cell::new(Duration::ZERO),
        });
        ConnectionSlot {
            worker: Rc::clone(self),
            watched,
            _permit: permit,
        }
    }

    /// Adds an open exchange.
    pub(crate) fn opened(&self, exchange: Weak<dyn OpenExchange>) -> usize {
        self.open.borrow_mut().insert(exchange)
    }

    /// Removes an exchange that has ended.
    pub(crate) fn closed(&self, key: usize) {
        self.open.borrow_mut().try_remove(key);
    }

    /// Ends idle connections and announces exchanges that are still open.
    pub(crate) fn round(&self) {
        let limit = self.engine.compiled().config.limits.idle_timeout;
        for (_, watched) in self.connections.borrow().iter() {
            let Some(control) = watched.control.upgrade() else {
                continue;
            };
            let bytes = control.moved();
            if bytes != watched.bytes_seen.replace(bytes) {
                watched.idle_for.set(Duration::ZERO);
                continue;
            }
            watched.idle_for.set(watched.idle_for.get() + ROUND);
            if watched.idle_for.get() >= limit && !control.waits_for_others() {
                control.abort_idle();
            }
        }
        for (_, exchange) in self.open.borrow().iter() {
            if let Some(exchange) = exchange.upgrade() {
                exchange.announce_if_older_than(Duration::from_secs(1));
            }
        }
    }
}

/// A connection's entry among the open ones; dropping it removes the entry, also in a panic.
pub(crate) struct ConnectionSlot {
    worker: Rc<ExchangeWorker>,
    watched: usize,
    _permit: OwnedSemaphorePermit,
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.worker.engine.metrics.connections(Side::Agent).dec();
        let mut connections = self.worker.connections.borrow_mut();
        connections.try_remove(self.watched);
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
    use crate::daemon::{Proxy, ProxyParts};
    use crate::http1::Socket;
    use crate::metrics::Metrics;
    use crate::recorder::{Recorder, RecorderOptions};
    use crate::tls::CertificateAuthority;

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
        let parts = ProxyParts {
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
        let worker = ExchangeWorker::new(Arc::clone(&proxy.engine), CancellationToken::new());
        let stream = tokio::net::TcpStream::connect(proxy.address()).await;
        let control = Socket::new(stream.unwrap()).unwrap().control();
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
