//! Invokes the agent, sequentially in each slot.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::try_join_all;
use squall_journal::trace_id::TraceId;
use tokio::sync::mpsc;

use super::jobs::InvocationJob;
use super::plan::RunPlan;
use super::result::InvocationResult;
use super::{JobResult, RunError, Tell};
use crate::agents::{Driver, Invocation, InvocationPlace, ResetError};
use crate::reach::{Reach, RequestedChaos, Rules, Seen};

/// How long Squall waits for the last exchanges of an invocation to end after the agent has answered.
const SETTLE: Duration = Duration::from_secs(2);

/// Invocations and applied rules so far, including those of scenarios that are not judged yet.
#[derive(Debug, Default)]
pub(super) struct RunTally {
    invocations: AtomicU64,
    rules_applied: AtomicU64,
}

impl RunTally {
    pub(super) fn invocations(&self) -> u64 {
        self.invocations.load(Ordering::Relaxed)
    }

    pub(super) fn rules_applied(&self) -> u64 {
        self.rules_applied.load(Ordering::Relaxed)
    }
}

/// A sequence of invocations. Slots run concurrently.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Slot {
    /// Each invocation has a scope of its own.
    Own {
        /// The scope of a long-lived process, which is the same for all invocations in the slot.
        name: String,
        /// Prefix of the scopes' names.
        scopes: String,
    },
    /// The scope of calls that carry none.
    Shared(String),
}

impl Slot {
    /// The place of the next invocation; `number` makes its scope unique in the run.
    pub(super) fn place(&self, number: impl FnOnce() -> u64) -> InvocationPlace {
        match self {
            Self::Own { name, scopes } => InvocationPlace {
                slot: name.clone(),
                scope: format!("{scopes}-{}", number()),
            },
            Self::Shared(scope) => InvocationPlace::shared(scope),
        }
    }
}

/// The scopes in which the agent's calls were seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallsIn {
    /// No call was seen.
    Neither,
    /// In the invocation's own scope; `others` calls were seen in the shared one.
    Own { others: usize },
    /// In the shared scope, which contains the calls that carry no scope.
    Shared,
}

/// The state that all invocations of a run share.
pub(super) struct Invoker<'r, 's> {
    plan: &'r RunPlan<'s>,
    driver: &'r dyn Driver,
    reach: &'r dyn Reach,
    tell: &'r dyn Tell,
    /// Planned invocations so far, for progress.
    of: AtomicU64,
    done: AtomicU64,
    tally: RunTally,
    /// The number of scopes used so far.
    scopes: AtomicU64,
}

impl<'r, 's> Invoker<'r, 's> {
    pub(super) fn new(
        plan: &'r RunPlan<'s>,
        driver: &'r dyn Driver,
        reach: &'r dyn Reach,
        tell: &'r dyn Tell,
    ) -> Self {
        Self {
            plan,
            driver,
            reach,
            tell,
            of: AtomicU64::new(0),
            done: AtomicU64::new(0),
            tally: RunTally::default(),
            scopes: AtomicU64::new(0),
        }
    }

    /// Adds planned invocations to the progress.
    pub(super) fn plan_more(&self, invocations: usize) {
        self.of.fetch_add(invocations as u64, Ordering::Relaxed);
    }

    /// Executes all units, each completely in one slot; results are in any order.
    pub(super) async fn work_through<'p>(
        &self,
        units: Vec<Vec<InvocationJob<'p>>>,
        slots: &[Slot],
    ) -> Result<Vec<JobResult<'p>>, RunError> {
        let (done, mut results) = channel_for(units.iter().map(Vec::len).sum());
        self.work(units, slots, done).await?;
        Ok(std::iter::from_fn(|| results.try_recv().ok()).collect())
    }

    /// Executes all units, each completely in one slot, and sends each result at once.
    pub(super) async fn work<'p>(
        &self,
        units: Vec<Vec<InvocationJob<'p>>>,
        slots: &[Slot],
        done: mpsc::Sender<JobResult<'p>>,
    ) -> Result<(), RunError> {
        let waiting: Mutex<VecDeque<_>> = Mutex::new(units.into());
        let take = || {
            let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
            waiting.pop_front()
        };
        let work = async |slot: &Slot| {
            while let Some(unit) = take() {
                let mut previous = None;
                for job in unit {
                    let (result, _) = self.invoke(slot, &job, &mut previous, None).await?;
                    // The channel has room for all results. Its receiver is gone only if the run has already
                    // failed.
                    let _ = done.try_send((job, Arc::new(result)));
                }
            }
            Ok::<_, RunError>(())
        };
        try_join_all(slots.iter().map(work)).await?;
        Ok(())
    }

    pub(super) fn plan(&self) -> &RunPlan<'s> {
        self.plan
    }

    pub(super) fn tally(&self) -> &RunTally {
        &self.tally
    }

    /// Invokes the agent. `previous` is the activation of the previous invocation in the same unit. `shared` is a scope
    /// that is observed in addition to the invocation's own.
    pub(super) async fn invoke(
        &self,
        slot: &Slot,
        job: &InvocationJob<'_>,
        previous: &mut Option<String>,
        shared: Option<&str>,
    ) -> Result<(InvocationResult, CallsIn), RunError> {
        let invoked = self.invoke_once(slot, job, previous, shared).await?;
        let number = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        let of = self.of.load(Ordering::Relaxed);
        self.tell.progress(number, of).await;
        Ok(invoked)
    }

    /// The same without reporting progress.
    pub(super) async fn invoke_once(
        &self,
        slot: &Slot,
        job: &InvocationJob<'_>,
        previous: &mut Option<String>,
        shared: Option<&str>,
    ) -> Result<(InvocationResult, CallsIn), RunError> {
        let invocation = self.invocation(slot, job);
        let place = &invocation.place;
        if let Some(error) = self.reset(place, job).await? {
            return Ok((InvocationResult::not_reset(error), CallsIn::Neither));
        }
        let wanted = RequestedChaos {
            after: previous.take().filter(|_| job.goes_on),
            trace: TraceId::of_traceparent(&invocation.traceparent),
            ..self.wanted(job, place)
        };
        let own = self.begin(&place.scope, wanted).await?;
        let beside = match shared {
            Some(shared) => Some(
                self.begin(shared, self.wanted(job, &InvocationPlace::shared(shared)))
                    .await?,
            ),
            None => None,
        };
        self.tally.invocations.fetch_add(1, Ordering::Relaxed);
        self.report_tally();
        let answer = self.driver.ask(&invocation).await;
        let mut seen = self.seen(&own).await?;
        let mut calls = CallsIn::Own { others: 0 };
        if let Some(beside) = beside {
            let other = self.seen(&beside).await?;
            calls = match (seen.exchanges.len(), other.exchanges.len()) {
                (0, 0) => CallsIn::Neither,
                (0, _) => {
                    seen = other;
                    CallsIn::Shared
                }
                (_, others) => {
                    seen.elsewhere += others as u64;
                    CallsIn::Own { others }
                }
            };
        }
        *previous = Some(own);
        let result = InvocationResult::new(answer, seen, invocation.place);
        let applied = result.faults_applied;
        self.tally
            .rules_applied
            .fetch_add(applied, Ordering::Relaxed);
        self.report_tally();
        Ok((result, calls))
    }

    fn report_tally(&self) {
        let tally = &self.tally;
        self.tell.tried(tally.invocations(), tally.rules_applied());
    }

    /// Resets the agent without chaos. Returns the error if the reset fails.
    async fn reset(
        &self,
        place: &InvocationPlace,
        job: &InvocationJob<'_>,
    ) -> Result<Option<ResetError>, RunError> {
        let mut begun = None;
        if self.plan.resets {
            let wanted = RequestedChaos {
                rules: Rules::Nothing,
                tape: None,
                ..self.wanted(job, place)
            };
            begun = Some(self.begin(&place.scope, wanted).await?);
        }
        let reset = self.driver.reset(place).await;
        if let (Err(_), Some(begun)) = (&reset, begun) {
            self.reach.close(&begun).await?;
        }
        Ok(reset.err())
    }

    async fn begin(&self, scope: &str, wanted: RequestedChaos) -> Result<String, RunError> {
        let begun = self.reach.begin(scope, wanted).await?;
        Ok(begun.activation.unwrap_or_default())
    }

    /// The traffic of a finished invocation.
    async fn seen(&self, activation: &str) -> Result<Seen, RunError> {
        self.reach.close(activation).await?;
        Ok(self.reach.seen(activation, SETTLE).await?)
    }

    /// Ends the chaos in a scope.
    pub(super) async fn leave(&self, scope: &str) -> Result<(), RunError> {
        self.reach.end(scope).await?;
        Ok(())
    }

    /// The chaos to put in force for an invocation at this place.
    fn wanted(&self, job: &InvocationJob<'_>, place: &InvocationPlace) -> RequestedChaos {
        let trial = job.trial.and_then(|at| self.plan.trial(at));
        let slot = Some(place.slot.clone());
        RequestedChaos {
            run: self.plan.run.to_owned(),
            rules: (job.rules.clone().or_else(|| Some(trial?.rules.clone())))
                .unwrap_or(Rules::Nothing),
            seed: self.plan.seed,
            key: job.key.clone(),
            trace: None,
            slot: slot.filter(|slot| *slot != place.scope),
            after: None,
            connects_anew: self.plan.fails_connections(),
            tools: self.plan.tools.clone(),
            tape: (job.tape.clone().or_else(|| trial?.tape.clone()))
                .filter(|session| session.plays_tape()),
        }
    }

    fn invocation(&self, slot: &Slot, job: &InvocationJob<'_>) -> Invocation {
        let place = slot.place(|| self.scopes.fetch_add(1, Ordering::Relaxed) + 1);
        let identity = (&job.key, job.trial, job.number);
        let mutant = job.own.and_then(|own| own.mutant.as_ref());
        Invocation {
            change: mutant.and_then(|mutant| mutant.change.clone()),
            ..Invocation::new(self.plan.run, job.prompt, place, identity)
        }
    }
}

/// A channel with capacity for the results of all invocations.
pub(super) fn channel_for<'p>(
    invocations: usize,
) -> (mpsc::Sender<JobResult<'p>>, mpsc::Receiver<JobResult<'p>>) {
    mpsc::channel(invocations.max(1))
}
