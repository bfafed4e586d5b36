//! In which scopes the agent's calls can be told apart, found out while it is asked without chaos.
//!
//! The agent is told a scope in every way there is. Calls that come in that scope can be told from those
//! of other invocations, and as many invocations go on at once as there are slots. Calls that come in the scope of
//! what names none cannot: then one invocation follows the other, while this run has that scope for itself.

use std::num::NonZeroUsize;
use std::sync::Arc;

use tokio::sync::{Mutex, MutexGuard, mpsc};

use super::ask::{In, Invoker};
use super::jobs::Job;
use super::slot::Slot;
use super::unwell::fails_always;
use super::{RunError, Tried};

/// The scopes that a run can work in.
#[derive(Debug)]
pub(super) struct Scopes<'s> {
    /// Its own are called so, with `-1`, `-2` and so on; with `-slot-1` and so on what stands for one after the
    /// other.
    pub(super) own: &'s str,
    /// How many invocations go on at once.
    pub(super) at_once: NonZeroUsize,
    /// The scope of what names none. What others have in force there is suspended while it is this run's.
    pub(super) shared: &'s str,
    /// Held while the shared scope is this run's.
    pub(super) exclusive: &'s Mutex<()>,
}

impl Scopes<'_> {
    /// Does units in the scope of what names none, too, one invocation after the other.
    pub(super) async fn work_beside<'p>(
        &self,
        invoker: &Invoker<'_>,
        shared: &str,
        units: Vec<Vec<Job<'p>>>,
        done: mpsc::Sender<Tried<'p>>,
    ) -> Result<(), RunError> {
        let _held = self.exclusive.lock().await;
        let slot = Slot::Both {
            name: format!("{}-slot-1", self.own),
            scopes: self.own.to_owned(),
            shared: shared.to_owned(),
        };
        invoker.work(units, &[slot], done).await?;
        invoker.leave(shared).await
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
    pub(super) clean: Vec<Tried<'p>>,
    /// The slots to go on in, at least one.
    pub(super) slots: Vec<Slot>,
    pub(super) warnings: Vec<String>,
    /// The scope of what names none, where it is free and calls of an invocation name their own: CONNECTs may not.
    pub(super) beside: Option<&'s str>,
    /// The shared scope is this run's for as long as this is held.
    _held: Option<MutexGuard<'s, ()>>,
}

/// Asks everything once without chaos.
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
    let mut found = In::Neither;
    while let Some(job) = jobs.as_slice().first().filter(|_| found == In::Neither) {
        let (asked, at) = invoker.asked_in_both(&scopes.slot(1), shared, job).await?;
        // Whoever is not there when everything begins is not waited for again and again.
        if let Some(why) = asked.unreachable.clone().filter(|_| clean.is_empty()) {
            return Err(RunError::Unreachable(why));
        }
        found = at;
        clean.extend(jobs.next().map(|job| (job, Arc::new(asked))));
    }
    let rest = jobs.map(|job| vec![job]).collect();
    let (slots, warning, held) = match found {
        In::Shared => (
            vec![Slot::Shared(shared.to_owned())],
            one_at_a_time(scopes.at_once.get()),
            Some(held),
        ),
        In::Own { others } => (own(), (others > 0).then(|| elsewhere(others)), None),
        In::Neither => (own(), Some(NOTHING.to_owned()), None),
    };
    if held.is_none() {
        invoker.leave(shared).await?;
    }
    clean.extend(invoker.work_through(rest, &slots).await?);
    // What fails before it calls anybody says nothing of where its calls would go.
    let warning = warning.filter(|_| found != In::Neither || !fails_always(&clean));
    Ok(Probed {
        clean,
        slots,
        warnings: warning.into_iter().collect(),
        beside: matches!(found, In::Own { .. }).then_some(shared),
        _held: held,
    })
}

const NOTHING: &str = "without chaos no call of the agent came through the proxy: either it makes none, or it \
     does not use the proxy; `squall verify` says which";

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
        "{calls} came through the proxy in no scope of the run while it asked without chaos: where \
         they are the agent's, they meet no chaos; have it pass on `baggage` or `traceparent` with all of them"
    )
}
