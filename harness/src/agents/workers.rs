//! Child processes for Python agents: one for each slot, started on first use and kept alive.

mod interpreter;
mod worker;

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;

use self::worker::Worker;
pub(super) use self::worker::{WorkerError, WorkerSpec};
use super::Surroundings;
use super::pointing::ProxyVariables;

/// The workers of one agent.
pub(super) struct Workers {
    spec: WorkerSpec,
    variables: ProxyVariables,
    /// Maximum number of idle workers.
    most: usize,
    idle: Mutex<HashMap<String, Worker>>,
}

impl Workers {
    pub(super) fn new(spec: WorkerSpec, surroundings: &Surroundings) -> Self {
        Self {
            spec,
            variables: surroundings.variables.clone(),
            most: surroundings.slots.max(1),
            idle: Mutex::default(),
        }
    }

    /// The worker of a slot, started if necessary. The error is why it could not start.
    pub(super) async fn take(&self, slot: &str) -> Result<WorkerInUse<'_>, String> {
        let warm = self.idle().remove(slot);
        let worker = match warm {
            Some(worker) => worker,
            None => Worker::start(&self.spec, (self.variables)(Some(slot))).await?,
        };
        Ok(WorkerInUse {
            workers: self,
            slot: slot.to_owned(),
            worker,
            is_spent: false,
        })
    }

    fn idle(&self) -> MutexGuard<'_, HashMap<String, Worker>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A worker in use. Dropping it kills it with its descendants, because its caller no longer waits.
pub(super) struct WorkerInUse<'w> {
    workers: &'w Workers,
    slot: String,
    worker: Worker,
    is_spent: bool,
}

impl WorkerInUse<'_> {
    /// Sends a question and waits for the answer.
    pub(super) async fn ask(
        &mut self,
        question: &Value,
        within: Duration,
    ) -> Result<Value, WorkerError> {
        let answer = self.worker.ask(question, within).await;
        self.is_spent |= matches!(
            answer,
            Err(WorkerError::TooSlow | WorkerError::TooLong | WorkerError::Ended(_))
        );
        answer
    }

    /// Returns the worker to the idle ones, unless it is unusable.
    pub(super) fn keep(self) {
        if self.is_spent {
            return;
        }
        let mut idle = self.workers.idle();
        if idle.len() >= self.workers.most
            && !idle.contains_key(&self.slot)
            && let Some(other) = idle.keys().next().cloned()
        {
            idle.remove(&other);
        }
        idle.insert(self.slot, self.worker);
    }
}
