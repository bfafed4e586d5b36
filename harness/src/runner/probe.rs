//! Finds out in which scopes the agent's calls arrive, while the agent is invoked without chaos.
//!
//! Squall passes a scope to the agent in every supported way. Calls that carry it can be attributed to their
//! invocation, so slots run concurrently. Calls without a scope cannot be attributed. In that case invocations are
//! sequential, and this run holds the shared scope exclusively.

use std::num::NonZeroUsize;
use std::sync::Arc;

use tokio::sync::{Mutex, MutexGuard, mpsc};

use super::invoker::{CallsIn, Invoker, Slot};
use super::jobs::InvocationJob;
use super::warnings::fails_always;
use super::{JobResult, RunError};
use crate::count::count;

/// The scopes that a run can use.
#[derive(Debug)]
pub(super) struct RunScopes<'s> {
    /// Prefix of the run's own scopes: `-1`, `-2` and so on follow, or `-slot-1` and so on for slots.
    pub(super) own: &'s str,
    /// Concurrent invocations.
    pub(super) at_once: NonZeroUsize,
    /// The scope of calls that carry none. While this run uses it, other chaos in it is suspended.
    pub(super) shared: &'s str,
    /// Locked while this run uses the shared scope.
    pub(super) exclusive: &'s Mutex<()>,
}

impl RunScopes<'_> {
    /// Executes units in the shared scope, one invocation at a time.
    pub(super) async fn work_in_shared<'p>(
        &self,
        invoker: &Invoker<'_, '_>,
        units: Vec<Vec<InvocationJob<'p>>>,
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

/// The results of the clean run.
pub(super) struct Probed<'s, 'p> {
    pub(super) clean: Vec<JobResult<'p>>,
    /// The slots to use from here on, at least one.
    pub(super) slots: Vec<Slot>,
    pub(super) warning: Option<String>,
    /// Whether calls carry the scope of their invocation. CONNECTs may not carry it.
    pub(super) names_scopes: bool,
    /// Keeps the shared scope exclusive to this run.
    _held: Option<MutexGuard<'s, ()>>,
}

/// Executes all jobs without chaos. A run without a clean baseline finds the scopes with the first of its other
/// `units`, and takes them out.
pub(super) async fn probe<'s, 'p>(
    invoker: &Invoker<'_, '_>,
    jobs: Vec<InvocationJob<'p>>,
    units: &mut [Vec<InvocationJob<'p>>],
    scopes: &'s RunScopes<'_>,
) -> Result<Probed<'s, 'p>, RunError> {
    let is_load = invoker.plan().is_load();
    let own = || -> Vec<Slot> {
        let slots = 1..=scopes.at_once.get();
        slots.map(|slot| scopes.slot(slot)).collect()
    };
    let shared = scopes.shared;
    let held = scopes.exclusive.lock().await;
    let has_baseline = !jobs.is_empty();
    let mut jobs = jobs.into_iter();
    let mut clean = Vec::new();
    let mut found = CallsIn::Neither;
    while found == CallsIn::Neither {
        let job = if has_baseline {
            jobs.next()
        } else {
            let mut units = units.iter_mut().filter(|unit| !unit.is_empty());
            units.next().map(|unit| unit.remove(0))
        };
        let Some(job) = job else { break };
        let (result, calls) = invoker
            .invoke(&scopes.slot(1), &job, &mut None, Some(shared))
            .await?;
        // If the agent is unreachable at the beginning, further attempts would only wait again.
        if let Some(why) = result.unreachable.clone().filter(|_| clean.is_empty()) {
            return Err(RunError::Unreachable(why));
        }
        found = calls;
        clean.push((job, Arc::new(result)));
    }
    let rest = jobs.map(|job| vec![job]).collect();
    let (slots, warning, held) = match found {
        CallsIn::Shared => (
            vec![Slot::Shared(shared.to_owned())],
            if is_load {
                Some(BY_LEVEL.to_owned())
            } else {
                one_at_a_time(scopes.at_once.get())
            },
            Some(held),
        ),
        CallsIn::Own { others } => (own(), (others > 0).then(|| elsewhere(others)), None),
        CallsIn::Neither => (own(), Some(NO_CALL.to_owned()), None),
    };
    if held.is_none() {
        invoker.leave(shared).await?;
    }
    let of_baseline = if is_load { &slots[..1] } else { &slots[..] };
    clean.extend(invoker.work_through(rest, of_baseline).await?);
    // An agent that fails before its first call does not show which scope its calls use.
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

const BY_LEVEL: &str = "the agent's calls carry no scope, so calls of several invocations cannot be told apart: they \
     are counted for each level, and invariants on calls are not judged; have the agent pass on `baggage` or \
     `traceparent` with each call";

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
    let calls = count(others, "call");
    format!(
        "{calls} came through the proxy in no scope of the run while it ran without chaos: where \
         they are the agent's, they meet no chaos; have it pass on `baggage` or `traceparent` with all of them"
    )
}
