//! The runs of one daemon: queued, under way, over; and those that others have given up.

mod add;
mod end;
mod lease;
mod lifecycle;
mod requests;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use squall_harness::run::RunRecord;
use squall_harness::runner::Execute;
use squall_proxy::chaos::Chaos;
use squall_proxy::metrics::Metrics;
use squall_proxy::recorder::Recorder;
use squall_proxy::upstream::HostPatterns;
use tokio::sync::{Semaphore, watch};

pub(crate) use self::add::NotAdded;
pub(crate) use self::requests::NotChanged;
use super::active::{ActiveRun, RunLog};
use super::reach::OwnProxy;
use super::stop::StopReason;
use crate::audit::{self, AuditLog, Digests};
use crate::store::{RunEventRow, RunFilter, Store, StoreError};
use crate::stored_journal::StoredJournal;

/// Runs of one workspace that are under way at once.
const AT_ONCE: usize = 4;

/// Runs of all workspaces that are under way at once.
const ALL_AT_ONCE: usize = 16;

/// How long a request that approves or cancels a run waits until that is written.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long a daemon that stops waits for its runs' ends.
const LAST_PATIENCE: Duration = Duration::from_secs(5);

/// What the runs of a daemon are made of.
pub struct RunsParts {
    /// Where they are kept.
    pub store: Store,
    /// What is in force.
    pub chaos: Arc<Chaos>,
    /// What went through.
    pub recorder: Recorder,
    /// What of it is in the store; `None` when nothing is kept there.
    pub journal: Option<Arc<StoredJournal>>,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// What is written down of what happens by itself.
    pub audit: Arc<AuditLog>,
    /// Id of the daemon, the same after a restart.
    pub daemon: String,
    /// What carries them out.
    pub executor: Arc<dyn Execute>,
    /// Where Python modules of agents are looked for.
    pub modules: PathBuf,
    /// Suites and hosts that need approval.
    pub approval: HostPatterns,
}

/// The runs of one daemon.
pub struct Runs {
    log: RunLog,
    chaos: Arc<Chaos>,
    journal: Option<Arc<StoredJournal>>,
    metrics: Arc<Metrics>,
    audit: Arc<AuditLog>,
    daemon: String,
    executor: Arc<dyn Execute>,
    modules: PathBuf,
    approval: ArcSwap<HostPatterns>,
    reach: Arc<OwnProxy>,
    lanes: Mutex<BTreeMap<String, Lane>>,
    turns: Semaphore,
    active: Mutex<BTreeMap<String, Arc<ActiveRun>>>,
}

/// What the runs of a workspace share: none waits for a run of another workspace here.
#[derive(Debug, Clone)]
struct Lane {
    turns: Arc<Semaphore>,
    /// Held by the run that has the workspace's scope for itself.
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
    /// None yet.
    pub fn new(parts: RunsParts) -> Arc<Self> {
        let reach = OwnProxy::new(Arc::clone(&parts.chaos), parts.recorder.clone());
        Arc::new(Self {
            log: RunLog {
                store: parts.store,
                recorder: parts.recorder,
                changed: watch::Sender::new(()),
            },
            chaos: parts.chaos,
            journal: parts.journal,
            metrics: parts.metrics,
            audit: parts.audit,
            daemon: parts.daemon,
            executor: parts.executor,
            modules: parts.modules,
            approval: ArcSwap::from_pointee(parts.approval),
            reach,
            lanes: Mutex::default(),
            turns: Semaphore::new(ALL_AT_ONCE),
            active: Mutex::default(),
        })
    }

    /// Takes over what needs approval from a config that was read anew, for runs that come from now on.
    pub fn configure(&self, approval: HostPatterns) {
        self.approval.store(Arc::new(approval));
    }

    /// Writes down what has become of a run of a workspace by itself: what it was, and is now.
    fn note(
        &self,
        workspace: &str,
        action: &str,
        (before, after): (&RunRecord, &RunRecord),
        why: &str,
    ) {
        let target = format!("/v1/runs/{}", after.id);
        let digests = Digests::of(before, after);
        self.audit.changed_in(
            workspace,
            action,
            &target,
            audit::Outcome::Done,
            why,
            digests,
        );
    }

    /// Ends a run before its end: chaos first.
    fn stop(&self, run: &ActiveRun, why: StopReason) {
        run.stop(why);
        self.chaos.end_for_run(None, &run.mark);
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

    /// One run of a workspace, whichever daemon executes it. Of one that this daemon executes the cells and the
    /// coverage so far.
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

    /// At most `limit` things that happened in a run after number `after`. Who hears that it is done finds
    /// it so.
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

    /// Changes when something has happened in a run of this daemon.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.log.changed.subscribe()
    }

    /// Id of the daemon, the same after a restart.
    pub(crate) fn daemon(&self) -> &str {
        &self.daemon
    }

    /// Whether other daemons' runs are in the same store.
    pub(crate) fn is_shared(&self) -> bool {
        self.log.store.is_shared()
    }

    /// Ends every run, and waits until that is written, a bounded time.
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

    /// What the runs of a workspace share.
    fn lane(&self, workspace: &str) -> Lane {
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        lanes.entry(workspace.to_owned()).or_default().clone()
    }

    fn forget(&self, run: &ActiveRun) {
        self.reach.close(&run.id);
        self.active().remove(&run.id);
        run.over.cancel();
    }

    fn active(&self) -> MutexGuard<'_, BTreeMap<String, Arc<ActiveRun>>> {
        // Whole between any two statements.
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Runs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Runs")
            .field("daemon", &self.daemon)
            .finish_non_exhaustive()
    }
}
