//! Runs: invoke an agent under chaos and judge the results.
//!
//! ```text
//! clean     every prompt once without chaos ──▶ failures not caused by chaos, answers to compare with
//!           (also used for scenarios without chaos, which are not run again)
//! scenarios × prompts ── reset, begin, invoke, observe ──▶ judged by every invariant ──▶ cells ──▶ matrix
//! ```
//!
//! A run has one round, unless its [`Rounds`] plan further parts from the results of the last round.
//!
//! A scenario is judged and its cells are reported as soon as all its invocations are done and all earlier
//! scenarios are judged. Later scenarios continue to run meanwhile.
//!
//! Each invocation has its own activation and its own scope, so late calls are still attributed to it. Each slot
//! runs one invocation at a time, and slots run concurrently. No verdict depends on the slot or on other
//! invocations, so two runs with one seed give the same cells at any concurrency.

mod concurrency;
mod execute;
mod exploring;
mod invoker;
mod jobs;
mod judge;
mod loading;
mod merged;
mod no_fault;
mod outcome;
mod plan;
mod pool;
mod probe;
mod replays;
mod result;
mod rounds;
mod scenarios;
mod search;
mod shrink;
mod spec;
#[cfg(test)]
mod tests;
mod warnings;

use std::sync::Arc;

use tokio::sync::mpsc;

pub use self::concurrency::ConcurrencyRange;
pub use self::execute::{Execute, Executor, RunContext};
use self::invoker::Invoker;
use self::jobs::InvocationJob;
pub use self::merged::merged;
pub use self::outcome::RunResult;
#[cfg(test)]
pub(crate) use self::plan::RunPart;
use self::plan::{Component, RunPlan};
pub use self::plan::{Trial, TrialPrompt, TrialPrompts};
use self::probe::{Probed, RunScopes};
use self::result::InvocationResult;
use self::rounds::Rounds;
use self::scenarios::Scenarios;
pub use self::spec::{RunSpec, SpecError, fetched_sources};
use crate::agents::{AskError, Driver};
use crate::crew;
use crate::mutations::MutationError;
use crate::outside::Replies;
use crate::reach::{Pending, Reach, ReachError, Seen};
use crate::run::{
    CellRecord, CoverageRecord, CrewEdge, DemandRecord, DistributionRecord, ExplorationRecord,
    LoadRecord, RecoveryRecord, ReplayRecord, ShrunkRecord, StabilityRecord,
};
use crate::scores::Matrix;

/// Observes the progress of a run.
pub trait Tell: Send + Sync {
    /// `done` of `of` invocations are done.
    fn progress(&self, done: u64, of: u64) -> Pending<'_, ()>;
    /// A cell was judged. The implementation adds it to the run.
    fn cell(&self, cell: CellRecord) -> Pending<'_, ()>;
    /// The coverage of the scenarios judged so far.
    fn coverage(&self, coverage: CoverageRecord);
    /// What an exploration has executed and found so far.
    fn explored(&self, exploration: ExplorationRecord);
    /// The levels of load so far.
    fn loaded(&self, load: LoadRecord);
    /// Invocations and applied rules so far, including those of scenarios that are not judged yet.
    fn tried(&self, invocations: u64, rules_applied: u64);
}

/// The results of a run.
#[derive(Debug, Clone, Default, PartialEq)]
struct Ran {
    /// The results of its parts, in the plan's order.
    parts: Vec<RanPart>,
    /// The agent's recovery rate for each family of faults.
    recoveries: Vec<RecoveryRecord>,
    /// How consistent the repeats are; `None` without repeats.
    stability: Option<StabilityRecord>,
    /// The distributions of the invocations' numbers.
    distributions: Vec<DistributionRecord>,
    /// The replayed sessions.
    replays: Vec<ReplayRecord>,
    /// What crossed the edges of a crew.
    crew: Vec<CrewEdge>,
    /// The shrunk failures.
    shrunk: Vec<ShrunkRecord>,
    /// The exploration over calls; `None`: there was none.
    exploration: Option<ExplorationRecord>,
    /// What was measured under rising concurrency; `None`: the run is of another kind.
    load: Option<LoadRecord>,
    /// What was executed, including the clean run.
    coverage: CoverageRecord,
    /// Why a run that would have passed is inconclusive: wire invariants without any call seen, an unreachable
    /// agent, or exchanges that were lost or still open. `None`: no such reason.
    proves_nothing: Option<String>,
    /// Why no judge model or embeddings request got a reply; `None`: one did, or none was sent.
    unreachable: Option<String>,
    /// Warnings that limit what the run proves.
    warnings: Vec<String>,
}

/// The results of one part of a run.
#[derive(Debug, Clone, PartialEq)]
struct RanPart {
    /// Its component of the overall score.
    component: Component,
    /// The cells of all scenarios, and the record of each scenario.
    matrix: Matrix,
    /// The invariants of this part.
    demands: Vec<DemandRecord>,
    /// Exercised prompts with no failed invariant, divided by exercised prompts; `None`: nothing to judge.
    chaos_resilience: Option<f64>,
    /// Passed weight of mutants divided by judged weight; `None`: nothing to judge.
    robustness: Option<f64>,
}

/// Why a run could not finish.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A request to the proxy failed.
    #[error(transparent)]
    Reach(#[from] ReachError),
    /// The agent cannot be reached.
    #[error(transparent)]
    Unreachable(AskError),
    /// The agent accepts connections but never responds.
    #[error("the agent accepts connections, and answers nothing: without chaos, {0}")]
    NeverAnswers(String),
    /// There are no mutants.
    #[error(transparent)]
    Mutation(#[from] MutationError),
    /// The agent must not be invoked.
    #[error("{0}")]
    Agent(String),
    /// The suite's model or its embeddings endpoint could not be reached.
    #[error("judge model unreachable: {0}")]
    Model(String),
}

/// Executes a run in as many concurrent scopes as the agent's calls can be attributed to. Ends all chaos that it
/// began, even when it fails.
async fn run<'s>(
    plan: &RunPlan<'s>,
    rounds: &mut dyn Rounds<'s>,
    driver: &dyn Driver,
    reach: &dyn Reach,
    scopes: &RunScopes<'_>,
    tell: &dyn Tell,
) -> Result<Ran, RunError> {
    let ran = carried_out(plan, rounds, driver, reach, scopes, tell).await;
    let ended = reach.end_run(plan.run).await;
    let ran = ran?;
    ended?;
    Ok(ran)
}

async fn carried_out<'s>(
    plan: &RunPlan<'s>,
    rounds: &mut dyn Rounds<'s>,
    driver: &dyn Driver,
    reach: &dyn Reach,
    scopes: &RunScopes<'_>,
    tell: &dyn Tell,
) -> Result<Ran, RunError> {
    let mut jobs = jobs::under_chaos(plan, 0);
    let mut expected = jobs::by_scenario(&jobs);
    let clean_jobs = jobs::clean(plan, &mut jobs);
    let invoker = Invoker::new(plan, driver, reach, tell);
    invoker.plan_more(clean_jobs.len() + jobs.iter().map(Vec::len).sum::<usize>());
    let probed = probe::probe(&invoker, clean_jobs, &mut jobs, scopes).await?;
    let down = |(_, result): &JobResult<'_>| result.unreachable.clone();
    if probed.clean.iter().all(|one| down(one).is_some())
        && let Some(why) = probed.clean.first().and_then(down)
    {
        return Err(RunError::Unreachable(why));
    }
    if !plan.connects_in_scope
        && let Some(why) = warnings::never_answers(&probed.clean)
    {
        return Err(RunError::NeverAnswers(why));
    }
    let mut scenarios = Scenarios::new(plan, &probed.clean, invoker.tally());
    let mut from = 0;
    loop {
        let (done, results) = invoker::channel_for(expected.values().sum());
        let of_scenarios = probed.clean.iter().filter(|(job, _)| job.trial.is_some());
        for one in of_scenarios.filter(|_| from == 0) {
            // The channel has room for all results, so this cannot fail.
            let _ = done.try_send(one.clone());
        }
        // Scenarios are judged while later ones run. An error in those also stops judging.
        let judging = async {
            scenarios.judge(&expected, results, tell).await;
            Ok(())
        };
        let working = round(&invoker, jobs, &probed, scopes, done);
        let (seen, ()) = tokio::try_join!(working, judging)?;
        if let Some(seen) = seen {
            rounds.level_seen(seen);
        }
        let parts = rounds.next(&scenarios.round(from))?;
        if plan.is_load() {
            scenarios.forget_traces();
        }
        if parts.is_empty() {
            break;
        }
        from = plan.parts.iter().count();
        plan.parts.add(parts);
        jobs = jobs::under_chaos(plan, from);
        expected = jobs::by_scenario(&jobs);
        invoker.plan_more(expected.values().sum());
    }
    let (shrunk, not_shrunk) = if plan.shrinks {
        shrink::shrink(&invoker, &mut scenarios, &probed, scopes).await?
    } else {
        (Vec::new(), None)
    };
    let baseline_alone = || probed.clean.iter().filter(|(job, _)| job.trial.is_none());
    let all = || baseline_alone().chain(scenarios.results());
    let late = reach.late(plan.run).await?;
    let clean = all().filter(|(job, _)| job.own.is_none() && plan.is_clean(job.trial));
    let warnings = [
        warnings::fails_without_chaos(&probed.clean),
        probed.warning,
        scenarios.left_out(),
        warnings::calls_late(&late, all()),
        warnings::stateful(clean).filter(|_| !plan.resets),
        not_shrunk,
    ];
    // The figures of a level report what was lost, and how often the agent was gone.
    let judged_alone =
        all().filter(|(job, _)| job.own.is_none() || plan.load_limits(job.trial).is_none());
    let was_seen = all().any(|(_, result)| result.was_seen());
    let blind = !was_seen && plan.looks_at_the_wire();
    Ok(Ran {
        proves_nothing: (blind.then(|| judge::BLIND.to_owned()))
            .or_else(|| warnings::proves_nothing(judged_alone)),
        recoveries: scenarios.recoveries(),
        stability: scenarios.stability(),
        distributions: scenarios.distributions(),
        replays: scenarios.replays(),
        crew: crew::edges(all().map(|(_, result)| &result.trace)),
        shrunk,
        coverage: scenarios.coverage(),
        unreachable: scenarios.unreachable(),
        parts: scenarios.into_parts(),
        warnings: warnings.into_iter().flatten().collect(),
        ..Ran::default()
    })
}

/// Executes the invocations of a round. Returns the calls of a level of load whose invocations cannot be told apart.
async fn round<'p>(
    invoker: &Invoker<'_, '_>,
    jobs: Vec<Vec<InvocationJob<'p>>>,
    probed: &Probed<'_, '_>,
    scopes: &RunScopes<'_>,
    done: mpsc::Sender<JobResult<'p>>,
) -> Result<Option<Seen>, RunError> {
    let plan = invoker.plan();
    let mut all = jobs.iter().flatten();
    if let Some(limits) = all.next().and_then(|job| plan.load_limits(job.trial)) {
        let jobs = jobs.into_iter().flatten().collect();
        let scope = format!("{}-level", scopes.own);
        return invoker
            .work_in_level(jobs, limits, &probed.slots, &scope, done)
            .await;
    }
    let needs_shared = |job: &InvocationJob<'_>| plan.needs_shared_scope(job.trial);
    let (in_shared, jobs): (Vec<_>, Vec<_>) =
        (jobs.into_iter()).partition(|unit| probed.names_scopes && unit.iter().any(needs_shared));
    invoker.work(jobs, &probed.slots, done.clone()).await?;
    if in_shared.is_empty() {
        return Ok(None);
    }
    scopes.work_in_shared(invoker, in_shared, done).await?;
    Ok(None)
}

/// An invocation and its result.
type JobResult<'p> = (InvocationJob<'p>, Arc<InvocationResult>);
