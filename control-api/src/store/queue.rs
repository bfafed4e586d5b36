//! The queue of a spread run: a job for each scenario, in the tables of `apalis`.
//!
//! Daemons take the jobs. If a daemon sends no heartbeat, other daemons do its jobs again.

use std::time::Duration;

use apalis_core::backend::{TaskSink as _, WaitForCompletion as _};
use apalis_core::error::BoxDynError;
use apalis_core::task::builder::TaskBuilder;
use apalis_core::task::task_id::TaskId;
use apalis_core::worker::builder::WorkerBuilder;
use apalis_postgres::{Config, PostgresStorage};
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;
use tower::limit::ConcurrencyLimitLayer;

use super::connect::ACQUIRE;
use super::error::Cause;
use super::{Store, StoreError, StoreFailure, StorePlace, bounded};

/// Interval between heartbeats. An idle daemon looks for jobs as often.
const HEARTBEAT: Duration = Duration::from_secs(2);

/// Missed heartbeats after which the jobs of a daemon are done again.
const MISSED: usize = 4;

/// Scenarios of a run that a daemon executes at once: a reset of the agent may concern all of them.
const AT_ONCE: usize = 1;

/// What a job has given: the id of the run that has executed it, or why none could.
pub(crate) type JobOutcome = Result<String, String>;

/// The queue of a spread run.
pub(crate) struct JobQueue {
    place: StorePlace,
    name: String,
    /// Jobs are numbers of scenarios.
    storage: PostgresStorage<u64>,
    /// The jobs without a result, with their scenarios.
    open: Vec<(TaskId, u64)>,
}

impl Store {
    /// The queue of this run. It opens connections of its own. Fails for a store with a single daemon.
    pub(crate) fn queue(&self, run: &str) -> Result<JobQueue, StoreError> {
        let name = format!("squall-run-{run}");
        let config = (Config::default().queue(&name).batch_size(AT_ONCE))
            .heartbeat_interval(HEARTBEAT)
            .missed_heartbeats(MISSED);
        let storage = PostgresStorage::new(&self.queue_pool()?).with_config(config);
        Ok(JobQueue {
            place: self.place.clone(),
            name,
            storage,
            open: Vec::new(),
        })
    }

    /// Creates the tables of queues unless they exist.
    pub(crate) async fn set_up_queues(&self) -> Result<(), StoreError> {
        let pool = self.queue_pool()?;
        let set_up = async { Ok(PostgresStorage::setup(&pool).await?) };
        bounded(&self.place, set_up).await
    }

    fn queue_pool(&self) -> Result<PgPool, StoreError> {
        let pool = match &self.place {
            StorePlace::Postgres { url, .. } => PgPoolOptions::new()
                .max_connections(2)
                .acquire_timeout(ACQUIRE)
                .connect_lazy(url)
                .map_err(Cause::from),
            StorePlace::Memory | StorePlace::Sqlite(_) => {
                let remedy = "let daemons share a PostgreSQL";
                let why = "it has a single daemon".to_owned();
                Err(Cause::Other(StoreFailure::Unusable(remedy), why))
            }
        };
        pool.map_err(|cause| StoreError::new(&self.place, cause))
    }
}

impl JobQueue {
    /// Adds a job for each of so many scenarios.
    pub(crate) async fn add(&mut self, scenarios: u64) -> Result<(), StoreError> {
        let tasks: Vec<_> = (0..scenarios)
            .map(|scenario| {
                let id = TaskId::from_ulid(ulid::Ulid::generate());
                self.open.push((id.clone(), scenario));
                // The clocks of daemons do not matter.
                let task = TaskBuilder::new(scenario).run_at_timestamp(0);
                task.task_id(id).build()
            })
            .collect();
        let mut tasks = futures_util::stream::iter(tasks);
        let adding = async {
            let added = self.storage.push_all(&mut tasks).await;
            added.map_err(|error| Cause::Other(StoreFailure::Rejected, error.to_string()))
        };
        bounded(&self.place, adding).await
    }

    /// The scenarios whose jobs have been done since the last call.
    pub(crate) async fn done(&mut self) -> Result<Vec<(u64, JobOutcome)>, StoreError> {
        let ids: Vec<_> = self.open.iter().map(|(id, _)| id.clone()).collect();
        let looking = async { Ok(self.storage.check_status(ids).await?) };
        let results = bounded(&self.place, looking).await?;
        let mut done = Vec::new();
        for one in results {
            let at = self.open.iter().position(|(id, _)| *id == one.task_id);
            if let Some(at) = at {
                let (_, scenario) = self.open.swap_remove(at);
                done.push((scenario, one.result.and_then(|result: JobOutcome| result)));
            }
        }
        Ok(done)
    }

    /// Does jobs until the store fails. An error of `execute` gives the job back.
    pub(crate) async fn work<F, D>(&self, worker: String, execute: F) -> Result<(), String>
    where
        F: Fn(u64) -> D + Clone + Send + 'static,
        D: Future<Output = Result<JobOutcome, BoxDynError>> + Send + 'static,
    {
        let worker = WorkerBuilder::new(worker)
            .backend(self.storage.clone())
            .layer(ConcurrencyLimitLayer::new(AT_ONCE))
            .build(execute);
        worker.run().await.map_err(|error| error.to_string())
    }

    /// Deletes the jobs and what is known of the daemons that did them.
    pub(crate) async fn delete(&self) -> Result<(), StoreError> {
        let deleting = async {
            for delete in [
                "DELETE FROM apalis.jobs WHERE job_type = $1",
                "DELETE FROM apalis.workers WHERE worker_type = $1",
            ] {
                let delete = sqlx::query(delete).bind(&self.name);
                delete.execute(self.storage.pool()).await?;
            }
            Ok(())
        };
        bounded(&self.place, deleting).await
    }
}

impl From<apalis_postgres::Error> for Cause {
    fn from(error: apalis_postgres::Error) -> Self {
        match error {
            apalis_postgres::Error::Database(error) => Self::Sql(error),
            other => Self::Other(StoreFailure::Rejected, other.to_string()),
        }
    }
}
