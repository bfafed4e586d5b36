//! The workers of an agent: one for each slot, started when it is first needed and kept warm.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;

use super::worker::{Failed, Spec, Worker};
use crate::agents::Surroundings;
use crate::agents::pointing::ProxyVariables;

/// The workers of one agent.
pub(in crate::agents) struct Workers {
    spec: Spec,
    variables: ProxyVariables,
    /// Most that are kept.
    most: usize,
    idle: Mutex<HashMap<String, Worker>>,
}

impl Workers {
    pub(in crate::agents) fn new(spec: Spec, surroundings: &Surroundings) -> Self {
        Self {
            spec,
            variables: surroundings.variables.clone(),
            most: surroundings.slots.max(1),
            idle: Mutex::default(),
        }
    }

    /// The worker of a slot, warm if there is one. Where it cannot be started: why.
    pub(in crate::agents) async fn take(&self, slot: &str) -> Result<Taken<'_>, String> {
        let warm = self.idle().remove(slot);
        let worker = match warm {
            Some(worker) => worker,
            None => Worker::start(&self.spec, (self.variables)(Some(slot))).await?,
        };
        Ok(Taken {
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

/// A worker in use. Dropped, it is ended with all that it started: who was waiting for it is gone.
pub(in crate::agents) struct Taken<'w> {
    workers: &'w Workers,
    slot: String,
    worker: Worker,
    is_spent: bool,
}

impl Taken<'_> {
    /// Asks it, and waits for the answer.
    pub(in crate::agents) async fn ask(
        &mut self,
        question: &Value,
        within: Duration,
    ) -> Result<Value, Failed> {
        let answer = self.worker.ask(question, within).await;
        self.is_spent |= matches!(
            answer,
            Err(Failed::TooSlow | Failed::TooLong | Failed::Ended(_))
        );
        answer
    }

    /// Puts it back, unless it is of no more use.
    pub(in crate::agents) fn keep(self) {
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
