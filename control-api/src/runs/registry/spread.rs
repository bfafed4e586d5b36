//! Spread runs: this daemon shares out the scenarios of its own, and executes scenarios of any.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use squall_harness::run::{CoverageRecord, RunRecord, RunState};
use squall_harness::runner::{RunResult, RunSpec, Tell as _, merged};

use super::super::active::{ActiveRun, RunReporter};
use super::super::stop::StopReason;
use super::Runs;
use super::add::RunOrder;
use crate::problem::ApiProblem;
use crate::store::{JobOutcome, JobQueue};

/// Interval between two looks for results.
const LOOK: Duration = Duration::from_millis(500);

impl Runs {
    /// Has daemons of the fleet execute the scenarios of a run, and merges their results.
    pub(super) async fn spread(&self, run: &Arc<ActiveRun>) -> Result<RunResult, String> {
        let scenarios = run.spec.scenarios();
        let parts = scenarios.iter().map(|one| run.spec.part(&run.id, one));
        let planned: Vec<_> = parts.map(|part| part.planned_invocations()).collect();
        let mut queue = self.queue_of(run)?;
        let jobs = queue.add(scenarios.len() as u64).await;
        jobs.map_err(|error| error.to_string())?;
        let reporter = RunReporter(Arc::clone(run));
        let mut coverage = CoverageRecord::default();
        let mut ids = BTreeMap::new();
        let mut parts: Vec<RunRecord> = Vec::new();
        while parts.len() < scenarios.len() {
            tokio::time::sleep(LOOK).await;
            match queue.done().await {
                Ok(done) => {
                    for (scenario, result) in done {
                        ids.insert(scenario, result?);
                    }
                }
                Err(error) => tracing::debug!(run = run.id, "results are not read: {error}"),
            }
            // In order, as cells of a run that is not spread.
            while let Some(id) = ids.get(&(parts.len() as u64)) {
                let Some(part) = self.part(run, id).await? else {
                    break;
                };
                coverage.add(&part.coverage);
                reporter.coverage(coverage.clone());
                for cell in &part.cells {
                    reporter.cell(cell.clone()).await;
                }
                parts.push(part);
                let done = planned[..parts.len()].iter().sum();
                reporter.progress(done, planned.iter().sum()).await;
            }
        }
        Ok(merged(&run.spec, &parts))
    }

    /// A finished part of a run; `None`: the store is away.
    async fn part(&self, run: &ActiveRun, id: &str) -> Result<Option<RunRecord>, String> {
        match self.log.store.run(&run.workspace, id).await {
            Ok(Some(part)) => Ok(Some(part)),
            Ok(None) => Err(format!("there is no run `{id}`, which executed a scenario")),
            Err(error) => {
                tracing::debug!(run = run.id, "a result is not read: {error}");
                Ok(None)
            }
        }
    }

    fn queue_of(&self, run: &ActiveRun) -> Result<JobQueue, String> {
        let queue = self.log.store.queue(&run.id);
        queue.map_err(|error| error.to_string())
    }

    /// Deletes the queue of a spread run.
    pub(super) async fn delete_queue(&self, run: &ActiveRun) {
        if let Ok(queue) = self.queue_of(run)
            && let Err(error) = queue.delete().await
        {
            tracing::warn!(run = run.id, "its jobs stay in the store: {error}");
        }
    }

    /// Executes a scenario of a spread run. An error with status 503 gives the scenario to another daemon.
    pub(crate) async fn execute_part(
        self: &Arc<Self>,
        workspace: &str,
        whole: &RunRecord,
        spec: RunSpec,
    ) -> Result<JobOutcome, ApiProblem> {
        let order = RunOrder {
            workspace,
            by: whole.created_by.as_deref(),
            spec,
            posted: None,
            is_approved: whole.approved_at.is_some(),
        };
        let part = EndedWhenDropped(self, self.accept(order).await?);
        let EndedWhenDropped(_, run) = &part;
        run.over.cancelled().await;
        let record = run.record();
        match (record.state, run.stopped()) {
            (RunState::Passed | RunState::Failed | RunState::Inconclusive, _) => Ok(Ok(record.id)),
            (RunState::Errored, _) => Ok(Err(record.error.unwrap_or_default())),
            (_, None | Some(StopReason::Stopping | StopReason::Lease | StopReason::Unneeded)) => {
                Err(ApiProblem::not_ready("the daemon is stopping"))
            }
            (_, Some(stopped)) => Ok(Err(stopped.why().to_owned())),
        }
    }
}

/// A part of a run that is stopped when its result is no longer needed.
struct EndedWhenDropped<'r>(&'r Runs, Arc<ActiveRun>);

impl Drop for EndedWhenDropped<'_> {
    fn drop(&mut self) {
        if !self.1.over.is_cancelled() {
            self.0.stop(&self.1, StopReason::Unneeded);
        }
    }
}
