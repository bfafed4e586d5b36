//! Runs: agents invoked under chaos, and judged.
//!
//! ```text
//! clean     every prompt once without chaos ──▶ what chaos is not to blame for, what to compare with
//!           (a scenario without chaos is this, and is not run again)
//! scenarios × prompts ── reset, begin, ask, see ──▶ judged by every invariant ──▶ cells ──▶ matrix
//! ```
//!
//! A scenario is judged, and its cells are reported, as soon as all its invocations are done and those before it are
//! judged, while later ones run.
//!
//! Each invocation is an activation of its own, in a scope of its own: what it calls when it is over is still its own.
//! As many invocations go on at once as there are slots. No verdict depends on the slot or on other invocations, so that
//! two runs with one seed give the same cells at any concurrency.

mod execute;
mod invoker;
mod jobs;
mod judge;
mod no_fault;
mod outcome;
mod plan;
mod pool;
mod probe;
mod result;
mod scenarios;
mod spec;
#[cfg(test)]
mod tests;
mod warnings;

use std::sync::Arc;

pub use self::execute::{Execute, Executor, RunContext};
use self::invoker::Invoker;
use self::jobs::Job;
pub use self::outcome::RunResult;
#[cfg(test)]
pub(crate) use self::plan::Part;
pub use self::plan::Trial;
use self::plan::{Component, Plan};
use self::probe::Scopes;
use self::result::InvocationResult;
use self::scenarios::Scenarios;
pub use self::spec::{RunSpec, SpecError};
use crate::agents::{AskError, Driver};
use crate::outside::Replies;
use crate::reach::{Pending, Reach, ReachError};
use crate::run::{CellRecord, CoverageRecord, DemandRecord, RecoveryRecord, StabilityRecord};
use crate::scores::Matrix;

/// Observes how a run goes.
pub trait Tell: Send + Sync {
    /// So many of so many invocations are done.
    fn progress(&self, done: u64, of: u64) -> Pending<'_, ()>;
    /// A cell was judged. It becomes part of the run.
    fn cell(&self, cell: CellRecord) -> Pending<'_, ()>;
    /// What is judged so far.
    fn coverage(&self, coverage: CoverageRecord);
    /// How often the agent was invoked so far, and rules were applied, judged or not.
    fn tried(&self, invocations: u64, rules_applied: u64);
}

/// What came of a run.
#[derive(Debug, Clone, PartialEq)]
struct Ran {
    /// What came of its parts, in the plan's order.
    parts: Vec<RanPart>,
    /// How the agent recovers from each family of faults.
    recoveries: Vec<RecoveryRecord>,
    /// How far repeats agree; `None` when everything was done once.
    stability: Option<StabilityRecord>,
    /// What was tried, the clean run included.
    coverage: CoverageRecord,
    /// Why a run that would have passed proves nothing: no call was seen and invariants look at the wire, the agent was
    /// gone, or exchanges were lost or still open. `None`: none of that.
    proves_nothing: Option<String>,
    /// Why no question to the suite's model, or for embeddings, had a reply; `None`: one had, or there was none.
    unreachable: Option<String>,
    /// What makes the run worth less than it looks.
    warnings: Vec<String>,
}

/// What came of a part of a run.
#[derive(Debug, Clone, PartialEq)]
struct RanPart {
    /// What it is called in the overall score.
    component: Component,
    /// Every cell, scenario by scenario, and how each scenario went.
    matrix: Matrix,
    /// What was demanded.
    demands: Vec<DemandRecord>,
    /// Exercised prompts whose invariants all hold, by exercised prompts; `None`: nothing to judge.
    chaos_resilience: Option<f64>,
}

/// Why a run came to no end.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The proxy did not do what it was asked to.
    #[error(transparent)]
    Reach(#[from] ReachError),
    /// The agent cannot be reached.
    #[error(transparent)]
    Unreachable(AskError),
    /// It accepts connections, and answers nothing.
    #[error("the agent accepts connections, and answers nothing: without chaos, {0}")]
    NeverAnswers(String),
    /// It may not be invoked.
    #[error("{0}")]
    Agent(String),
    /// The suite's model, or embeddings, could not be reached.
    #[error("judge model unreachable: {0}")]
    Model(String),
}

/// Carries a run out, in as many scopes at once as the agent's calls can be told apart in. All chaos that
/// it began is ended when it is over, however that is.
async fn run(
    plan: &Plan<'_>,
    driver: &dyn Driver,
    reach: &dyn Reach,
    scopes: &Scopes<'_>,
    tell: &dyn Tell,
) -> Result<Ran, RunError> {
    let ran = carried_out(plan, driver, reach, scopes, tell).await;
    let ended = reach.end_run(plan.run).await;
    let ran = ran?;
    ended?;
    Ok(ran)
}

async fn carried_out(
    plan: &Plan<'_>,
    driver: &dyn Driver,
    reach: &dyn Reach,
    scopes: &Scopes<'_>,
    tell: &dyn Tell,
) -> Result<Ran, RunError> {
    let mut jobs = jobs::under_chaos(plan);
    let expected = jobs::by_scenario(&jobs);
    let (done, results) = invoker::channel_for(&jobs);
    let clean_jobs = jobs::clean(plan, &mut jobs);
    let invocations = (clean_jobs.len() + jobs.iter().map(Vec::len).sum::<usize>()) as u64;
    let invoker = Invoker::new(plan, driver, reach, tell, invocations);
    let probed = probe::probe(&invoker, clean_jobs, scopes).await?;
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
    let of_scenarios = probed.clean.iter().filter(|(job, _)| job.trial.is_some());
    for one in of_scenarios {
        // There is room for all.
        let _ = done.try_send(one.clone());
    }
    // Scenarios are judged while later ones run. When those cannot go on, nothing is judged any more.
    let judging = async {
        scenarios.judge(&expected, results, tell).await;
        Ok(())
    };
    let (in_shared, jobs): (Vec<_>, Vec<_>) = jobs.into_iter().partition(|unit: &Vec<Job<'_>>| {
        probed.names_scopes && unit.iter().any(|job| plan.needs_shared_scope(job.trial))
    });
    let working = async {
        invoker.work(jobs, &probed.slots, done.clone()).await?;
        if in_shared.is_empty() {
            return Ok(());
        }
        scopes.work_in_shared(&invoker, in_shared, done).await
    };
    tokio::try_join!(working, judging)?;
    let baseline_alone = || probed.clean.iter().filter(|(job, _)| job.trial.is_none());
    let all = || baseline_alone().chain(scenarios.results());
    let late = reach.late(plan.run).await?;
    let clean = all().filter(|(job, _)| plan.is_clean(job.trial));
    let warnings = [
        warnings::fails_without_chaos(&probed.clean),
        probed.warning,
        scenarios.left_out(),
        warnings::breaks_off(all()),
        warnings::calls_late(&late, all()),
        warnings::stateful(clean).filter(|_| !plan.resets),
    ];
    let was_seen = all().any(|(_, result)| result.was_seen());
    let blind = !was_seen && plan.looks_at_the_wire();
    Ok(Ran {
        proves_nothing: (blind.then(|| judge::BLIND.to_owned()))
            .or_else(|| warnings::proves_nothing(all())),
        recoveries: scenarios.recoveries(),
        stability: scenarios.stability(),
        coverage: scenarios.coverage(),
        unreachable: scenarios.unreachable(),
        parts: scenarios.into_parts(),
        warnings: warnings.into_iter().flatten().collect(),
    })
}

/// An invocation, and what came of it.
type JobResult<'p> = (Job<'p>, Arc<InvocationResult>);
