//! Connections kept for reuse, per worker and per origin.
//!
//! Idle HTTP/1.1 connections are a stack: the last used one is reused first, so that the others
//! become idle long enough to close. HTTP/2 connections are shared. Another one is opened only at
//! the upstream's stream limit. A periodic sweep closes idle ones.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;

use hyper::client::conn::http2;
use tokio::sync::Notify;
use tokio::task::{spawn_local, yield_now};
use tokio::time::Instant;

use super::http1::Http1;
use super::http2::Http2;
use super::origin::UpstreamOrigin;
use super::sent::SentBody;
use super::settings::Settings;
use super::transport::ConnectionCounters;
use crate::http1::CasingCache;

/// Most idle HTTP/1.1 connections per origin and worker; others are closed after their exchange.
const IDLE_PER_ORIGIN: usize = 1024;

/// Sweeps per `idle_timeout`. An idle connection is kept for at least three quarters of it, and at
/// most for all of it.
const SWEEPS: u32 = 4;

/// A connection that was idle for this long is checked after the reactor has run, so that an arrived
/// FIN is seen.
const IDLE: Duration = Duration::from_secs(1);

/// How long an origin that was dialled for an intercepted tunnel counts as reachable.
const REACHABLE: Duration = Duration::from_secs(1);

/// Shortest interval between two sweeps, for any `idle_timeout`.
const SHORTEST_PERIOD: Duration = Duration::from_millis(10);

/// One worker's connections.
pub(super) struct ConnectionPool {
    endpoints: RefCell<HashMap<UpstreamOrigin, Rc<OriginPool>>>,
    casings: Rc<CasingCache>,
    sweeping: Cell<bool>,
    period: Cell<Duration>,
}

impl ConnectionPool {
    pub(super) fn new() -> Rc<Self> {
        Rc::new(Self {
            endpoints: RefCell::default(),
            casings: Rc::default(),
            sweeping: Cell::new(false),
            period: Cell::default(),
        })
    }

    /// The connections to `origin` under `settings`. Connections of older settings are dropped.
    pub(super) fn endpoint(
        self: &Rc<Self>,
        origin: &UpstreamOrigin,
        settings: &Arc<Settings>,
    ) -> Rc<OriginPool> {
        let holds = |endpoint: &Rc<OriginPool>| {
            Arc::ptr_eq(&endpoint.settings, settings) && !endpoint.retired.get()
        };
        let known = self.endpoints.borrow().get(origin).cloned().filter(holds);
        known.unwrap_or_else(|| self.new_endpoint(origin, settings))
    }

    fn new_endpoint(
        self: &Rc<Self>,
        origin: &UpstreamOrigin,
        settings: &Arc<Settings>,
    ) -> Rc<OriginPool> {
        let endpoint = Rc::new(OriginPool {
            origin: origin.clone(),
            settings: settings.clone(),
            casings: self.casings.clone(),
            idle: RefCell::default(),
            h2: RefCell::default(),
            probing: Cell::new(false),
            probed: Notify::new(),
            retired: Cell::new(false),
            reached: Cell::default(),
        });
        if let Some(old) = self
            .endpoints
            .borrow_mut()
            .insert(origin.clone(), endpoint.clone())
        {
            old.retire();
        }
        self.period.set(period(settings));
        self.sweep_from_now_on();
        endpoint
    }

    /// The connections to `origin`, if there were any under `settings`.
    pub(super) fn known(
        &self,
        origin: &UpstreamOrigin,
        settings: &Arc<Settings>,
    ) -> Option<Rc<OriginPool>> {
        let endpoints = self.endpoints.borrow();
        endpoints
            .get(origin)
            .filter(|e| Arc::ptr_eq(&e.settings, settings))
            .cloned()
    }

    fn sweep_from_now_on(self: &Rc<Self>) {
        if self.sweeping.replace(true) {
            return;
        }
        let pool: Weak<Self> = Rc::downgrade(self);
        let mut period = self.period.get();
        spawn_local(async move {
            loop {
                tokio::time::sleep(period).await;
                let Some(pool) = pool.upgrade() else { return };
                if pool.sweep() {
                    pool.sweeping.set(false);
                    return;
                }
                period = pool.period.get();
            }
        });
    }

    /// Closes connections that were idle too long; true if none is left.
    fn sweep(&self) -> bool {
        let mut endpoints = self.endpoints.borrow_mut();
        endpoints.retain(|_, endpoint| {
            endpoint.sweep();
            !endpoint.is_empty() || Rc::strong_count(endpoint) > 1
        });
        endpoints.is_empty()
    }
}

/// Time between two sweeps.
fn period(settings: &Settings) -> Duration {
    (settings.idle_timeout / SWEEPS).max(SHORTEST_PERIOD)
}

/// One worker's connections to one origin.
pub(super) struct OriginPool {
    pub(super) origin: UpstreamOrigin,
    pub(super) settings: Arc<Settings>,
    /// Casings of field names in responses.
    pub(super) casings: Rc<CasingCache>,
    idle: RefCell<Vec<IdleConnection>>,
    h2: RefCell<Vec<Rc<SharedH2>>>,
    probing: Cell<bool>,
    probed: Notify,
    /// The settings have changed: no connection is kept any more.
    retired: Cell<bool>,
    /// When it was last dialled for an intercepted tunnel.
    reached: Cell<Option<Instant>>,
}

struct IdleConnection {
    connection: Http1,
    since: Instant,
}

/// An HTTP/2 connection and its open streams.
pub(super) struct SharedH2 {
    sender: http2::SendRequest<SentBody>,
    streams: Cell<usize>,
    limit: Rc<Cell<usize>>,
    used: Cell<Instant>,
}

impl OriginPool {
    /// Records that it was dialled for an intercepted tunnel.
    pub(super) fn note_reached(&self) {
        self.reached.set(Some(Instant::now()));
    }

    /// Whether it was dialled for an intercepted tunnel within the last second.
    pub(super) fn was_reached(&self) -> bool {
        let reached = self.reached.get();
        reached.is_some_and(|reached| reached.elapsed() < REACHABLE)
    }

    /// An idle connection that is ready for a request.
    ///
    /// Idle connections are only checked here, and by each sweep.
    pub(super) async fn take_idle(&self, counters: &ConnectionCounters) -> Option<Http1> {
        loop {
            let IdleConnection { connection, since } = self.idle.borrow_mut().pop()?;
            if since.elapsed() > IDLE {
                yield_now().await;
            }
            connection.link().look();
            if connection.link().is_ready() {
                return Some(connection);
            }
            counters.count_replaced();
        }
    }

    /// True if an HTTP/1.1 connection is idle and open.
    pub(super) fn has_idle(&self) -> bool {
        let idle = self.idle.borrow();
        idle.iter().rev().any(|idle| {
            idle.connection.link().look();
            idle.connection.link().is_ready()
        })
    }

    /// Keeps a connection for reuse, as soon as it is ready for a request.
    pub(super) fn keep(self: &Rc<Self>, mut connection: Http1) {
        if connection.link().is_ready() {
            self.push(connection);
        } else if !connection.link().is_closed() {
            // The request's body is still being sent.
            let endpoint = Rc::downgrade(self);
            spawn_local(async move {
                if connection.becomes_ready().await
                    && let Some(endpoint) = endpoint.upgrade()
                {
                    endpoint.push(connection);
                }
            });
        }
    }

    /// Keeps a connection that is ready for a request.
    pub(super) fn push(&self, connection: Http1) {
        connection.link().rest();
        let mut idle = self.idle.borrow_mut();
        let kept = !self.retired.get() && !self.settings.idle_timeout.is_zero();
        if kept && idle.len() < IDLE_PER_ORIGIN {
            idle.push(IdleConnection {
                connection,
                since: Instant::now(),
            });
        }
    }

    /// An HTTP/2 connection below its stream limit.
    pub(super) fn h2_with_room(&self) -> Option<Rc<SharedH2>> {
        let mut shared = self.h2.borrow_mut();
        shared.retain(|connection| !connection.sender.is_closed());
        shared
            .iter()
            .find(|connection| connection.has_room())
            .cloned()
    }

    /// Keeps an HTTP/2 connection for later exchanges.
    pub(super) fn keep_h2(&self, connection: Http2) -> Rc<SharedH2> {
        let shared = Rc::new(SharedH2 {
            sender: connection.sender,
            streams: Cell::new(0),
            limit: connection.limit,
            used: Cell::new(Instant::now()),
        });
        if !self.retired.get() {
            self.h2.borrow_mut().push(shared.clone());
        }
        shared
    }

    /// Waits for the dial that checks this origin's protocol, or becomes that dial. Dropping the
    /// guard ends the wait of the others, whatever the result.
    pub(super) async fn probe(self: &Rc<Self>) -> Option<Probing> {
        if self.probing.replace(true) {
            self.probed.notified().await;
            return None;
        }
        Some(Probing(self.clone()))
    }

    fn is_empty(&self) -> bool {
        self.idle.borrow().is_empty() && self.h2.borrow().is_empty()
    }

    fn sweep(&self) {
        let (limit, period) = (self.settings.idle_timeout, period(&self.settings));
        let fresh = |since: Instant| since.elapsed() + period < limit;
        self.idle.borrow_mut().retain(|idle| {
            idle.connection.link().look();
            fresh(idle.since) && !idle.connection.link().is_closed()
        });
        self.h2.borrow_mut().retain(|connection| {
            !connection.sender.is_closed()
                && (connection.streams.get() > 0 || fresh(connection.used.get()))
        });
    }

    fn retire(&self) {
        self.retired.set(true);
        self.idle.borrow_mut().clear();
        self.h2.borrow_mut().clear();
    }
}

/// See [`OriginPool::probe`].
pub(super) struct Probing(Rc<OriginPool>);

impl Drop for Probing {
    fn drop(&mut self) {
        self.0.probing.set(false);
        self.0.probed.notify_waiters();
    }
}

impl SharedH2 {
    /// A sender for one request.
    pub(super) fn sender(&self) -> http2::SendRequest<SentBody> {
        self.sender.clone()
    }

    fn has_room(&self) -> bool {
        self.streams.get() < self.limit.get()
    }
}

/// A stream that counts as open until dropped.
pub(super) struct Stream(Rc<SharedH2>);

impl Stream {
    pub(super) fn open(connection: Rc<SharedH2>) -> Self {
        connection.streams.set(connection.streams.get() + 1);
        Self(connection)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.0.streams.set(self.0.streams.get().saturating_sub(1));
        self.0.used.set(Instant::now());
    }
}

#[cfg(test)]
mod testing {
    use super::ConnectionPool;

    impl ConnectionPool {
        pub(in crate::upstream) fn idle(&self) -> usize {
            let endpoints = self.endpoints.borrow();
            endpoints.values().map(|e| e.idle.borrow().len()).sum()
        }

        pub(in crate::upstream) fn clear(&self) {
            for (_, endpoint) in self.endpoints.borrow_mut().drain() {
                endpoint.retire();
            }
        }
    }
}
