//! An agent that is a Python object: a function, sync or async, a class, or a `LangChain` Runnable.
//!
//! It runs in a child process with the user's own interpreter, because the proxy variables apply to a process.
//! There is one warm worker for each slot. Its calls carry the slot's name, and so belong to the invocation that is
//! running in the slot.
//!
//! ```text
//! ask(slot) ──▶ worker of that slot, started where there is none ──▶ a line each way ──▶ kept warm
//!                       └── too slow, crashed, dropped: killed with all it started; the next is fresh
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;

use super::group::without_secrets;
use super::reset::Resetter;
use super::settings::Agent;
use super::workers::{WorkerError, WorkerSpec, Workers};
use super::{
    AskError, Driver, Invocation, InvocationPlace, PromptTurn, ResetError, Surroundings, extract,
};
use crate::answer::AgentAnswer;
use crate::reach::Pending;

/// Invokes an agent that is a Python object.
pub(super) struct PythonDriver {
    target: String,
    timeout: Duration,
    workers: Arc<Workers>,
    reset: Resetter,
}

impl PythonDriver {
    pub(super) fn new(
        agent: &Agent,
        target: &str,
        langchain: bool,
        surroundings: &Surroundings,
    ) -> Self {
        let spec = WorkerSpec {
            target: Some(target.to_owned()),
            langchain,
            folder: surroundings.folder.clone(),
        };
        let workers = Arc::new(Workers::new(spec, surroundings));
        Self {
            target: target.to_owned(),
            timeout: agent.timeout,
            reset: Resetter::in_workers(agent.reset.clone(), workers.clone(), surroundings),
            workers,
        }
    }

    async fn invoke(
        &self,
        invocation: &Invocation,
        turn: PromptTurn<'_>,
    ) -> Result<AgentAnswer, AskError> {
        let mut worker = self
            .workers
            .take(&invocation.place.slot)
            .await
            .map_err(|why| {
                let endpoint = self.target.clone();
                AskError::Unreachable {
                    endpoint,
                    tries: 1,
                    why,
                }
            })?;
        let environment = BTreeMap::from(invocation.variables());
        let began = Instant::now();
        let left = self.timeout.saturating_sub(turn.elapsed);
        let question = json!({
            "prompt": turn.text,
            "conversation": invocation.conversation,
            "environment": environment,
        });
        let mut answer = AgentAnswer::default();
        match worker.ask(&question, left).await {
            Ok(said) => {
                answer.error = extract::reported_failure(&said);
                answer.text = extract::answer(&said, None)?;
            }
            Err(WorkerError::TooLong) => return Err(AskError::TooLong),
            Err(failed) => {
                answer.timed_out = failed == WorkerError::TooSlow;
                answer.error = Some(self.why(&failed));
            }
        }
        answer.latency = began.elapsed();
        worker.keep();
        Ok(answer)
    }

    fn why(&self, failed: &WorkerError) -> String {
        match failed {
            WorkerError::TooSlow => {
                let within = self.timeout.as_millis();
                format!("there was no answer within {within} ms")
            }
            WorkerError::Raised(what) => {
                format!("the agent raised {}", without_secrets(what.clone()))
            }
            WorkerError::TooLong => AskError::TooLong.to_string(),
            WorkerError::Ended(why) => format!("the agent's process {why}"),
        }
    }
}

impl Driver for PythonDriver {
    fn turn<'a>(
        &'a self,
        invocation: &'a Invocation,
        turn: PromptTurn<'a>,
    ) -> Pending<'a, Result<AgentAnswer, AskError>> {
        Box::pin(self.invoke(invocation, turn))
    }

    fn reset<'a>(&'a self, place: &'a InvocationPlace) -> Pending<'a, Result<(), ResetError>> {
        Box::pin(self.reset.reset(place))
    }
}

#[cfg(test)]
mod tests;
