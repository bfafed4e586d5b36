//! One asking after the other, in as many slots as there are scopes.

use std::collections::{BTreeSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::try_join_all;
use squall_journal::reach::{Observe, Reach, Rules, Seen, Wanted};
use squall_journal::record::{RuleOutcome, RuleRecord};
use squall_journal::redact::Redactor;
use squall_journal::run::EvidenceRecord;
use squall_journal::trace_id::TraceId;
use tokio::sync::mpsc;

use super::idle::Idle;
use super::jobs::Job;
use super::plan::Plan;
use super::{RunError, Tell, Tried};
use crate::agents::{AskError, Driver, Invocation, ResetError};
use crate::answer::Answer;
use crate::scores::PromptSample;
use crate::suite::Prompt;
use crate::trace::Trace;

/// How long the last exchanges of an asking may take to end once the agent has answered.
const SETTLE: Duration = Duration::from_secs(2);

/// Longest part of a text that is kept as evidence, bytes.
const KEPT: usize = 64 << 10;

/// What came of an asking.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Asked {
    pub(super) answer: Answer,
    pub(super) trace: Trace,
    pub(super) faults_applied: u64,
    /// Why none was; `None`: one was, or it was not asked.
    pub(super) idle: Option<Idle>,
    pub(super) families: BTreeSet<String>,
    pub(super) exchanges: Vec<String>,
    /// Whether all that went over the wire was seen, to its end.
    pub(super) is_complete: bool,
    /// Why it cannot be judged.
    pub(super) wrong: Option<String>,
    /// Nobody was there.
    pub(super) unreachable: Option<AskError>,
    /// In which scope it was asked.
    pub(super) scope: String,
    /// When, as the run's askings begin and end.
    pub(super) during: During,
}

/// When an asking began and ended: the run's beginnings and ends are counted from 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct During {
    pub(super) began: u64,
    pub(super) ended: u64,
}

impl Asked {
    fn wrong(why: String) -> Self {
        Self {
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
            exchanges: (seen.exchanges.iter())
                .map(|one| one.record.id.clone())
                .collect(),
            is_complete: seen.is_complete(),
            ..Self::default()
        };
        match told {
            Ok(answer) => asked.answer = answer,
            // An agent that is gone has not answered; whether that is its fault is for the invariants.
            Err(error @ AskError::Unreachable { .. }) => {
                asked.answer.error = Some(error.to_string());
                asked.unreachable = Some(error);
            }
            // One that Squall cannot start has done nothing that could be held against it.
            Err(error @ AskError::NotStarted { .. }) => {
                asked.wrong = Some(error.to_string());
                asked.unreachable = Some(error);
            }
            Err(error) => asked.wrong = Some(error.to_string()),
        }
        asked.idle = Idle::of(&seen, &asked.answer);
        asked.trace = Trace::of(seen);
        asked
    }

    /// Whether a call of it came through the proxy.
    pub(super) fn was_seen(&self) -> bool {
        !self.exchanges.is_empty()
    }

    /// What came of it, as far as no invariant was asked.
    pub(super) fn not_judged_yet(&self) -> PromptSample {
        PromptSample {
            faults_applied: self.faults_applied,
            families: self.families.clone(),
            judgements: Vec::new(),
        }
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
            state: None,
            reason: None,
            faults_applied: self.faults_applied,
        }
    }
}

/// What all askings of a run share.
pub(super) struct Asking<'r> {
    plan: &'r Plan<'r>,
    driver: &'r dyn Driver,
    reach: &'r dyn Reach,
    tell: &'r dyn Tell,
    of: u64,
    done: AtomicU64,
    /// Beginnings and ends of askings so far.
    moments: AtomicU64,
}

impl<'r> Asking<'r> {
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
            moments: AtomicU64::new(0),
        }
    }

    /// Does all units, each whole in one slot, and gives what came of them; in any order.
    pub(super) async fn work_through<'p>(
        &self,
        units: Vec<Vec<Job<'p>>>,
        scopes: &[String],
    ) -> Result<Vec<Tried<'p>>, RunError> {
        let (done, mut tried) = done(&units);
        self.work(units, scopes, done).await?;
        Ok(std::iter::from_fn(|| tried.try_recv().ok()).collect())
    }

    /// Does all units, each whole in one slot, and hands on what came of each asking as soon as it is done.
    pub(super) async fn work<'p>(
        &self,
        units: Vec<Vec<Job<'p>>>,
        scopes: &[String],
        done: mpsc::Sender<Tried<'p>>,
    ) -> Result<(), RunError> {
        let waiting: Mutex<VecDeque<_>> = Mutex::new(units.into());
        let take = || {
            let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
            waiting.pop_front()
        };
        let slot = async |scope: &String| {
            while let Some(unit) = take() {
                let mut before = Before::default();
                for job in unit {
                    let began = self.moment();
                    let mut asked = self.asked(scope, &job, &mut before).await?;
                    asked.scope.clone_from(scope);
                    asked.during = self.since(began);
                    self.one_more().await;
                    // There is room for all. Nobody listens once the run has failed elsewhere.
                    let _ = done.try_send((job, asked));
                }
            }
            Ok::<_, RunError>(())
        };
        try_join_all(scopes.iter().map(slot)).await?;
        Ok(())
    }

    fn moment(&self) -> u64 {
        self.moments.fetch_add(1, Ordering::Relaxed)
    }

    fn since(&self, began: u64) -> During {
        let ended = self.moment();
        During { began, ended }
    }

    /// One more asking is done.
    async fn one_more(&self) {
        let number = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        self.tell.progress(number, self.of).await;
    }

    async fn asked(
        &self,
        scope: &str,
        job: &Job<'_>,
        before: &mut Before,
    ) -> Result<Asked, RunError> {
        if let Err(error) = self.driver.reset(scope).await {
            return Ok(Asked::not_reset(error));
        }
        if !(job.goes_on && before.activation.is_some()) {
            let begun = self.reach.begin(scope, self.wanted(job)).await?;
            *before = Before {
                activation: begun.activation,
                seen: BTreeSet::new(),
            };
        }
        let told = self.driver.ask(&self.invocation(scope, job)).await;
        let seen = self.seen(before.activation.as_deref()).await?;
        Ok(Asked::of(told, before.only_new(seen)))
    }

    /// Asks once while two scopes are watched; what was seen in each.
    pub(super) async fn asked_in_both(
        &self,
        (scope, shared): (&str, &str),
        job: &Job<'_>,
    ) -> Result<(Asked, In), RunError> {
        let began = self.moment();
        if let Err(error) = self.driver.reset(scope).await {
            return Ok((Asked::not_reset(error), In::Neither));
        }
        let in_own = self.reach.begin(scope, self.wanted(job)).await?;
        let in_shared = self
            .reach
            .begin(shared, self.wanted_without_trace(job))
            .await?;
        let told = self.driver.ask(&self.invocation(scope, job)).await;
        let own = self.seen(in_own.activation.as_deref()).await?;
        let shared = self.seen(in_shared.activation.as_deref()).await?;
        self.one_more().await;
        let (seen, at) = match (own.exchanges.len(), shared.exchanges.len()) {
            (0, 0) => (own, In::Neither),
            (0, _) => (shared, In::Shared),
            (_, others) => (own, In::Own { others }),
        };
        let mut asked = Asked::of(told, seen);
        scope.clone_into(&mut asked.scope);
        asked.during = self.since(began);
        Ok((asked, at))
    }

    async fn seen(&self, activation: Option<&str>) -> Result<Seen, RunError> {
        let activation = activation.unwrap_or_default();
        Ok(self.reach.seen(activation, SETTLE).await?)
    }

    /// Ends what was in force in a scope.
    pub(super) async fn leave(&self, scope: &str) -> Result<(), RunError> {
        self.reach.end(scope).await?;
        Ok(())
    }

    /// What is to be in force for an asking, in a scope that its trace stands for.
    fn wanted(&self, job: &Job<'_>) -> Wanted {
        Wanted {
            trace: TraceId::of_traceparent(&self.traceparent(job)),
            ..self.wanted_without_trace(job)
        }
    }

    fn wanted_without_trace(&self, job: &Job<'_>) -> Wanted {
        let trial = job.trial.and_then(|at| self.plan.trial(at));
        Wanted {
            run: self.plan.run.to_owned(),
            rules: trial.map_or(Rules::Nothing, |trial| trial.rules.clone()),
            seed: self.plan.seed,
            key: job.key.clone(),
            trace: None,
            observe: Observe::Bodies,
            tools: self.plan.tools.to_vec(),
            ttl: None,
        }
    }

    fn invocation(&self, scope: &str, job: &Job<'_>) -> Invocation {
        Invocation {
            prompt: job.prompt.clone(),
            scope: scope.to_owned(),
            traceparent: self.traceparent(job),
            conversation: format!("{}-{:016x}", self.plan.run, self.id(job, job.number)),
        }
    }

    /// A trace for each activation: askings that share one share it.
    fn traceparent(&self, job: &Job<'_>) -> String {
        let id = |salt: &str| self.id(job, salt);
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

/// Where askings are handed on, with room for these.
pub(super) fn done<'p>(
    units: &[Vec<Job<'p>>],
) -> (mpsc::Sender<Tried<'p>>, mpsc::Receiver<Tried<'p>>) {
    let askings = units.iter().map(Vec::len).sum::<usize>();
    mpsc::channel(askings.max(1))
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

/// What was seen before under an activation that several askings share.
#[derive(Default)]
struct Before {
    activation: Option<String>,
    seen: BTreeSet<String>,
}

impl Before {
    fn only_new(&mut self, mut seen: Seen) -> Seen {
        seen.exchanges
            .retain(|exchange| self.seen.insert(exchange.record.id.clone()));
        seen
    }
}

/// The rules that were applied, each as often as it was.
fn applied(seen: &Seen) -> impl Iterator<Item = &RuleRecord> {
    let rules = seen.exchanges.iter().flat_map(|one| &one.record.rules);
    rules.filter(|rule| rule.outcome == RuleOutcome::Applied)
}
