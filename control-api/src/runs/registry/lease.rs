//! Leases: this daemon says that it is there, and marks runs of those that are not as errored.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use squall_harness::run::RunRecord;
use tokio_util::sync::CancellationToken;

use super::super::active::{done, event_of, event_rows};
use super::super::stop::StopReason;
use super::Runs;
use crate::store::{Abandoned, GivenUp, StoreError};

/// How long other daemons trust this one to be there.
const LEASE: Duration = Duration::from_secs(10);

/// How often it says that it is.
const RENEW: Duration = Duration::from_secs(2);

impl Runs {
    /// Marks runs of this daemon's life before this one as errored, and those of daemons that lived for
    /// one command on the same store and are gone.
    pub async fn recover(&self) -> Result<(), StoreError> {
        let why = "its daemon ended in the middle of it";
        self.give_up(Abandoned::OfDaemon(&self.daemon), why).await?;
        self.give_up(Abandoned::Expired, why).await
    }

    /// Says again and again that this daemon is there, and marks the runs of daemons that do not as
    /// errored, until `stopping`. Does nothing while there is nothing to do.
    pub async fn keep_leases(self: Arc<Self>, stopping: CancellationToken) {
        let keeping = async {
            loop {
                tokio::time::sleep(RENEW).await;
                if let Err(error) = self.renew().await {
                    tracing::warn!("leases of runs are not renewed: {error}");
                }
            }
        };
        stopping.run_until_cancelled(Box::pin(keeping)).await;
    }

    async fn renew(&self) -> Result<(), StoreError> {
        // Taken before: what is added meanwhile is not among those that are looked at.
        let before: Vec<_> = self.active().values().cloned().collect();
        if !before.is_empty() {
            let held = self.log.store.renew_runs(&self.daemon, lease_ms()).await?;
            let lost = before
                .iter()
                .filter(|run| !held.iter().any(|id| id == &run.id));
            for run in lost.filter(|run| !run.over.is_cancelled()) {
                // It may have ended by itself between the two.
                if !run.record().state.is_over() {
                    self.stop(run, StopReason::Lease);
                }
            }
        }
        // On a file too: daemons that live for one command keep their runs there.
        let why = "its daemon is gone: it was not heard of for too long";
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
            let (kind, state) = (after.kind.as_str(), after.state.as_str());
            self.metrics.runs().ended(kind, state, None);
        }
        Ok(())
    }
}

/// How long a lease lasts, in milliseconds.
pub(super) fn lease_ms() -> i64 {
    i64::try_from(LEASE.as_millis()).unwrap_or(i64::MAX)
}
