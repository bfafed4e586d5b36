//! In which scopes the agent's calls can be told apart, found out while it is invoked without chaos.
//!
//! The agent gets a scope in every way there is. Calls that come in that scope can be told from those of other
//! invocations, and as many invocations go on at once as there are slots. Calls that come in the scope of what names
//! none cannot: then one invocation follows the other, while this run has that scope for itself.

use std::num::NonZeroUsize;
use std::sync::Arc;

use tokio::sync::{Mutex, MutexGuard, mpsc};

use super::invoker::{CallsIn, Invoker};
use super::jobs::Job;
use super::warnings::fails_always;
use super::{JobResult, RunError};
use crate::agents::Place;

/// The scopes that a run can work in.
#[derive(Debug)]
pub(super) struct Scopes<'s> {
    /// What its own begin with: `-1`, `-2` and so on follow; of slots `-slot-1` and so on.
    pub(super) own: &'s str,
    /// How many invocations go on at once.
    pub(super) at_once: NonZeroUsize,
    /// The scope of what names none. What others have in force there is suspended while it is this run's.
    pub(super) shared: &'s str,
    /// Held while the shared scope is this run's.
    pub(super) exclusive: &'s Mutex<()>,
}

/// Where invocations follow one another: as many go on at once as there are slots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Slot {
    /// Each invocation has a scope of its own.
    Own {
        /// The name by which a process that stays knows all of them.
        name: String,
        /// What the scopes' names begin with.
        scopes: String,
    },
    /// The scope of what names none.
    Shared(String),
}

impl Slot {
    /// Where the next invocation is; `number` makes its scope unique in the run.
    pub(super) fn place(&self, number: impl FnOnce() -> u64) -> Place {
        match self {
            Self::Own { name, scopes } => Place {
                slot: name.clone(),
                scope: format!("{scopes}-{}", number()),
            },
            Self::Shared(scope) => Place::shared(scope),
        }
    }
}

impl Scopes<'_> {
    /// Does units in the scope of what names none, one invocation after the other.
    pub(super) async fn work_in_shared<'p>(
        &self,
        invoker: &Invoker<'_>,
        units: Vec<Vec<Job<'p>>>,
        done: mpsc::Sender<JobResult<'p>>,
    ) -> Result<(), RunError> {
        let _held = self.exclusive.lock().await;
        let slot = Slot::Shared(self.shared.to_owned());
        invoker.work(units, &[slot], done).await?;
        invoker.leave(self.shared).await
    }

    fn slot(&self, number: usize) -> Slot {
        Slot::Own {
            name: format!("{}-slot-{number}", self.own),
            scopes: self.own.to_owned(),
        }
    }
}

/// What the clean run has shown.
pub(super) struct Probed<'s, 'p> {
    pub(super) clean: Vec<JobResult<'p>>,
    /// The slots to go on in, at least one.
    pub(super) slots: Vec<Slot>,
    pub(super) warning: Option<String>,
    /// Whether calls name the scope of their invocation: CONNECTs may not.
    pub(super) names_scopes: bool,
    /// The shared scope is this run's for as long as this is held.
    _held: Option<MutexGuard<'s, ()>>,
}

/// Does all jobs without chaos.
pub(super) async fn probe<'s, 'p>(
    invoker: &Invoker<'_>,
    jobs: Vec<Job<'p>>,
    scopes: &'s Scopes<'_>,
) -> Result<Probed<'s, 'p>, RunError> {
    let own = || -> Vec<Slot> {
        let slots = 1..=scopes.at_once.get();
        slots.map(|slot| scopes.slot(slot)).collect()
    };
    let shared = scopes.shared;
    let held = scopes.exclusive.lock().await;
    let mut jobs = jobs.into_iter();
    let mut clean = Vec::new();
    let mut found = CallsIn::Neither;
    while let Some(job) = jobs
        .as_slice()
        .first()
        .filter(|_| found == CallsIn::Neither)
    {
        let (result, calls) = invoker
            .invoke(&scopes.slot(1), job, &mut None, Some(shared))
            .await?;
        // An agent that cannot be reached at the beginning is not waited for again and again.
        if let Some(why) = result.unreachable.clone().filter(|_| clean.is_empty()) {
            return Err(RunError::Unreachable(why));
        }
        found = calls;
        clean.extend(jobs.next().map(|job| (job, Arc::new(result))));
    }
    let rest = jobs.map(|job| vec![job]).collect();
    let (slots, warning, held) = match found {
        CallsIn::Shared => (
            vec![Slot::Shared(shared.to_owned())],
            one_at_a_time(scopes.at_once.get()),
            Some(held),
        ),
        CallsIn::Own { others } => (own(), (others > 0).then(|| elsewhere(others)), None),
        CallsIn::Neither => (own(), Some(NO_CALL.to_owned()), None),
    };
    if held.is_none() {
        invoker.leave(shared).await?;
    }
    clean.extend(invoker.work_through(rest, &slots).await?);
    // What fails before it calls anything does not show where its calls would go.
    let warning = warning.filter(|_| found != CallsIn::Neither || !fails_always(&clean));
    Ok(Probed {
        clean,
        slots,
        warning,
        names_scopes: matches!(found, CallsIn::Own { .. }),
        _held: held,
    })
}

const NO_CALL: &str = "without chaos no call of the agent came through the proxy: either it makes none, or it \
     does not use the proxy; `squall verify` reports which";

fn one_at_a_time(at_once: usize) -> Option<String> {
    (at_once > 1).then(|| {
        format!(
            "one invocation at a time, not {at_once} (`advanced.concurrency`): the agent's calls carry no scope, so \
             calls of several invocations cannot be told apart; have the agent pass on `baggage` or `traceparent` \
             with each call"
        )
    })
}

fn elsewhere(others: usize) -> String {
    let calls = match others {
        1 => "1 call".to_owned(),
        more => format!("{more} calls"),
    };
    format!(
        "{calls} came through the proxy in no scope of the run while it ran without chaos: where \
         they are the agent's, they meet no chaos; have it pass on `baggage` or `traceparent` with all of them"
    )
}
