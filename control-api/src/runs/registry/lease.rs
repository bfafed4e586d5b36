//! Leases: this daemon renews its own, and marks runs of daemons with expired ones as errored.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::json;
use squall_harness::run::RunRecord;
use tokio_util::sync::CancellationToken;

use super::super::active::{ActiveRun, done, event_of, event_rows};
use super::super::stop::StopReason;
use super::Runs;
use crate::store::{Abandoned, GivenUp, StoreError};

/// How long a lease lasts.
const LEASE: Duration = Duration::from_secs(10);

/// Interval between renewals.
const RENEW: Duration = Duration::from_secs(2);

/// Every how many intervals a daemon without unfinished runs looks for expired leases.
const IDLE: u32 = 5;

impl Runs {
    /// Marks runs as errored that a previous process of this daemon left, and those of ended one-command daemons
    /// on the same store.
    pub async fn recover(&self) -> Result<(), StoreError> {
        let why = "its daemon ended in the middle of it";
        self.give_up(Abandoned::OfDaemon(&self.parts.daemon), why)
            .await?;
        self.give_up(Abandoned::Expired, why).await
    }

    /// Renews this daemon's leases and marks runs of expired ones as errored, until `stopping`. Without unfinished
    /// runs, it looks less often: many idle daemons may share a store.
    pub async fn keep_leases(self: Arc<Self>, stopping: CancellationToken) {
        let keeping = async {
            let mut idle = 0;
            loop {
                tokio::time::sleep(RENEW).await;
                let is_idle = self.active().is_empty();
                idle = if is_idle { (idle + 1) % IDLE } else { 0 };
                if idle != 0 {
                    continue;
                }
                if let Err(error) = self.renew().await {
                    tracing::warn!("leases of runs are not renewed: {error}");
                }
            }
        };
        stopping.run_until_cancelled(Box::pin(keeping)).await;
    }

    async fn renew(&self) -> Result<(), StoreError> {
        // Before the renewal: runs that the store receives meanwhile are not checked.
        let stored = |run: &&Arc<ActiveRun>| run.is_stored.load(Ordering::Acquire);
        let before: Vec<_> = self.active().values().filter(stored).cloned().collect();
        if !before.is_empty() {
            let held = self
                .log
                .store
                .renew_runs(&self.parts.daemon, lease_ms())
                .await?;
            let lost = before
                .iter()
                .filter(|run| !held.iter().any(|id| id == &run.id));
            for run in lost.filter(|run| !run.over.is_cancelled()) {
                // It may have ended meanwhile.
                if !run.record().state.is_over() {
                    self.stop(run, StopReason::Lease);
                }
            }
        }
        // Also in a file: one-command daemons write runs to it.
        let why = "its daemon is gone: it did not renew the lease for too long";
        self.give_up(Abandoned::Expired, why).await
    }

    async fn give_up(&self, which: Abandoned<'_>, why: &str) -> Result<(), StoreError> {
        let at = self.log.now();
        let events = |record: &RunRecord, last: i64| {
            let state = json!(event_of(record, at.clone()));
            event_rows(last, &[("state", state), ("done", done(record))])
        };
        let given_up = self.log.store.give_up_runs(which, why, &at, events).await?;
        for run in given_up {
            let GivenUp {
                workspace,
                before,
                after,
            } = run;
            tracing::warn!(run = after.id, "the run is errored: {why}");
            self.note(&workspace, "run errored", (&before, &after), why);
            self.log.publish(&workspace, &event_of(&after, at.clone()));
            if after.part_of.is_none() {
                let (kind, state) = (after.kind.as_str(), after.state.as_str());
                self.parts.metrics.runs().ended(kind, state, None);
            }
        }
        Ok(())
    }
}

/// The length of a lease, milliseconds.
pub(super) fn lease_ms() -> i64 {
    i64::try_from(LEASE.as_millis()).unwrap_or(i64::MAX)
}
