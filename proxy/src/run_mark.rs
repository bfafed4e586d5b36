//! Runs in the proxy: the run of an exchange, lost exchanges, and why a run was cut short.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// A run, as long as any part of it is in progress.
#[derive(Debug)]
pub struct RunMark {
    id: Arc<str>,
    lost: AtomicU64,
    cut: CancellationToken,
    why: OnceLock<String>,
    approved: AtomicBool,
    /// Cancelled when each exchange must use a new connection.
    anew: CancellationToken,
    /// Also cancelled when the run is over.
    over: CancellationToken,
}

impl RunMark {
    /// A run that starts.
    pub fn new(id: &str) -> Arc<Self> {
        let anew = CancellationToken::new();
        let over = anew.child_token();
        Arc::new(Self {
            id: id.into(),
            lost: AtomicU64::new(0),
            cut: CancellationToken::new(),
            why: OnceLock::new(),
            approved: AtomicBool::new(false),
            anew,
            over,
        })
    }

    /// Its id.
    pub fn id(&self) -> &Arc<str> {
        &self.id
    }

    /// Exchanges of the run that did not get into the journal or the store.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Counts an exchange of the run that is missing in the journal or the store.
    pub fn lose_one(&self) {
        self.lost.fetch_add(1, Ordering::Relaxed);
    }

    /// Approves the run: it may reach the hosts that need approval.
    pub fn approve(&self) {
        self.approved.store(true, Ordering::Release);
    }

    /// Whether the run was approved.
    pub fn is_approved(&self) -> bool {
        self.approved.load(Ordering::Acquire)
    }

    /// Records that others ended the run's chaos; only the first call counts.
    pub fn cut_short(&self, why: &str) {
        if self.why.set(why.to_owned()).is_ok() {
            self.cut.cancel();
        }
    }

    /// From now on a connection serves one exchange of the run, and idle connections close. Faults
    /// of connections need new connections.
    pub fn connect_anew(&self) {
        self.anew.cancel();
    }

    /// Ends the run; connections with its traffic close once they are idle.
    pub fn end(&self) {
        self.over.cancel();
    }

    /// Cancelled when connections with its traffic must close once idle. They stay open between two
    /// invocations: an agent that reuses a connection would treat the close as a fault. `shares`:
    /// others use the scope too, so the end of the run does not close connections.
    pub(crate) fn connections_over(&self, shares: bool) -> &CancellationToken {
        if shares { &self.anew } else { &self.over }
    }

    /// Cancelled when others end its chaos.
    pub fn cut(&self) -> &CancellationToken {
        &self.cut
    }

    /// Why others ended its chaos; `None` if they did not.
    pub fn why(&self) -> Option<&str> {
        self.why.get().map(String::as_str)
    }
}

/// The exchange counters of a run's activation.
#[derive(Debug)]
pub(crate) struct Counted {
    pub(crate) mark: Arc<RunMark>,
    begun: AtomicU64,
    open: AtomicU64,
    idle: Notify,
}

impl Counted {
    pub(crate) fn new(mark: &Arc<RunMark>) -> Self {
        Self {
            mark: Arc::clone(mark),
            begun: AtomicU64::new(0),
            open: AtomicU64::new(0),
            idle: Notify::new(),
        }
    }

    pub(crate) fn begun(&self) -> u64 {
        self.begun.load(Ordering::SeqCst)
    }

    pub(crate) fn begin(&self) {
        self.begun.fetch_add(1, Ordering::SeqCst);
        self.open.fetch_add(1, Ordering::SeqCst);
    }

    /// Counts the end of an exchange; `is_written` is false if other exchanges are recorded in its
    /// place.
    pub(crate) fn end(&self, is_written: bool) {
        if !is_written {
            self.begun.fetch_sub(1, Ordering::SeqCst);
        }
        if self.open.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.idle.notify_waiters();
        }
    }

    /// Waits until no exchange is open.
    pub(crate) async fn idle(&self) {
        loop {
            let idle = self.idle.notified();
            if self.open.load(Ordering::SeqCst) == 0 {
                return;
            }
            idle.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_is_idle_when_the_last_exchange_is_over() {
        let counted = Counted::new(&RunMark::new("r"));
        counted.idle().await;
        counted.begin();
        counted.begin();
        counted.end(true);
        let mut idle = std::pin::pin!(counted.idle());
        let mut nobody = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(idle.as_mut().poll(&mut nobody).is_pending());
        counted.end(false);
        idle.await;
        assert_eq!(counted.begun(), 1);
    }

    #[test]
    fn the_first_reason_counts() {
        let mark = RunMark::new("r");
        mark.cut_short("one");
        mark.cut_short("two");
        assert_eq!(mark.why(), Some("one"));
        assert!(mark.cut().is_cancelled());
    }
}
