//! Resets an agent.

use std::sync::Arc;
use std::time::Duration;

use reqwest::Client;
use serde_json::json;

use super::program::{self, NotEnded};
use super::settings::{Agent, Reset};
use super::workers::{WorkerError, WorkerSpec, Workers};
use super::{AskError, InvocationPlace, ResetError, Surroundings, baggage};
use crate::dial::innermost;

/// Time-out of a reset.
const WITHIN: Duration = Duration::from_secs(5);

/// Resets one agent.
pub(super) struct Resetter {
    way: Option<Reset>,
    client: Client,
    /// Calls reset functions.
    workers: Option<Arc<Workers>>,
}

impl Resetter {
    /// For an agent outside of workers; reset functions run in their own process.
    pub(super) fn new(agent: &Agent, surroundings: &Surroundings) -> Self {
        let workers = matches!(agent.reset, Some(Reset::Function(_))).then(|| {
            let spec = WorkerSpec {
                target: None,
                langchain: false,
                folder: surroundings.folder.clone(),
            };
            Arc::new(Workers::new(spec, surroundings))
        });
        Self {
            client: client(agent.reset.as_ref(), surroundings),
            way: agent.reset.clone(),
            workers,
        }
    }

    /// For an agent in workers: reset functions run in the same process as the agent.
    pub(super) fn in_workers(
        way: Option<Reset>,
        workers: Arc<Workers>,
        surroundings: &Surroundings,
    ) -> Self {
        Self {
            client: client(way.as_ref(), surroundings),
            way,
            workers: Some(workers),
        }
    }

    /// Resets the agent for this place. Does nothing if the suite configures no reset.
    pub(super) async fn reset(&self, place: &InvocationPlace) -> Result<(), ResetError> {
        let InvocationPlace { slot, scope } = place;
        match (&self.way, &self.workers) {
            (Some(Reset::Endpoint(endpoint)), _) => self.by_endpoint(endpoint, scope).await,
            (Some(Reset::Command(words)), _) => by_command(words, scope).await,
            (Some(Reset::Function(name)), Some(workers)) => by_function(name, workers, slot).await,
            (Some(Reset::Function(_)) | None, _) => Ok(()),
        }
    }

    async fn by_endpoint(&self, endpoint: &str, scope: &str) -> Result<(), ResetError> {
        let request = self.client.post(endpoint).timeout(WITHIN);
        // An agent with separate state for each scope can reset just that scope.
        match request.header("baggage", baggage(scope)).send().await {
            Ok(response) if response.status().is_success() => Ok(()),
            Ok(response) => Err(ResetError::Refused {
                endpoint: endpoint.to_owned(),
                status: response.status().as_u16(),
            }),
            // An agent that is unreachable for a reset cannot be invoked either.
            Err(error) if error.is_connect() => Err(ResetError::NotThere(AskError::Unreachable {
                endpoint: endpoint.to_owned(),
                tries: 1,
                why: innermost(&error),
            })),
            Err(error) => Err(ResetError::Unanswered {
                endpoint: endpoint.to_owned(),
                why: innermost(&error),
            }),
        }
    }
}

/// A client is needed only for a reset endpoint.
fn client(way: Option<&Reset>, surroundings: &Surroundings) -> Client {
    let endpoint = match way {
        Some(Reset::Endpoint(endpoint)) => endpoint,
        Some(Reset::Function(_) | Reset::Command(_)) | None => "",
    };
    surroundings.dialler.client(endpoint)
}

async fn by_command(words: &[String], scope: &str) -> Result<(), ResetError> {
    let failed = |why: String| {
        Err(ResetError::Failed {
            by: words[0].clone(),
            why,
        })
    };
    let environment = [("SQUALL_SCOPE", scope.to_owned())];
    match program::run(words, &environment, "", WITHIN).await {
        Ok(ended) if ended.status.success() => Ok(()),
        Ok(ended) => failed(ended.why()),
        Err(NotEnded::TooSlow) => failed(too_slow()),
        Err(NotEnded::NotStarted(error) | NotEnded::Broken(error)) => failed(error.to_string()),
    }
}

async fn by_function(name: &str, workers: &Workers, slot: &str) -> Result<(), ResetError> {
    let failed = |why: String| {
        Err(ResetError::Failed {
            by: name.to_owned(),
            why,
        })
    };
    let mut worker = match workers.take(slot).await {
        Ok(worker) => worker,
        Err(why) => return failed(why),
    };
    let called = worker.ask(&json!({ "call": name }), WITHIN).await;
    worker.keep();
    match called {
        Ok(_) => Ok(()),
        Err(WorkerError::TooSlow) => failed(too_slow()),
        Err(WorkerError::Raised(what)) => failed(what),
        Err(WorkerError::TooLong) => failed("it said more than 8 MiB".to_owned()),
        Err(WorkerError::Ended(why)) => failed(format!("the process {why}")),
    }
}

fn too_slow() -> String {
    format!("it took more than {} s", WITHIN.as_secs())
}
