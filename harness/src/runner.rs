//! Runs: agents asked under chaos, and judged.
//!
//! ```text
//! clean     every prompt once without chaos ──▶ what chaos is not to blame for, what to compare with
//!           (a scenario without chaos is this, and is not asked again)
//! scenarios × prompts ── reset, begin, ask, see ──▶ judged by every invariant ──▶ cells ──▶ matrix
//! ```
//!
//! A scenario is judged, and its cells are told, as soon as all its invocations are done and those before it are
//! judged, while later ones are being tried.
//!
//! Each invocation is an activation of its own, in a scope of its own: what it calls when it is over is still its own.
//! As many invocations go on at once as there are slots. Nothing that is judged hangs on which slot it was or on what else went
//! on, so that two runs with one seed give the same cells at any concurrency.

mod ask;
mod execute;
mod idle;
mod jobs;
mod judge;
mod late;
mod memory;
mod outcome;
mod plan;
mod pool;
mod probe;
mod scenarios;
mod slot;
mod spec;
#[cfg(test)]
mod tests;
mod unwell;

use std::sync::Arc;

use self::ask::{Asked, Invoker};
pub use self::execute::{Execute, Executor, RunContext};
use self::jobs::Job;
pub use self::outcome::RunResult;
#[cfg(test)]
pub(crate) use self::plan::Part;
pub use self::plan::Trial;
use self::plan::{Component, Plan};
pub(crate) use self::pool::is_late;
use self::probe::Scopes;
use self::scenarios::Scenarios;
pub use self::spec::{RunSpec, SpecError};
use crate::agents::{AskError, Driver};
use crate::reach::{Pending, Reach, ReachError};
use crate::run::{CellRecord, CoverageRecord, DemandRecord, RecoveryRecord, StabilityRecord};
use crate::scores::Matrix;

/// Is told how a run goes.
pub trait Tell: Send + Sync {
    /// So many of so many invocations are done.
    fn progress(&self, done: u64, of: u64) -> Pending<'_, ()>;
    /// A cell was judged. It becomes part of the run.
    fn cell(&self, cell: CellRecord) -> Pending<'_, ()>;
    /// What is judged so far.
    fn coverage(&self, coverage: CoverageRecord);
    /// How often the agent was asked so far, and rules were applied, judged or not.
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
    /// Why a run that would have passed proves nothing: no call of an agent was seen of which something is
    /// demanded on the wire, the agent was gone, or exchanges were lost or still open. `None`: none of that.
    proves_nothing: Option<String>,
    /// Why no invariant learnt what it had to ask the suite's model for, or of embeddings; `None`: some did, or
    /// none had to.
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
    /// Nobody answers at all.
    #[error(transparent)]
    Unreachable(AskError),
    /// Somebody takes connections, and answers nothing.
    #[error("the agent takes connections, and answers nothing: without chaos, {0}")]
    NeverAnswers(String),
    /// It cannot be asked at all.
    #[error("{0}")]
    Agent(String),
    /// Nothing could be learnt from the suite's model, or of embeddings.
    #[error("nobody was there to judge: {0}")]
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
    let (done, tried) = ask::done(&jobs);
    let clean_jobs = jobs::clean(plan, &mut jobs);
    let invocations = (clean_jobs.len() + jobs.iter().map(Vec::len).sum::<usize>()) as u64;
    let invoker = Invoker::new(plan, driver, reach, tell, invocations);
    let probed = probe::probe(&invoker, clean_jobs, scopes).await?;
    let down = |(_, asked): &Tried<'_>| asked.unreachable.clone();
    if probed.clean.iter().all(|one| down(one).is_some())
        && let Some(why) = probed.clean.first().and_then(down)
    {
        return Err(RunError::Unreachable(why));
    }
    if let Some(why) = unwell::never_answers(&probed.clean) {
        return Err(RunError::NeverAnswers(why));
    }
    let mut scenarios = Scenarios::new(plan, &probed.clean, invoker.tally());
    let of_scenarios = probed.clean.iter().filter(|(job, _)| job.trial.is_some());
    for one in of_scenarios {
        // There is room for all.
        let _ = done.try_send(one.clone());
    }
    // Scenarios are judged while later ones are tried. When those cannot go on, nothing is judged any more.
    let judging = async {
        scenarios.judge(&expected, tried, tell).await;
        Ok(())
    };
    let (beside, jobs) = jobs.into_iter().partition(|unit: &Vec<Job<'_>>| {
        probed.beside.is_some() && unit.iter().any(|job| plan.is_met_beside(job))
    });
    let working = async {
        invoker.work(jobs, &probed.slots, done.clone()).await?;
        match probed.beside.filter(|_| !beside.is_empty()) {
            Some(shared) => scopes.work_beside(&invoker, shared, beside, done).await,
            None => Ok(()),
        }
    };
    tokio::try_join!(working, judging)?;
    let baseline_alone = || probed.clean.iter().filter(|(job, _)| job.trial.is_none());
    let all = || baseline_alone().chain(scenarios.tried());
    let mut warnings: Vec<_> = unwell::fails_without_chaos(&probed.clean)
        .into_iter()
        .collect();
    warnings.extend(probed.warnings);
    warnings.extend(scenarios.left_out());
    warnings.extend(unwell::breaks_off(all()));
    warnings.extend(late::calls_late(&reach.late(plan.run).await?, all()));
    if !plan.resets {
        warnings.extend(memory::warning(all().filter(|(job, _)| plan.is_clean(job))));
    }
    let was_seen = all().any(|(_, asked)| asked.was_seen());
    let blind = !was_seen && plan.looks_at_the_wire();
    Ok(Ran {
        proves_nothing: (blind.then(|| judge::BLIND.to_owned()))
            .or_else(|| unwell::proves_nothing(all())),
        recoveries: scenarios.recoveries(),
        stability: scenarios.stability(),
        coverage: scenarios.coverage(),
        unreachable: scenarios.unreachable(),
        parts: scenarios.into_parts(),
        warnings,
    })
}

/// An invocation, and what came of it.
type Tried<'p> = (Job<'p>, Arc<Asked>);
