//! Accepts a run: checks, writes and queues it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use serde_json::json;
use squall_harness::agents::agent_name;
use squall_harness::run::{RunRecord, RunState};
use squall_harness::runner::RunSpec;
use squall_journal::quota::Quota;

use super::super::active::{ActiveRun, event_of, event_rows};
use super::super::approval;
use super::Runs;
use super::lease::lease_ms;
use crate::problem::{ApiProblem, ProblemDetail};
use crate::store::NewRun;

/// Unfinished runs, the waiting ones included. Each holds its suite.
const UNFINISHED: Quota = Quota {
    what: "runs that are not over",
    each: 100,
    all: 400,
    remedy: "wait until one of them is, or cancel one",
};

/// `Retry-After` while too many runs are unfinished.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// A run to accept.
pub(crate) struct RunOrder<'o> {
    /// Its workspace.
    pub(crate) workspace: &'o str,
    /// The token that requests it.
    pub(crate) by: Option<&'o str>,
    /// Its spec.
    pub(crate) spec: RunSpec,
    /// The request, if daemons share the scenarios.
    pub(crate) posted: Option<&'o str>,
    /// Whether it was approved as part of a run.
    pub(crate) is_approved: bool,
}

impl Runs {
    /// Accepts a run: checks, writes and queues it.
    pub(crate) async fn add(
        self: &Arc<Self>,
        order: RunOrder<'_>,
    ) -> Result<RunRecord, ApiProblem> {
        Ok(self.accept(order).await?.record())
    }

    /// [`Self::add`], for the run itself.
    pub(super) async fn accept(
        self: &Arc<Self>,
        order: RunOrder<'_>,
    ) -> Result<Arc<ActiveRun>, ApiProblem> {
        let RunOrder {
            workspace,
            by,
            spec,
            ..
        } = order;
        let errors = self.parts.executor.check(&spec).into_iter();
        let errors: Vec<_> = errors
            .map(|error| ProblemDetail::at(error.pointer, error.message))
            .collect();
        if !errors.is_empty() {
            return Err(ApiProblem::invalid(errors));
        }
        let approval = self.parts.approval.load_full();
        let waits =
            !order.is_approved && approval::is_required(&approval, &spec.name, &spec.suite).await;
        if waits && spec.part_of.is_some() {
            let why = "its `approval` requires approval for the run, and the daemon that accepted the run does not";
            return Err(ApiProblem::conflict(why));
        }
        if order.posted.is_some() {
            self.log.store.set_up_queues().await?;
        }
        let mut record = self.new_record(by, &spec);
        let mark = self.reach.open(&record.id, record.whole(), workspace);
        if order.is_approved {
            mark.approve();
        }
        // One transaction, so that the store cannot fail between the two.
        let states = [RunState::Queued, RunState::AwaitingApproval];
        let mut events = Vec::new();
        for state in &states[..=usize::from(waits)] {
            record.state = *state;
            events.push(event_of(&record, record.created_at.clone()));
        }
        let named: Vec<_> = events.iter().map(|event| ("state", json!(event))).collect();
        let rows = event_rows(0, &named);
        let run = ActiveRun::new(
            record.clone(),
            i64::try_from(rows.len()).unwrap_or(i64::MAX),
            spec,
            workspace.to_owned(),
            mark,
            self.log.clone(),
        );
        {
            let mut active = self.active();
            let held = active.values().map(|run| &run.workspace);
            if let Err(over) = UNFINISHED.check(&run.workspace, held) {
                self.reach.close(&run.id);
                return Err(ApiProblem::too_many(over.to_string(), RETRY_AFTER));
            }
            active.insert(run.id.clone(), Arc::clone(&run));
        }
        let new = NewRun {
            workspace: &run.workspace,
            record: &record,
            lease_ms: lease_ms(),
            events: &rows,
            posted: order.posted,
        };
        if let Err(error) = self.log.store.add_run(new).await {
            self.forget(&run);
            return Err(error.into());
        }
        run.is_stored.store(true, Ordering::Release);
        for event in &events {
            self.log.publish(&run.workspace, event);
        }
        if !waits {
            run.approved.cancel();
        }
        tokio::spawn(Arc::clone(self).live(Arc::clone(&run)));
        Ok(run)
    }

    fn new_record(&self, by: Option<&str>, spec: &RunSpec) -> RunRecord {
        let recorder = &self.log.recorder;
        let mut agent = agent_name(&spec.suite.agent);
        let redactor = recorder.redactor().and(&spec.suite.redactor);
        redactor.text(&mut agent, usize::MAX);
        let id = recorder.begin(Instant::now()).to_string();
        RunRecord {
            created_at: self.log.now(),
            created_by: by.map(str::to_owned),
            daemon: self.parts.daemon.clone(),
            agent: Some(agent),
            ..spec.record(&id)
        }
    }
}
