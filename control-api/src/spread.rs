//! Executes scenarios of spread runs whose suites this daemon takes.
//!
//! ```text
//! POST ─▶ run ─▶ jobs ─▶ queue ─▶ workers of the daemons that take the suite ─▶ parts: runs of one scenario each
//!          ▲                                                                      │
//!          └───────────────────── cells, coverage ◀───────────────────────────────┘
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use apalis_core::error::BoxDynError;
use http::StatusCode;
use squall_harness::run::RunRecord;
use squall_harness::runner::RunSpec;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::credential::random_hex;
use crate::document::RequestDocument;
use crate::outage::Outage;
use crate::problem::ApiProblem;
use crate::routes::order;
use crate::state::ApiState;
use crate::store::{JobOutcome, StoreError};

/// Interval between two looks for spread runs, and between two tries of a worker.
const LOOK: Duration = Duration::from_secs(1);

/// A worker for each spread run, by its id.
type PartWorkers = BTreeMap<String, AbortOnDropHandle<()>>;

/// Executes scenarios until `stopping`. Returns at once if this daemon takes no suites.
pub async fn execute_scenarios(state: ApiState, stopping: CancellationToken) {
    let takes = state.fleet.as_ref().is_some_and(|fleet| fleet.takes_any());
    if !takes {
        return;
    }
    let outage = Outage::of("scenarios of spread runs are not executed here");
    let working = async {
        let mut workers = PartWorkers::new();
        loop {
            match look(&state, &mut workers).await {
                Ok(()) => outage.end(),
                Err(error) => outage.begin(&error),
            }
            tokio::time::sleep(LOOK).await;
        }
    };
    stopping.run_until_cancelled(Box::pin(working)).await;
}

/// Starts workers for new runs. Stops those of runs that are over, whose scenarios end with them.
async fn look(state: &ApiState, workers: &mut PartWorkers) -> Result<(), StoreError> {
    let running = state.store.spread_runs().await?;
    let is_running = |id: &String| running.iter().any(|(_, run, _)| run == id);
    let over = workers.keys().filter(|id| !is_running(id)).cloned();
    for id in over.collect::<Vec<_>>() {
        workers.remove(&id);
        // Its daemon may be lost.
        state.store.queue(&id)?.delete().await?;
    }
    for (workspace, id, name) in running {
        let takes = state.fleet.as_ref().is_some_and(|fleet| fleet.takes(&name));
        if !takes || workers.contains_key(&id) {
            continue;
        }
        let Some((whole, posted)) = state.store.spread_run(&id).await? else {
            continue;
        };
        let worker = PartWorker {
            state: state.clone(),
            workspace,
            whole,
            posted,
        };
        let task = tokio::spawn(Arc::new(worker).work());
        workers.insert(id, AbortOnDropHandle::new(task));
    }
    Ok(())
}

/// Executes scenarios of one spread run.
struct PartWorker {
    state: ApiState,
    workspace: String,
    whole: RunRecord,
    posted: String,
}

impl PartWorker {
    /// Takes jobs, also after the store was away.
    async fn work(self: Arc<Self>) {
        let daemon = self.state.runs.daemon();
        loop {
            // The queue accepts each name once.
            let name = format!("{daemon}-{}", random_hex::<8>().unwrap_or_default());
            let worker = Arc::clone(&self);
            let execute = move |scenario| Arc::clone(&worker).execute(scenario);
            if let Ok(queue) = self.state.store.queue(&self.whole.id)
                && let Err(error) = queue.work(name, execute).await
            {
                // Also when the run is over.
                tracing::debug!(
                    run = self.whole.id,
                    "its scenarios are not executed here: {error}"
                );
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Does a job. An error gives it back.
    async fn execute(self: Arc<Self>, scenario: u64) -> Result<JobOutcome, BoxDynError> {
        let named = |why: &str| {
            let daemon = self.state.runs.daemon();
            Err(format!(
                "scenario {} in the daemon {daemon}: {why}",
                scenario + 1
            ))
        };
        let done = async {
            let spec = self.part(scenario).await?;
            let runs = &self.state.runs;
            runs.execute_part(&self.workspace, &self.whole, spec).await
        };
        match done.await {
            Ok(Ok(part)) => Ok(Ok(part)),
            Ok(Err(why)) => Ok(named(&why)),
            Err(problem) if is_passing(&problem) => {
                tokio::time::sleep(LOOK).await;
                Err(problem.into())
            }
            Err(problem) => Ok(named(&problem.to_string())),
        }
    }

    /// The run of one scenario, read here as its request was read by the daemon that accepted it.
    async fn part(&self, scenario: u64) -> Result<RunSpec, ApiProblem> {
        let document = RequestDocument::stored(self.posted.clone());
        let spec = order::read(&self.state, &self.workspace, &document).await?;
        if spec.documents != self.whole.documents {
            let why = "the stored documents of the run have changed since it was accepted";
            return Err(ApiProblem::conflict(why));
        }
        let names = spec.scenarios().into_iter();
        let mut names = names.skip(usize::try_from(scenario).unwrap_or(usize::MAX));
        let name = names.next().unwrap_or_default();
        Ok(RunSpec {
            seed: self.whole.seed,
            ..spec.part(&self.whole.id, &name)
        })
    }
}

/// Whether another daemon, or this one later, may do the job.
fn is_passing(problem: &ApiProblem) -> bool {
    let passing = [
        StatusCode::SERVICE_UNAVAILABLE,
        StatusCode::TOO_MANY_REQUESTS,
    ];
    passing.contains(&problem.status())
}
