//! Runs, as the proxy knows them: whose an exchange is, whether all of them are there, and what cut a run
//! short.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// A run, for as long as anything of it is under way.
#[derive(Debug)]
pub struct RunMark {
    id: Arc<str>,
    lost: AtomicU64,
    cut: CancellationToken,
    why: OnceLock<String>,
    approved: AtomicBool,
    /// Each exchange of it is to have a connection of its own.
    anew: CancellationToken,
    /// The same, or the run is over.
    over: CancellationToken,
}

impl RunMark {
    /// A run that has just begun.
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

    /// An exchange of the run did not get into the journal or the store.
    pub fn lose_one(&self) {
        self.lost.fetch_add(1, Ordering::Relaxed);
    }

    /// Somebody has approved the run: it may reach the hosts that need approval.
    pub fn approve(&self) {
        self.approved.store(true, Ordering::Release);
    }

    /// Whether somebody has approved it.
    pub fn is_approved(&self) -> bool {
        self.approved.load(Ordering::Acquire)
    }

    /// Somebody else ended its chaos; the first word counts.
    pub fn cut_short(&self, why: &str) {
        if self.why.set(why.to_owned()).is_ok() {
            self.cut.cancel();
        }
    }

    /// From now on a connection takes one exchange of the run and closes, and those that are idle close: rules
    /// that fail connections are not met on one that is open.
    pub fn connect_anew(&self) {
        self.anew.cancel();
    }

    /// The run is over, and connections that carry its traffic close once they are idle.
    pub fn end(&self) {
        self.over.cancel();
    }

    /// Cancelled when connections that carry its traffic are to close once they are idle. Between two askings
    /// they stay: an agent that is just about to use one again would take the close for a fault.
    /// `shares`: others use the scope too, whose connections are not closed because the run is over.
    pub(crate) fn connections_over(&self, shares: bool) -> &CancellationToken {
        if shares { &self.anew } else { &self.over }
    }

    /// Cancelled when somebody else ends its chaos.
    pub fn cut(&self) -> &CancellationToken {
        &self.cut
    }

    /// Why somebody else ended its chaos; `None` while nobody has.
    pub fn why(&self) -> Option<&str> {
        self.why.get().map(String::as_str)
    }
}

/// The exchanges of a run's activation, counted.
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

    /// An exchange is over and written down, or others are written down in its place.
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
