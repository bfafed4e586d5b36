//! Invokes the agent, sequentially in each slot.

mod level;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::try_join_all;
use squall_journal::trace_id::TraceId;
use squall_profiles::canary::Canary;
use squall_profiles::dice::{Dice, RuleKey};
use squall_profiles::fingerprint::Fingerprint;
use tokio::sync::mpsc;

use super::jobs::InvocationJob;
use super::plan::RunPlan;
use super::result::InvocationResult;
use super::{JobResult, RunError, Tell};
use crate::agents::conversation::{ConversationTally, Conversing};
use crate::agents::{AskError, Driver, Invocation, InvocationPlace, ResetError};
use crate::answer::AgentConversation;
use crate::invariants::{Conversations, conversation_canary};
use crate::prompt::Prompt;
use crate::reach::{Reach, RequestedChaos, Rules, Seen};
use crate::suite::Counters;

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
        let take = taken_in_turn(units);
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
        Ok(self.report_progress(invoked).await)
    }

    /// Reports one more invocation; returns what it gave.
    async fn report_progress<T>(&self, invoked: T) -> T {
        let number = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        let of = self.of.load(Ordering::Relaxed);
        self.tell.progress(number, of).await;
        invoked
    }

    /// The same without reporting progress.
    pub(super) async fn invoke_once(
        &self,
        slot: &Slot,
        job: &InvocationJob<'_>,
        previous: &mut Option<String>,
        shared: Option<&str>,
    ) -> Result<(InvocationResult, CallsIn), RunError> {
        let invocations = self.invocations(slot, job);
        let place = invocations[0].place.clone();
        if let Some(error) = self.reset(&place, job).await? {
            return Ok((InvocationResult::not_reset(error), CallsIn::Neither));
        }
        self.tally.invocations.fetch_add(1, Ordering::Relaxed);
        self.report_tally();
        let at_once = match job.conversations {
            Conversations::One | Conversations::Repeated(_) => 1,
            Conversations::Interleaved => invocations.len(),
        };
        let mut tally = ConversationTally::default();
        let mut conversations = Vec::new();
        let (mut all, mut first_calls, mut failed) = (None::<Seen>, None, None);
        for group in invocations.chunks(at_once) {
            let (held, seen, calls) = self.hold(group, job, previous, shared, &mut tally).await?;
            first_calls.get_or_insert(calls);
            match &mut all {
                Some(all) => all.join(seen),
                None => all = Some(seen),
            }
            match held {
                Ok(held) => conversations.extend(held),
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            }
        }
        let answer = match (failed, conversations.first()) {
            (Some(error), _) => Err(error),
            (None, first) => Ok(first.map(|one| one.answer.clone()).unwrap_or_default()),
        };
        let mut result = InvocationResult::new(answer, all.unwrap_or_default(), place);
        result.add_conversation_faults(&tally);
        if !job.is_single() {
            result.conversations = conversations;
        }
        let applied = result.faults_applied;
        self.tally
            .rules_applied
            .fetch_add(applied, Ordering::Relaxed);
        self.report_tally();
        Ok((result, first_calls.unwrap_or(CallsIn::Neither)))
    }

    /// Holds these conversations, turn by turn, each in its scope.
    async fn hold(
        &self,
        invocations: &[Invocation],
        job: &InvocationJob<'_>,
        previous: &mut Option<String>,
        shared: Option<&str>,
        tally: &mut ConversationTally,
    ) -> Result<(Result<Vec<AgentConversation>, AskError>, Seen, CallsIn), RunError> {
        let mut begun: Vec<(&str, String)> = Vec::new();
        for invocation in invocations {
            let place = &invocation.place;
            if begun.iter().any(|(scope, _)| *scope == place.scope) {
                continue;
            }
            let wanted = RequestedChaos {
                after: previous.take().filter(|_| job.goes_on),
                trace: TraceId::of_traceparent(&invocation.traceparent),
                ..self.wanted(job, place)
            };
            begun.push((&place.scope, self.begin(&place.scope, wanted).await?));
        }
        let beside = match shared {
            Some(shared) => Some(
                self.begin(shared, self.wanted(job, &InvocationPlace::shared(shared)))
                    .await?,
            ),
            None => None,
        };
        let held = self.converse(invocations, job, tally).await;
        let mut seen = Seen::default();
        for (number, (_, activation)) in begun.iter().enumerate() {
            let own = self.seen(activation).await?;
            if number == 0 {
                seen = own;
            } else {
                seen.join(own);
            }
        }
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
        *previous = begun.pop().map(|(_, activation)| activation);
        Ok((held, seen, calls))
    }

    /// Takes one step of each conversation in turn, until all are over.
    async fn converse(
        &self,
        invocations: &[Invocation],
        job: &InvocationJob<'_>,
        tally: &mut ConversationTally,
    ) -> Result<Vec<AgentConversation>, AskError> {
        let trial = job.trial.and_then(|at| self.plan.trial(at));
        let faults = trial.map_or(&[][..], |trial| &trial.conversation_faults);
        let several = invocations.len() > 1;
        let all = invocations.iter().map(|invocation| {
            let agent = self.plan.conversation;
            Conversing::new(self.driver, invocation, faults, agent, several)
        });
        let mut all: Vec<_> = all.collect();
        let mut going = vec![true; all.len()];
        while going.contains(&true) {
            for (one, goes_on) in all.iter_mut().zip(&mut going) {
                if *goes_on {
                    *goes_on = one.step().await?;
                }
            }
        }
        let held = all.into_iter().zip(invocations).zip(0..);
        let held = held.map(|((one, invocation), number)| {
            tally.applied.extend(one.tally.applied);
            tally.not_applied.extend(one.tally.not_applied);
            AgentConversation {
                answer: one.answer,
                scope: invocation.place.scope.clone(),
                canary: several.then(|| self.canary(job, number)),
            }
        });
        Ok(held.collect())
    }

    /// The canary of one of two conversations.
    fn canary(&self, job: &InvocationJob<'_>, number: u64) -> Canary {
        // With these counters all prompts of a scenario have the same key.
        let key = match self.plan.counters {
            Counters::Invocation => &job.key,
            Counters::Run => &format!("{}/{}", job.key, job.invocation),
        };
        let dice = RuleKey::new(self.plan.seed, key, "no_cross_session");
        conversation_canary(Dice::new(dice, Fingerprint(number), 1).next_choice())
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

    /// The conversations of an invocation, at least one.
    fn invocations(&self, slot: &Slot, job: &InvocationJob<'_>) -> Vec<Invocation> {
        let mutant = job.own.and_then(|own| own.mutant.as_ref());
        let (number, interleaved) = match job.conversations {
            Conversations::One => (1, false),
            Conversations::Repeated(times) => (times, false),
            Conversations::Interleaved => (2, true),
        };
        let mut first = None;
        let all = (0..number).map(|conversation| {
            let place = slot.place(|| self.scopes.fetch_add(1, Ordering::Relaxed) + 1);
            // A process that answers both conversations has the scope of the slot, not of a conversation.
            let first = first.get_or_insert_with(|| place.clone());
            let is_apart = !interleaved || self.plan.conversation.concurrent;
            let place = if is_apart { place } else { first.clone() };
            let identity = (&job.key, job.trial, job.number, conversation);
            let prompt = if interleaved {
                &marked(job.prompt, self.canary(job, conversation))
            } else {
                job.prompt
            };
            Invocation {
                change: mutant.and_then(|mutant| mutant.change.clone()),
                ..Invocation::new(self.plan.run, prompt, place, identity)
            }
        });
        all.collect()
    }
}

/// The prompt with a canary at the end of its first turn. The line has no separator of a name and a value, so no
/// template takes it for a placeholder's value.
fn marked(prompt: &Prompt, canary: Canary) -> Prompt {
    let mut turns = prompt.turns().to_vec();
    turns[0] = format!("{}\nMy reference is {canary}.", turns[0]);
    Prompt::conversation(turns).unwrap_or_else(|| prompt.clone())
}

/// Takes the next one, from any slot.
fn taken_in_turn<T>(all: Vec<T>) -> impl Fn() -> Option<T> {
    let waiting = Mutex::new(all.into_iter());
    move || {
        let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.next()
    }
}

/// A channel with capacity for the results of all invocations.
pub(super) fn channel_for<'p>(
    invocations: usize,
) -> (mpsc::Sender<JobResult<'p>>, mpsc::Receiver<JobResult<'p>>) {
    mpsc::channel(invocations.max(1))
}
