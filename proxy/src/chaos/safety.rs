//! Ends activations when their time to live is over.

use std::sync::Arc;
use std::time::Instant;

use tokio_util::sync::CancellationToken;

use super::Chaos;

impl Chaos {
    /// Ends activations as their times to live run out, until `shutdown`.
    pub async fn keep_time(self: Arc<Self>, shutdown: CancellationToken) {
        loop {
            let next = self.end_expired(Instant::now());
            tokio::select! {
                () = sleep_until(next) => {}
                () = self.deadlines.notified() => {}
                () = shutdown.cancelled() => return,
            }
        }
    }

    /// Ends what has expired at `now`, and returns the next expiry.
    pub(super) fn end_expired(&self, now: Instant) -> Option<Instant> {
        let is_over = |expires: Option<Instant>| expires.is_some_and(|at| at <= now);
        let table = self.table.load_full();
        for over in table.own().filter(|own| is_over(own.expires())) {
            // A newer activation has its own time to live.
            self.end_because(over.scope(), Some("its time to live is over"), |found| {
                is_over(found.expires())
            });
        }
        self.table
            .load()
            .own()
            .filter_map(|own| own.expires())
            .min()
    }
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}
