//! One invocation after the other, in as many slots as go on at once.

use std::collections::{BTreeSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::try_join_all;
use squall_journal::record::{ExchangeRecord, RuleOutcome, RuleRecord};
use squall_journal::redact::Redactor;
use squall_journal::trace_id::TraceId;
use tokio::sync::mpsc;

use super::idle::Idle;
use super::jobs::Job;
use super::plan::Plan;
use super::slot::Slot;
use super::{RunError, Tell, Tried};
use crate::agents::{AskError, Driver, Invocation, Place, ResetError, tried};
use crate::answer::Answer;
use crate::reach::{Observe, Reach, Rules, Seen, Wanted};
use crate::run::EvidenceRecord;
use crate::scores::PromptSample;
use crate::suite::{Active, Prompt};
use crate::trace::Trace;

/// How long the last exchanges of an invocation may take to end once the agent has answered.
const SETTLE: Duration = Duration::from_secs(2);

/// Longest part of a text that is kept as evidence, bytes.
const KEPT: usize = 64 << 10;

/// What came of an invocation.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Asked {
    pub(super) answer: Answer,
    pub(super) trace: Trace,
    pub(super) faults_applied: u64,
    /// Why none was; `None`: one was, or it was not asked.
    pub(super) idle: Option<Idle>,
    pub(super) families: BTreeSet<String>,
    /// What was applied.
    pub(super) applied: Active,
    pub(super) exchanges: Vec<String>,
    /// Whether all that went over the wire was seen, to its end.
    pub(super) is_complete: bool,
    /// Why it cannot be judged.
    pub(super) wrong: Option<String>,
    /// Nobody was there.
    pub(super) unreachable: Option<AskError>,
    /// How often it was asked: this is what came of it at last.
    pub(super) tries: u64,
    /// Where it was asked.
    pub(super) place: Place,
}

impl Asked {
    fn wrong(why: String) -> Self {
        Self {
            tries: 1,
            wrong: Some(why),
            is_complete: true,
            ..Self::default()
        }
    }

    /// Of an agent that was not reset, and so was not asked.
    fn not_reset(error: ResetError) -> Self {
        let mut asked = Self::wrong(error.to_string());
        if let ResetError::NotThere(absent) = error {
            asked.unreachable = Some(absent);
        }
        asked
    }

    /// Of what the agent told, and of what was seen of it.
    fn of(told: Result<Answer, AskError>, seen: Seen) -> Self {
        let mut asked = Self {
            faults_applied: applied(&seen).count() as u64,
            families: applied(&seen).map(|rule| rule.family.clone()).collect(),
            applied: Active::applied(applied(&seen)),
            exchanges: (seen.exchanges.iter())
                .map(|one| one.record.id.clone())
                .collect(),
            is_complete: seen.is_complete(),
            tries: 1,
            ..Self::default()
        };
        match told {
            Ok(answer) => asked.answer = answer,
            // Gone in the middle of a conversation under a fault: whether that is its failure is for the invariants.
            Err(error @ AskError::Unreachable { .. }) if asked.faults_applied > 0 => {
                asked.answer.error = Some(error.to_string());
                asked.unreachable = Some(error);
            }
            // An agent that is not there has done nothing that could be held against it.
            Err(error) => {
                asked.wrong = Some(error.to_string());
                asked.unreachable = Some(error).filter(AskError::is_absence);
            }
        }
        asked.idle = Idle::of(&seen, asked.failure());
        asked.trace = Trace::of(seen);
        asked
    }

    /// Takes the place of what came of it before, unless nothing came of it.
    pub(super) fn replace_with(&mut self, again: Self) {
        let tries = self.tries + 1;
        if again.wrong.is_none() && again.unreachable.is_none() {
            *self = again;
        }
        self.tries = tries;
    }

    /// Says with why it broke off how often it did.
    fn tell_tries(&mut self) {
        if self.answer.broke_off
            && let Some(why) = &mut self.answer.error
        {
            why.push_str(&tried(self.tries));
        }
    }

    /// Why there is no answer, or none that can be judged.
    pub(super) fn failure(&self) -> Option<&str> {
        self.wrong.as_deref().or(self.answer.error.as_deref())
    }

    /// Whether a call of it came through the proxy.
    pub(super) fn was_seen(&self) -> bool {
        !self.exchanges.is_empty()
    }

    /// What came of it, as far as no invariant was asked.
    pub(super) fn not_judged_yet(&self) -> PromptSample {
        PromptSample {
            exercised: self.faults_applied > 0,
            families: self.families.clone(),
            judgements: Vec::new(),
        }
    }

    /// The exchange that tells most of a judgement with this reason: the one that it names first, or the first that a
    /// fault made fail, or that one was applied to.
    pub(super) fn telling(&self, reason: &str) -> Option<String> {
        let named = self.exchanges.iter();
        let named = named.filter_map(|id| Some((reason.find(id.as_str())?, id.clone())));
        if let Some((_, id)) = named.min() {
            return Some(id);
        }
        let attempts = self.trace.attempts().iter();
        let records = attempts.map(|attempt| &self.trace.exchange(attempt).record);
        let is_hit = |record: &&ExchangeRecord| {
            let mut rules = record.rules.iter();
            rules.any(|rule| rule.outcome == RuleOutcome::Applied)
        };
        let mut hit = records.filter(is_hit);
        let first = hit.clone().next();
        let failed = hit.find(|record| record.status.is_none_or(|status| status >= 400));
        Some(failed.or(first)?.id.clone())
    }

    /// What is kept of it: no secrets, and no more than so much.
    pub(super) fn evidence(&self, prompt: &Prompt) -> EvidenceRecord {
        let redactor = Redactor::default();
        let kept = |mut text: String| {
            redactor.text(&mut text, KEPT);
            text
        };
        let told = match (&self.answer.error, self.wrong.is_some()) {
            (_, true) => None,
            (Some(_), _) if self.answer.text.is_empty() => None,
            _ => Some(kept(self.answer.text.clone())),
        };
        EvidenceRecord {
            repeat: None,
            prompt: kept(prompt.text()),
            answer: told,
            latency_ms: self.answer.latency.as_secs_f64() * 1000.0,
            exchanges: self.exchanges.clone(),
            telling: None,
            state: None,
            reason: None,
            faults_applied: self.faults_applied,
        }
    }
}

/// Activations of the invocation before.
#[derive(Debug, Default)]
struct Before {
    own: Option<String>,
    /// In the scope of what names none, where that was its too.
    beside: Option<String>,
}

/// What was done in a run so far, also of scenarios that are not judged yet.
#[derive(Debug, Default)]
pub(super) struct Tally {
    invocations: AtomicU64,
    rules_applied: AtomicU64,
}

impl Tally {
    /// How often the agent was asked.
    pub(super) fn invocations(&self) -> u64 {
        self.invocations.load(Ordering::Relaxed)
    }

    /// How often a planned fault was applied.
    pub(super) fn rules_applied(&self) -> u64 {
        self.rules_applied.load(Ordering::Relaxed)
    }
}

/// What all invocations of a run share.
pub(super) struct Invoker<'r> {
    plan: &'r Plan<'r>,
    driver: &'r dyn Driver,
    reach: &'r dyn Reach,
    tell: &'r dyn Tell,
    of: u64,
    done: AtomicU64,
    tally: Tally,
    /// Scopes so far that were an invocation's own.
    scopes: AtomicU64,
}

impl<'r> Invoker<'r> {
    pub(super) fn new(
        plan: &'r Plan<'r>,
        driver: &'r dyn Driver,
        reach: &'r dyn Reach,
        tell: &'r dyn Tell,
        of: u64,
    ) -> Self {
        Self {
            plan,
            driver,
            reach,
            tell,
            of,
            done: AtomicU64::new(0),
            tally: Tally::default(),
            scopes: AtomicU64::new(0),
        }
    }

    /// Does all units, each whole in one slot, and gives what came of them; in any order.
    pub(super) async fn work_through<'p>(
        &self,
        units: Vec<Vec<Job<'p>>>,
        slots: &[Slot],
    ) -> Result<Vec<Tried<'p>>, RunError> {
        let (done, mut tried) = done(&units);
        self.work(units, slots, done).await?;
        Ok(std::iter::from_fn(|| tried.try_recv().ok()).collect())
    }

    /// Does all units, each whole in one slot, and hands on what came of each invocation as soon as it is done.
    pub(super) async fn work<'p>(
        &self,
        units: Vec<Vec<Job<'p>>>,
        slots: &[Slot],
        done: mpsc::Sender<Tried<'p>>,
    ) -> Result<(), RunError> {
        let waiting: Mutex<VecDeque<_>> = Mutex::new(units.into());
        let take = || {
            let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
            waiting.pop_front()
        };
        let work = async |slot: &Slot| {
            while let Some(unit) = take() {
                let mut before = Before::default();
                for job in unit {
                    let asked = self.asked(slot, &job, &mut before).await?;
                    self.one_more().await;
                    // There is room for all. Nobody listens once the run has failed elsewhere.
                    let _ = done.try_send((job, Arc::new(asked)));
                }
            }
            Ok::<_, RunError>(())
        };
        try_join_all(slots.iter().map(work)).await?;
        Ok(())
    }

    /// What was done so far.
    pub(super) fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Asks the agent, and counts that.
    async fn ask(&self, invocation: &Invocation) -> Result<Answer, AskError> {
        self.tally.invocations.fetch_add(1, Ordering::Relaxed);
        self.tell_tally();
        self.driver.ask(invocation).await
    }

    /// What came of an invocation, its faults counted.
    fn counted(&self, told: Result<Answer, AskError>, seen: Seen) -> Asked {
        let asked = Asked::of(told, seen);
        let applied = asked.faults_applied;
        self.tally
            .rules_applied
            .fetch_add(applied, Ordering::Relaxed);
        self.tell_tally();
        asked
    }

    fn tell_tally(&self) {
        let tally = &self.tally;
        self.tell.tried(tally.invocations(), tally.rules_applied());
    }

    /// One more invocation is done.
    async fn one_more(&self) {
        let number = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        self.tell.progress(number, self.of).await;
    }

    /// Whether what came of it says nothing of the agent under chaos: its answer broke off, and no fault had been
    /// applied. An agent that a fault brings down is what is looked for.
    fn is_worth_another(&self, asked: &Asked) -> bool {
        let is_bad_luck = asked.answer.broke_off && asked.faults_applied == 0 && asked.is_complete;
        is_bad_luck && asked.tries <= self.plan.retries
    }

    /// `before`: the invocation before, where the unit has one.
    async fn asked(
        &self,
        slot: &Slot,
        job: &Job<'_>,
        before: &mut Before,
    ) -> Result<Asked, RunError> {
        let mut asked = self.asked_once(slot, job, 1, before).await?;
        while self.is_worth_another(&asked) {
            let again = self.asked_once(slot, job, asked.tries + 1, before);
            asked.replace_with(again.await?);
        }
        asked.tell_tries();
        Ok(asked)
    }

    async fn asked_once(
        &self,
        slot: &Slot,
        job: &Job<'_>,
        tries: u64,
        before: &mut Before,
    ) -> Result<Asked, RunError> {
        let invocation = self.invocation(slot, job, tries);
        let place = &invocation.place;
        if let Some(error) = self.reset(place, job).await? {
            return Ok(Asked::not_reset(error));
        }
        let before_it = std::mem::take(before);
        let begin = async |scope: &str, after: Option<String>, wanted| {
            let after = after.filter(|_| job.goes_on);
            let begun = self.reach.begin(scope, Wanted { after, ..wanted }).await?;
            Ok::<_, RunError>(begun.activation)
        };
        let wanted = self.wanted(job, &invocation);
        before.own = begin(&place.scope, before_it.own, wanted).await?;
        if let Some(shared) = slot.beside() {
            let wanted = self.wanted_in_shared(job);
            before.beside = begin(shared, before_it.beside, wanted).await?;
        }
        let told = self.ask(&invocation).await;
        let mut seen = self.seen(before.own.as_deref()).await?;
        if let Some(beside) = &before.beside {
            seen.join(self.seen(Some(beside)).await?);
        }
        let mut asked = self.counted(told, seen);
        asked.place = invocation.place;
        Ok(asked)
    }

    /// Has the agent forget, without chaos; what keeps it from that.
    async fn reset(&self, place: &Place, job: &Job<'_>) -> Result<Option<ResetError>, RunError> {
        let mut begun = None;
        if self.plan.resets {
            let wanted = Wanted {
                rules: Rules::Nothing,
                slot: Some(place.slot.clone()).filter(|slot| *slot != place.scope),
                ..self.wanted_in_shared(job)
            };
            begun = self.reach.begin(&place.scope, wanted).await?.activation;
        }
        let reset = self.driver.reset(place).await;
        if let (Err(_), Some(begun)) = (&reset, begun) {
            self.reach.close(&begun).await?;
        }
        Ok(reset.err())
    }

    /// Asks once while two scopes are watched; what was seen in each.
    pub(super) async fn asked_in_both(
        &self,
        slot: &Slot,
        shared: &str,
        job: &Job<'_>,
    ) -> Result<(Asked, In), RunError> {
        let (mut asked, mut at) = self.asked_once_in_both(slot, shared, job, 1).await?;
        while self.is_worth_another(&asked) {
            let again = self.asked_once_in_both(slot, shared, job, asked.tries + 1);
            let (again, found) = again.await?;
            if found != In::Neither {
                at = found;
            }
            asked.replace_with(again);
        }
        asked.tell_tries();
        self.one_more().await;
        Ok((asked, at))
    }

    async fn asked_once_in_both(
        &self,
        slot: &Slot,
        shared: &str,
        job: &Job<'_>,
        tries: u64,
    ) -> Result<(Asked, In), RunError> {
        let invocation = self.invocation(slot, job, tries);
        let place = &invocation.place;
        if let Some(error) = self.reset(place, job).await? {
            return Ok((Asked::not_reset(error), In::Neither));
        }
        let wanted = self.wanted(job, &invocation);
        let in_own = self.reach.begin(&place.scope, wanted).await?;
        let wanted = self.wanted_in_shared(job);
        let in_shared = self.reach.begin(shared, wanted).await?;
        let told = self.ask(&invocation).await;
        let own = self.seen(in_own.activation.as_deref()).await?;
        let shared = self.seen(in_shared.activation.as_deref()).await?;
        let (seen, at) = match (own.exchanges.len(), shared.exchanges.len()) {
            (0, 0) => (own, In::Neither),
            (0, _) => (shared, In::Shared),
            (_, others) => {
                let elsewhere = own.elsewhere + others as u64;
                (Seen { elsewhere, ..own }, In::Own { others })
            }
        };
        let mut asked = self.counted(told, seen);
        asked.place = invocation.place;
        Ok((asked, at))
    }

    /// What was seen of an invocation that is over.
    async fn seen(&self, activation: Option<&str>) -> Result<Seen, RunError> {
        let activation = activation.unwrap_or_default();
        self.reach.close(activation).await?;
        Ok(self.reach.seen(activation, SETTLE).await?)
    }

    /// Ends what was in force in a scope.
    pub(super) async fn leave(&self, scope: &str) -> Result<(), RunError> {
        self.reach.end(scope).await?;
        Ok(())
    }

    /// What is to be in force for an invocation, in a scope that its trace and its slot stand for.
    fn wanted(&self, job: &Job<'_>, invocation: &Invocation) -> Wanted {
        let Place { slot, scope } = &invocation.place;
        Wanted {
            trace: TraceId::of_traceparent(&invocation.traceparent),
            slot: Some(slot.clone()).filter(|slot| slot != scope),
            ..self.wanted_in_shared(job)
        }
    }

    /// The same in a scope that nothing else stands for.
    fn wanted_in_shared(&self, job: &Job<'_>) -> Wanted {
        let trial = job.trial.and_then(|at| self.plan.trial(at));
        Wanted {
            run: self.plan.run.to_owned(),
            rules: trial.map_or(Rules::Nothing, |trial| trial.rules.clone()),
            seed: self.plan.seed,
            key: job.key.clone(),
            trace: None,
            slot: None,
            after: None,
            connects_anew: self.plan.fails_connections(),
            observe: Observe::Bodies,
            tools: self.plan.tools.to_vec(),
            ttl: None,
        }
    }

    /// Each try is another conversation, in another scope and under another trace: what was said and called in the
    /// one before is not part of it.
    fn invocation(&self, slot: &Slot, job: &Job<'_>, tries: u64) -> Invocation {
        let id = match tries {
            1 => self.id(job, job.number),
            _ => self.id(job, (job.number, tries)),
        };
        Invocation {
            prompt: job.prompt.clone(),
            place: slot.place(|| self.scopes.fetch_add(1, Ordering::Relaxed) + 1),
            traceparent: self.traceparent(job, tries),
            conversation: format!("{}-{id:016x}", self.plan.run),
        }
    }

    fn traceparent(&self, job: &Job<'_>, tries: u64) -> String {
        let id = |salt: &str| self.id(job, (salt, job.number, tries));
        let (high, low, span) = (id("high"), id("low"), id("span"));
        format!("00-{high:016x}{low:016x}-{span:016x}-01")
    }

    fn id(&self, job: &Job<'_>, salt: impl Hash) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.plan.run, &job.key, job.trial, salt).hash(&mut hasher);
        // No id is all zeroes.
        hasher.finish() | 1
    }
}

/// Where invocations are handed on, with room for these.
pub(super) fn done<'p>(
    units: &[Vec<Job<'p>>],
) -> (mpsc::Sender<Tried<'p>>, mpsc::Receiver<Tried<'p>>) {
    let invocations = units.iter().map(Vec::len).sum::<usize>();
    mpsc::channel(invocations.max(1))
}

/// In which of two scopes the agent's calls came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum In {
    /// There was none.
    Neither,
    /// In the one that it was told; so many others came in the other.
    Own { others: usize },
    /// In the one of calls that name none.
    Shared,
}

/// The rules that were applied, each as often as it was.
fn applied(seen: &Seen) -> impl Iterator<Item = &RuleRecord> {
    let rules = seen.exchanges.iter().flat_map(|one| &one.record.rules);
    rules.filter(|rule| rule.outcome == RuleOutcome::Applied)
}
