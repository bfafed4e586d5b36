//! The runs of one daemon: queued, in progress, over; and those that other daemons have abandoned.

mod add;
mod end;
mod lease;
mod lifecycle;
mod requests;
mod spread;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use arc_swap::ArcSwap;
use squall_harness::run::{RunKind, RunRecord, RunState};
use squall_harness::runner::Execute;
use squall_proxy::chaos::Chaos;
use squall_proxy::metrics::Metrics;
use squall_proxy::recorder::Recorder;
use squall_proxy::upstream::HostPatterns;
use tokio::sync::{Semaphore, watch};

pub(crate) use self::add::RunOrder;
use super::active::{ActiveRun, RunLog};
use super::reach::OwnProxy;
use super::stop::StopReason;
use crate::audit::{AuditEntry, AuditLog, digest_of};
use crate::lock;
use crate::store::{RunEventRow, RunFilter, Store, StoreError};
use crate::stored_journal::StoredJournal;

/// Runs of one workspace in progress at once.
const AT_ONCE: usize = 4;

/// Runs of all workspaces in progress at once.
const ALL_AT_ONCE: usize = 16;

/// How long a request that approves or cancels a run waits until that is written.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long a stopping daemon waits until its runs have ended.
const LAST_PATIENCE: Duration = Duration::from_secs(5);

/// The parts that the runs of a daemon use.
pub struct RunsParts {
    /// Their store.
    pub store: Store,
    /// Chaos in force.
    pub chaos: Arc<Chaos>,
    /// The journal in memory.
    pub recorder: Recorder,
    /// The journal in the store; `None` when no exchanges are stored.
    pub journal: Option<Arc<StoredJournal>>,
    /// Metrics.
    pub metrics: Arc<Metrics>,
    /// The audit log, for changes without a call.
    pub audit: Arc<AuditLog>,
    /// Id of the daemon, the same after a restart.
    pub daemon: String,
    /// Executes runs.
    pub executor: Arc<dyn Execute>,
    /// Where Python modules of agents are searched.
    pub modules: PathBuf,
    /// Suites and hosts that need approval; a reload replaces it, for later runs.
    pub approval: ArcSwap<HostPatterns>,
}

/// The runs of one daemon.
pub struct Runs {
    parts: RunsParts,
    log: RunLog,
    reach: Arc<OwnProxy>,
    lanes: Mutex<BTreeMap<String, Lane>>,
    turns: Semaphore,
    active: Mutex<BTreeMap<String, Arc<ActiveRun>>>,
}

/// State that the runs of a workspace share; they do not wait for runs of other workspaces here.
#[derive(Debug, Clone)]
struct Lane {
    turns: Arc<Semaphore>,
    /// Held by the run that has exclusive use of the workspace's scope.
    exclusive: Arc<tokio::sync::Mutex<()>>,
}

impl Default for Lane {
    fn default() -> Self {
        Self {
            turns: Arc::new(Semaphore::new(AT_ONCE)),
            exclusive: Arc::default(),
        }
    }
}

impl Runs {
    /// Without runs.
    pub fn new(parts: RunsParts) -> Arc<Self> {
        for (kind, _) in RunKind::NAMES {
            let over = RunState::NAMES.iter().filter(|(_, state)| state.is_over());
            over.for_each(|(state, _)| parts.metrics.runs().none_ended(kind, state));
        }
        let reach = OwnProxy::new(Arc::clone(&parts.chaos), parts.recorder.clone());
        Arc::new(Self {
            log: RunLog {
                store: parts.store.clone(),
                recorder: parts.recorder.clone(),
                changed: watch::Sender::new(()),
            },
            reach,
            lanes: Mutex::default(),
            turns: Semaphore::new(ALL_AT_ONCE),
            active: Mutex::default(),
            parts,
        })
    }

    /// Replaces the list of what needs approval after a reload, for later runs.
    pub fn configure(&self, approval: HostPatterns) {
        self.parts.approval.store(Arc::new(approval));
    }

    /// Writes an audit entry for a run that changed without a call: its state before and after.
    fn note(
        &self,
        workspace: &str,
        action: &str,
        (before, after): (&RunRecord, &RunRecord),
        why: &str,
    ) {
        self.parts.audit.record(AuditEntry {
            workspace: workspace.to_owned(),
            action: action.to_owned(),
            target: format!("/v1/runs/{}", after.id),
            detail: why.to_owned(),
            before: digest_of(before),
            after: digest_of(after),
            ..AuditEntry::default()
        });
    }

    /// Stops a run early: its chaos first.
    fn stop(&self, run: &ActiveRun, why: StopReason) {
        run.stop(why);
        self.parts.chaos.end_for_run(None, &run.mark);
    }

    /// At most `limit` runs of a workspace, newest first, without their cells.
    pub(crate) async fn list(
        &self,
        workspace: &str,
        filter: &RunFilter,
        limit: usize,
    ) -> Result<Vec<RunRecord>, StoreError> {
        self.log.store.runs(workspace, filter, limit).await
    }

    /// One run of a workspace, executed by any daemon. If this daemon executes it, with the cells and coverage so
    /// far.
    pub(crate) async fn find(
        &self,
        workspace: &str,
        id: &str,
    ) -> Result<Option<RunRecord>, StoreError> {
        if let Some(run) = self.own(workspace, id) {
            return Ok(Some(run.shown()));
        }
        self.log.store.run(workspace, id).await
    }

    /// At most `limit` events of a run after number `after`. A reader of the `done` event finds the run over.
    pub(crate) async fn events(
        &self,
        run: &str,
        after: i64,
        limit: usize,
    ) -> Result<Vec<RunEventRow>, StoreError> {
        let events = self.log.store.run_events(run, after, limit).await?;
        if events.last().is_some_and(|last| last.name == "done") {
            let ending = self.active().get(run).cloned();
            if let Some(ending) = ending {
                ending.over.cancelled().await;
            }
        }
        Ok(events)
    }

    /// Changes when an event of a run of this daemon is stored.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.log.changed.subscribe()
    }

    /// Id of the daemon, the same after a restart.
    pub fn daemon(&self) -> &str {
        &self.parts.daemon
    }

    /// Whether the store holds runs of other daemons.
    pub(crate) fn is_shared(&self) -> bool {
        self.log.store.is_shared()
    }

    /// Stops all runs and waits, for a bounded time, until that is written.
    pub async fn stop_all(&self) {
        let all: Vec<_> = self.active().values().cloned().collect();
        for run in &all {
            self.stop(run, StopReason::Stopping);
        }
        let over = async {
            for run in &all {
                run.over.cancelled().await;
            }
        };
        if tokio::time::timeout(LAST_PATIENCE, over).await.is_err() {
            tracing::warn!("the end of some runs could not be written; they will be errored");
        }
    }

    fn own(&self, workspace: &str, id: &str) -> Option<Arc<ActiveRun>> {
        let active = self.active();
        let run = active.get(id).filter(|run| run.workspace == workspace);
        run.cloned()
    }

    /// The state that the runs of a workspace share.
    fn lane(&self, workspace: &str) -> Lane {
        let mut lanes = lock(&self.lanes);
        lanes.entry(workspace.to_owned()).or_default().clone()
    }

    fn forget(&self, run: &ActiveRun) {
        self.reach.close(&run.id);
        self.active().remove(&run.id);
        run.over.cancel();
    }

    fn active(&self) -> MutexGuard<'_, BTreeMap<String, Arc<ActiveRun>>> {
        lock(&self.active)
    }
}

impl std::fmt::Debug for Runs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Runs")
            .field("daemon", &self.parts.daemon)
            .finish_non_exhaustive()
    }
}
