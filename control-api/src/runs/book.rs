//! The runs of one daemon: queued, under way, over; and those that others have given up.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use serde_json::json;
use squall_harness::scores::Bar;
use squall_journal::run::{CoverageRecord, RunKind, RunRecord, RunState, ScoresRecord};
use squall_journal::timestamp;
use squall_proxy::chaos::{Chaos, NO_CHAOS};
use squall_proxy::metrics::Metrics;
use squall_proxy::recorder::Recorder;
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;

use super::agent_name::agent_name;
use super::life::{Ending, Life, Unbegun};
use super::ongoing::{Ongoing, Parts, done, event_of};
use super::order::Wish;
use super::reach::OwnProxy;
use super::runner::{Order, RunError, Runner, Tools, Verdict};
use super::stop::Stop;
use super::suites::touched;
use super::{Approval, scope_of};
use crate::StoredJournal;
use crate::audit::{self, AuditLog};
use crate::problem::Detail;
use crate::store::{
    Abandoned, DEFAULT_WORKSPACE, NewRun, RunEventRow, RunFilter, Store, StoreError,
};

/// Runs under way at once.
const AT_ONCE: usize = 4;

/// Runs that are not over, those that wait included.
const MOST: usize = 100;

/// How long other daemons trust this one to be there.
const LEASE: Duration = Duration::from_secs(10);

/// How often it says that it is.
const RENEW: Duration = Duration::from_secs(2);

/// How long whoever cancels a run waits for its end.
const PATIENCE: Duration = Duration::from_secs(5);

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
    /// What carries them out, one for each kind.
    pub runners: Vec<Arc<dyn Runner>>,
    /// What needs a yes.
    pub approval: Approval,
}

/// The runs of one daemon.
pub struct Runs {
    store: Store,
    chaos: Arc<Chaos>,
    recorder: Recorder,
    journal: Option<Arc<StoredJournal>>,
    metrics: Arc<Metrics>,
    audit: Arc<AuditLog>,
    daemon: String,
    runners: Vec<Arc<dyn Runner>>,
    approval: RwLock<Approval>,
    reach: Arc<OwnProxy>,
    exclusive: Arc<tokio::sync::Mutex<()>>,
    turns: Arc<Semaphore>,
    ongoing: Mutex<BTreeMap<String, Arc<Ongoing>>>,
    changed: watch::Sender<()>,
}

/// Why a run was not taken.
#[derive(Debug)]
pub(crate) enum NotAdded {
    /// It makes no sense.
    Wrong(Vec<Detail>),
    /// There are too many that are not over.
    Full,
    /// It cannot be written down.
    Store(StoreError),
}

/// Why a run was not approved.
#[derive(Debug)]
pub(crate) enum NotApproved {
    /// There is none of that id.
    Unknown,
    /// It waits for nobody's yes.
    NotAsked(RunState),
    /// It has been approved, and waits for its turn.
    Already,
    /// Another daemon executes it.
    Elsewhere(String),
    /// The store cannot be asked.
    Store(StoreError),
}

/// Why a run was not cancelled.
#[derive(Debug)]
pub(crate) enum NotCancelled {
    /// There is none of that id.
    Unknown,
    /// It is over.
    Over(RunState),
    /// Another daemon executes it.
    Elsewhere(String),
    /// The store cannot be asked.
    Store(StoreError),
}

impl Runs {
    /// None yet.
    pub fn new(parts: RunsParts) -> Arc<Self> {
        let reach = OwnProxy::new(Arc::clone(&parts.chaos), parts.recorder.clone());
        Arc::new(Self {
            store: parts.store,
            chaos: parts.chaos,
            recorder: parts.recorder,
            journal: parts.journal,
            metrics: parts.metrics,
            audit: parts.audit,
            daemon: parts.daemon,
            runners: parts.runners,
            approval: RwLock::new(parts.approval),
            reach,
            exclusive: Arc::default(),
            turns: Arc::new(Semaphore::new(AT_ONCE)),
            ongoing: Mutex::default(),
            changed: watch::Sender::new(()),
        })
    }

    /// Marks runs of this daemon's life before this one as errored, and those of daemons that lived for
    /// one command on the same store and are gone.
    pub async fn recover(&self) -> Result<(), StoreError> {
        let why = "its daemon ended in the middle of it";
        self.give_up(Abandoned::OfDaemon(&self.daemon), why).await?;
        self.give_up(Abandoned::Expired, why).await
    }

    /// Takes over what needs a yes from a config that was read anew, for runs that come from now on.
    pub fn configure(&self, approval: Approval) {
        *self
            .approval
            .write()
            .unwrap_or_else(PoisonError::into_inner) = approval;
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
        let before: Vec<_> = self.ongoing().values().cloned().collect();
        if !before.is_empty() {
            let held = self.store.renew_runs(&self.daemon, millis(LEASE)).await?;
            let lost = before
                .iter()
                .filter(|run| !held.iter().any(|id| id == run.id()));
            for run in lost.filter(|run| !run.over.is_cancelled()) {
                // It may have ended by itself between the two.
                if !run.record().await.state.is_over() {
                    self.stop(run, Stop::Lease);
                }
            }
        }
        if self.store.is_shared() {
            let why = "its daemon is gone: it was not heard of for too long";
            self.give_up(Abandoned::Expired, why).await?;
        }
        Ok(())
    }

    async fn give_up(&self, which: Abandoned<'_>, why: &str) -> Result<(), StoreError> {
        let at = self.now();
        let events = |record: &RunRecord, last: i64| {
            let state = json!(event_of(record, at.clone()));
            let row = |after: i64, name: &str, data: serde_json::Value| RunEventRow {
                ordinal: last + after,
                name: name.to_owned(),
                data: data.to_string(),
            };
            vec![row(1, "state", state), row(2, "done", done(record))]
        };
        let given_up = self.store.give_up_runs(which, why, &at, events).await?;
        for record in given_up {
            tracing::warn!(run = record.id, "the run is errored: {why}");
            self.note("run errored", &record.id, why);
            self.metrics.runs().ended(record.kind, record.state, None);
        }
        Ok(())
    }

    /// Takes a run: it is written down and queued.
    pub(crate) async fn add(
        self: &Arc<Self>,
        workspace: &str,
        wish: Wish,
    ) -> Result<RunRecord, NotAdded> {
        let now = Instant::now();
        let id = self.recorder.begin(now).to_string();
        let order = self.order(&id, workspace, &wish);
        let Some(runner) = self
            .runners
            .iter()
            .find(|runner| runner.kind() == wish.kind)
        else {
            return Err(NotAdded::Wrong(vec![self.no_runner(wish.kind)]));
        };
        let wrong = runner.check(&order);
        if !wrong.is_empty() {
            return Err(NotAdded::Wrong(wrong));
        }
        let record = self.new_record(wish, &order);
        let added = tokio::spawn(Arc::clone(self).write_and_queue(
            workspace.to_owned(),
            order,
            record,
            Arc::clone(runner),
        ));
        match added.await {
            Ok(added) => added,
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }

    /// Carried to its end, even if whoever asked for it has gone.
    async fn write_and_queue(
        self: Arc<Self>,
        workspace: String,
        order: Order,
        record: RunRecord,
        runner: Arc<dyn Runner>,
    ) -> Result<RunRecord, NotAdded> {
        let mark = self.reach.open(&order.id, &workspace);
        let run = Ongoing::new(Parts {
            order,
            workspace,
            mark,
            store: self.store.clone(),
            recorder: self.recorder.clone(),
            changed: self.changed.clone(),
            record: record.clone(),
        });
        {
            let mut ongoing = self.ongoing();
            if ongoing.len() >= MOST {
                self.reach.close(run.id());
                return Err(NotAdded::Full);
            }
            ongoing.insert(run.id().to_owned(), Arc::clone(&run));
        }
        let event = event_of(&record, record.created_at.clone());
        let new = NewRun {
            workspace: &run.workspace,
            record: &record,
            lease_ms: millis(LEASE),
            event: RunEventRow {
                ordinal: 1,
                name: "state".to_owned(),
                data: json!(event).to_string(),
            },
        };
        if let Err(error) = self.store.add_run(new).await {
            self.forget(&run);
            return Err(NotAdded::Store(error));
        }
        self.recorder.publish_run(&run.workspace, event);
        if self.needs_a_yes(&run.order, &record.name) {
            run.move_on(Life::hold, |_| {}).await;
        } else {
            run.approved.cancel();
        }
        let record = run.record().await;
        tokio::spawn(self.live(run, runner));
        Ok(record)
    }

    fn order(&self, id: &str, workspace: &str, wish: &Wish) -> Order {
        let (options, advanced) = (&wish.options, &wish.suite.advanced);
        let at_once = usize::try_from(advanced.concurrency).ok();
        let at_once = at_once
            .and_then(NonZeroUsize::new)
            .unwrap_or(NonZeroUsize::MIN);
        Order {
            id: id.to_owned(),
            kind: wish.kind,
            scope: scope_of(workspace, id),
            suite: Arc::clone(&wish.suite),
            chaos: wish.chaos.clone(),
            names_profile: options.profile.is_some(),
            seed: options.seed.or(advanced.seed).unwrap_or(self.chaos.seed()),
            concurrency: options.concurrency.unwrap_or(at_once),
            bar: Bar {
                least: options.min_score.or(advanced.min_score),
                strict: options.strict.unwrap_or(advanced.strict),
            },
            repeat: options.repeat.unwrap_or(1),
            baseline: wish.baseline.clone(),
        }
    }

    fn new_record(&self, wish: Wish, order: &Order) -> RunRecord {
        RunRecord {
            id: order.id.clone(),
            kind: wish.kind,
            name: wish.name,
            state: RunState::Queued,
            score: None,
            passed: None,
            coverage: CoverageRecord::default(),
            scores: ScoresRecord::default(),
            cells: Vec::new(),
            scenarios: Vec::new(),
            recoveries: Vec::new(),
            stability: None,
            comparison: None,
            warnings: Vec::new(),
            checks: Vec::new(),
            seed: order.seed,
            created_at: self.now(),
            started_at: None,
            finished_at: None,
            error: None,
            reason: None,
            daemon: self.daemon.clone(),
            documents: wish.documents,
            agent: Some(agent_name(&wish.suite.agent.way)),
            min_score: order.bar.least,
        }
    }

    fn no_runner(&self, kind: RunKind) -> Detail {
        let there: Vec<_> = self
            .runners
            .iter()
            .map(|runner| runner.kind().as_str())
            .collect();
        Detail::at(
            "/kind",
            format!(
                "this version carries out no runs of kind `{}`; there are {}",
                kind.as_str(),
                there.join(", ")
            ),
        )
    }

    fn needs_a_yes(&self, order: &Order, name: &str) -> bool {
        let approval = self.approval.read().unwrap_or_else(PoisonError::into_inner);
        let touched = touched(name, &order.suite);
        let touched = touched.iter().map(String::as_str);
        approval.wanted_for(touched).is_some()
    }

    /// A run's life, from the queue to its end.
    async fn live(self: Arc<Self>, run: Arc<Ongoing>, runner: Arc<dyn Runner>) {
        let turn = async {
            run.approved.cancelled().await;
            Arc::clone(&self.turns).acquire_owned().await
        };
        let turn = run.mark.cut().run_until_cancelled(turn).await;
        let outcome = match turn {
            Some(Ok(_turn)) => {
                let at = self.now();
                let begun = run
                    .move_on(Life::start, |record| record.started_at = Some(at))
                    .await;
                if begun {
                    self.carry_out(&run, &*runner).await
                } else {
                    Outcome::Stopped
                }
            }
            _ => Outcome::Stopped,
        };
        self.reach.close(run.id());
        self.conclude(&run, outcome).await;
        self.forget(&run);
    }

    /// Until the runner is done, or the run is stopped.
    async fn carry_out(&self, run: &Ongoing, runner: &dyn Runner) -> Outcome {
        let tools = Tools {
            reach: Arc::clone(&self.reach) as _,
            tell: run,
            shared_scope: self.shared_scope(&run.workspace),
            exclusive: Arc::clone(&self.exclusive),
        };
        let working = AssertUnwindSafe(runner.run(&run.order, tools)).catch_unwind();
        let in_time = async {
            match self.chaos.longest() {
                Some(longest) => {
                    tokio::time::sleep(longest).await;
                    let why = "safety.ttl: it took longer than chaos may be in force";
                    self.stop(run, Stop::Ttl(why.to_owned()));
                }
                None => std::future::pending::<()>().await,
            }
        };
        tokio::select! {
            biased;
            () = run.mark.cut().cancelled() => Outcome::Stopped,
            done = working => match done {
                Ok(Ok(verdict)) => Outcome::Judged(Box::new(verdict)),
                // Its chaos was taken from under it.
                Ok(Err(_)) if run.mark.why().is_some() => Outcome::Stopped,
                Ok(Err(error)) => Outcome::Failed(error),
                Err(_) => Outcome::Panicked,
            },
            () = in_time => Outcome::Stopped,
        }
    }

    /// The scope of what names none in a workspace, unless somebody's chaos is in force there.
    fn shared_scope(&self, workspace: &str) -> Option<String> {
        let scope = workspace_scope(workspace);
        let there = self.chaos.look(scope);
        (there.profile == NO_CHAOS).then(|| scope.to_owned())
    }

    async fn conclude(&self, run: &Ongoing, outcome: Outcome) {
        let recorder = self.recorder.clone();
        if let Err(error) = tokio::task::spawn_blocking(move || recorder.flush()).await {
            tracing::error!(%error, "the journal could not be waited for");
        }
        // What the store does not take counts too.
        if let Some(journal) = &self.journal {
            journal.settled().await;
        }
        let stopped = run.stopped();
        let lost = run.mark.lost();
        let End {
            ending,
            verdict,
            error,
            reason,
        } = End::of(outcome, stopped.as_ref(), lost);
        let at = self.now();
        let coverage = run.coverage_so_far();
        let redacted = |mut text: String| {
            run.redact(&mut text);
            text
        };
        let fill = |record: &mut RunRecord| {
            record.finished_at = Some(at);
            record.coverage = coverage;
            record.error = error.map(&redacted);
            record.reason = reason.map(&redacted);
            record.passed = match ending {
                Ending::Passed => Some(true),
                Ending::Failed => Some(false),
                Ending::Inconclusive | Ending::Errored | Ending::Cancelled => None,
            };
            if let Some(verdict) = verdict {
                record.score = verdict.score;
                record.scores = verdict.scores;
                record.scenarios = verdict.scenarios;
                record.recoveries = verdict.recoveries;
                record.stability = verdict.stability;
                record.comparison = verdict.comparison;
                record.warnings = verdict.warnings;
                record.checks = verdict.checks;
            }
        };
        let unbegun = match ending {
            Ending::Errored => Unbegun::Errored,
            _ => Unbegun::Cancelled,
        };
        let end = |life: Life| match life {
            begun @ Life::Running(_) => begun.end(ending),
            unbegun_life => unbegun_life.end_unbegun(unbegun),
        };
        run.move_on(end, fill).await;
        let record = run.record().await;
        if record.state.is_over() {
            self.metrics
                .runs()
                .ended(record.kind, record.state, record.score);
        }
        if let Some(stopped) = stopped {
            self.metrics
                .runs()
                .cut_short(run.order.kind, stopped.label());
            tracing::info!(run = run.id(), "the run was ended: {}", stopped.why());
            // Who calls to cancel one is in the audit log with the call.
            if stopped != Stop::Cancelled {
                self.note("run ended", run.id(), stopped.why());
            }
        }
    }

    /// Writes down what has become of a run by itself.
    fn note(&self, action: &str, run: &str, why: &str) {
        let target = format!("/v1/runs/{run}");
        self.audit
            .happened(action, &target, audit::Outcome::Done, why);
    }

    /// Ends a run before its end: chaos first.
    fn stop(&self, run: &Ongoing, why: Stop) {
        run.stop(why);
        self.chaos.end_for_run(None, &run.mark);
    }

    /// Says yes to a run that waits for it.
    pub(crate) async fn approve(
        &self,
        workspace: &str,
        id: &str,
    ) -> Result<RunRecord, NotApproved> {
        let Some(run) = self.own(workspace, id) else {
            return match self.find(workspace, id).await.map_err(NotApproved::Store)? {
                None => Err(NotApproved::Unknown),
                Some(run) if run.state.is_over() => Err(NotApproved::NotAsked(run.state)),
                Some(run) => Err(NotApproved::Elsewhere(run.daemon)),
            };
        };
        let record = run.record().await;
        match record.state {
            RunState::AwaitingApproval if run.approved.is_cancelled() => Err(NotApproved::Already),
            RunState::AwaitingApproval => {
                run.approved.cancel();
                Ok(record)
            }
            other => Err(NotApproved::NotAsked(other)),
        }
    }

    /// Ends a run, its chaos first, and waits for its end.
    pub(crate) async fn cancel(
        &self,
        workspace: &str,
        id: &str,
    ) -> Result<RunRecord, NotCancelled> {
        let Some(run) = self.own(workspace, id) else {
            return match self
                .find(workspace, id)
                .await
                .map_err(NotCancelled::Store)?
            {
                None => Err(NotCancelled::Unknown),
                Some(run) if run.state.is_over() => Err(NotCancelled::Over(run.state)),
                Some(run) => Err(NotCancelled::Elsewhere(run.daemon)),
            };
        };
        self.stop(&run, Stop::Cancelled);
        // A store that is away keeps its end from being written; its chaos has ended all the same.
        let _ = tokio::time::timeout(PATIENCE, run.over.cancelled()).await;
        let record = run.record().await;
        match record.state {
            // It was just about to end otherwise.
            over if over.is_over() && over != RunState::Cancelled => Err(NotCancelled::Over(over)),
            _ => Ok(record),
        }
    }

    /// At most `limit` runs of a workspace, newest first, without their cells.
    pub(crate) async fn list(
        &self,
        workspace: &str,
        filter: &RunFilter,
        limit: usize,
    ) -> Result<Vec<RunRecord>, StoreError> {
        self.store.runs(workspace, filter, limit).await
    }

    /// One run of a workspace, whichever daemon executes it.
    pub(crate) async fn find(
        &self,
        workspace: &str,
        id: &str,
    ) -> Result<Option<RunRecord>, StoreError> {
        self.store.run(workspace, id).await
    }

    /// At most `limit` things that happened in a run after number `after`.
    pub(crate) async fn events(
        &self,
        run: &str,
        after: i64,
        limit: usize,
    ) -> Result<Vec<RunEventRow>, StoreError> {
        self.store.run_events(run, after, limit).await
    }

    /// Changes when something has happened in a run of this daemon.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Id of the daemon, the same after a restart.
    pub(crate) fn daemon(&self) -> &str {
        &self.daemon
    }

    /// Whether other daemons' runs are in the same store.
    pub(crate) fn is_shared(&self) -> bool {
        self.store.is_shared()
    }

    /// Ends every run, and waits until that is written, a bounded time.
    pub async fn stop_all(&self) {
        let all: Vec<_> = self.ongoing().values().cloned().collect();
        for run in &all {
            self.stop(run, Stop::Stopping);
        }
        let over = async {
            for run in &all {
                run.over.cancelled().await;
            }
        };
        if tokio::time::timeout(PATIENCE, over).await.is_err() {
            tracing::warn!("the end of some runs could not be written; they will be errored");
        }
    }

    fn own(&self, workspace: &str, id: &str) -> Option<Arc<Ongoing>> {
        let ongoing = self.ongoing();
        let run = ongoing.get(id).filter(|run| run.workspace == workspace);
        run.cloned()
    }

    fn forget(&self, run: &Ongoing) {
        self.reach.close(run.id());
        self.ongoing().remove(run.id());
        run.over.cancel();
    }

    fn ongoing(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Ongoing>>> {
        // Whole between any two statements.
        self.ongoing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> String {
        timestamp::rfc3339(self.recorder.unix_ms(Instant::now()))
    }
}

impl std::fmt::Debug for Runs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Runs")
            .field("daemon", &self.daemon)
            .finish_non_exhaustive()
    }
}

/// What came of carrying a run out.
enum Outcome {
    Judged(Box<Verdict>),
    Failed(RunError),
    Panicked,
    Stopped,
}

/// How a run ends, and what is said of it.
struct End {
    ending: Ending,
    verdict: Option<Box<Verdict>>,
    error: Option<String>,
    reason: Option<String>,
}

impl End {
    fn of(outcome: Outcome, stopped: Option<&Stop>, lost: u64) -> Self {
        let errored = |error: String| Self {
            ending: Ending::Errored,
            verdict: None,
            error: Some(error),
            reason: None,
        };
        match outcome {
            Outcome::Failed(error) => errored(error.to_string()),
            Outcome::Panicked => {
                errored("Squall failed in the middle of it; the log says how".to_owned())
            }
            Outcome::Stopped => Self {
                ending: Ending::Cancelled,
                verdict: None,
                error: None,
                reason: stopped.map(|stopped| stopped.why().to_owned()),
            },
            Outcome::Judged(verdict) => {
                let ending = match verdict.passed {
                    Some(false) => Ending::Failed,
                    Some(true) if lost == 0 => Ending::Passed,
                    Some(true) | None => Ending::Inconclusive,
                };
                let missing =
                    || format!("{lost} of its exchanges did not get into the journal or the store");
                let reason = match ending {
                    Ending::Inconclusive if verdict.passed.is_some() => Some(missing()),
                    Ending::Passed => None,
                    _ => verdict.reason.clone(),
                };
                Self {
                    ending,
                    error: None,
                    reason,
                    verdict: Some(verdict),
                }
            }
        }
    }
}

/// The scope of what names none in a workspace.
fn workspace_scope(workspace: &str) -> &str {
    if workspace == DEFAULT_WORKSPACE {
        squall_proxy::chaos::DEFAULT_SCOPE
    } else {
        workspace
    }
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
