//! Runs: agents asked under chaos, and judged.
//!
//! ```text
//! clean     every prompt once without chaos ──▶ what chaos is not to blame for, what to compare with
//! scenarios × prompts ── reset, begin, ask, see ──▶ judged by every invariant ──▶ cells ──▶ matrix
//! ```
//!
//! Each asking is an activation of its own, in the scope of one of so many slots: as many askings go on
//! at once as there are slots. Nothing that is judged hangs on which slot it was or on what else went
//! on, so that two runs with one seed give the same cells at any concurrency.

mod ask;
mod jobs;
mod plan;
mod probe;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use squall_journal::reach::{Pending, Reach, ReachError};
use squall_journal::run::{CellRecord, CoverageRecord};

use self::ask::{Asked, Asking};
use self::jobs::Job;
pub use self::plan::{Plan, Trial};
pub use self::probe::Scopes;
use crate::agents::{AskError, Driver};
use crate::invariants::{Baseline, Invariant, Judgement, Subject, Verdict};
use crate::outside::Told;
use crate::scores::{
    Column, Matrix, PromptSample, Recovery, Sample, cell, chaos_resilience, recoveries,
};
use crate::suite::{Active, Prompt};

/// Is told how a run goes.
pub trait Tell: Send + Sync {
    /// So many of so many askings are done.
    fn progress(&self, done: u64, of: u64) -> Pending<'_, ()>;
    /// A cell was judged. It becomes part of the run.
    fn cell(&self, cell: CellRecord) -> Pending<'_, ()>;
    /// What was tried so far.
    fn coverage(&self, coverage: CoverageRecord);
}

/// What came of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Ran {
    /// Every cell, scenario by scenario, and how each scenario went.
    pub matrix: Matrix,
    /// Exercised prompts whose invariants all hold, by exercised prompts; `None`: nothing to judge.
    pub chaos_resilience: Option<f64>,
    /// How the agent recovers from each family of faults.
    pub recoveries: Vec<Recovery>,
    /// How often the agent was asked, the clean run included.
    pub invocations: u64,
    /// Askings of which not all that went over the wire was seen: the journal lost some of it, or it was
    /// still open at the end.
    pub incomplete: u64,
    /// What makes the run worth less than it looks.
    pub warnings: Vec<String>,
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
}

/// Carries a run out, in as many scopes at once as the agent's calls can be told apart in. All chaos that
/// it began is ended when it is over, however that is.
pub async fn run(
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
    for cell in &ran.matrix.cells {
        tell.cell(cell.clone()).await;
    }
    Ok(ran)
}

async fn carried_out(
    plan: &Plan<'_>,
    driver: &dyn Driver,
    reach: &dyn Reach,
    scopes: &Scopes<'_>,
    tell: &dyn Tell,
) -> Result<Ran, RunError> {
    let clean_jobs = jobs::clean(plan);
    let jobs = jobs::under_chaos(plan);
    let invocations = (clean_jobs.len() + jobs.iter().map(Vec::len).sum::<usize>()) as u64;
    let asking = Asking::new(plan, driver, reach, tell, invocations);
    let probed = probe::probe(&asking, clean_jobs, scopes).await?;
    if probed
        .clean
        .iter()
        .all(|(_, asked)| asked.unreachable.is_some())
        && let Some((_, first)) = probed.clean.first()
        && let Some(why) = &first.unreachable
    {
        return Err(RunError::Unreachable(why.clone()));
    }
    let mut tried = asking.work(jobs, &probed.slots).await?;
    tried.sort_by_key(|(job, _)| job.number);
    let all = || probed.clean.iter().chain(&tried);
    let incomplete = all().filter(|(_, asked)| !asked.is_complete).count() as u64;
    let clean: BTreeMap<Prompt, Asked> = (probed.clean.iter())
        .map(|(job, asked)| (job.prompt.clone(), asked.clone()))
        .collect();
    let told = told(plan, &tried, &clean).await;
    let prompts = prompts(plan, &tried, &clean, &told);
    Ok(Ran {
        matrix: matrix(plan, &tried, &clean, &told),
        chaos_resilience: chaos_resilience(&prompts),
        recoveries: recoveries(&prompts),
        invocations,
        incomplete,
        warnings: probed.warnings,
    })
}

type Tried<'p> = (Job<'p>, Asked);

/// Asks whatever invariants want to know before they judge.
async fn told(plan: &Plan<'_>, tried: &[Tried<'_>], clean: &BTreeMap<Prompt, Asked>) -> Told {
    let nothing = Told::nothing(&plan.outside);
    let mut questions = BTreeSet::new();
    for (job, asked) in tried {
        let Some(trial) = job.trial.and_then(|trial| plan.trials.get(trial)) else {
            continue;
        };
        for (place, invariant) in plan.invariants.iter().enumerate() {
            if !job.judges(place, invariant) {
                continue;
            }
            let subjects = subjects(plan, trial.active, job, asked, clean, &nothing);
            if let Some(subject) = subjects.tried {
                questions.extend(invariant.questions(&subject));
            }
            if let Some(subject) = subjects.clean {
                questions.extend(invariant.questions_without_chaos(&subject));
            }
        }
    }
    plan.outside.answer(questions).await
}

fn matrix(
    plan: &Plan<'_>,
    tried: &[Tried<'_>],
    clean: &BTreeMap<Prompt, Asked>,
    told: &Told,
) -> Matrix {
    let mut matrix = Matrix::default();
    for (number, trial) in plan.trials.iter().enumerate() {
        let its = || {
            tried
                .iter()
                .filter(move |(job, _)| job.trial == Some(number))
        };
        matrix.columns.push(Column {
            name: trial.name.clone(),
            under_chaos: trial.active.any(),
            rules_applied: its().map(|(_, asked)| asked.faults_applied).sum(),
            invocations: its().count() as u64,
        });
        for (place, invariant) in plan.invariants.iter().enumerate() {
            let of_it = its().filter(|(job, _)| job.judges(place, invariant));
            let samples: Vec<_> = of_it
                .map(|(job, asked)| sample(plan, invariant, trial.active, job, asked, clean, told))
                .collect();
            let judged = cell(invariant, &trial.name, trial.active.any(), &samples);
            matrix.cells.push(judged);
        }
    }
    matrix
}

/// What all invariants said of each prompt under chaos.
fn prompts(
    plan: &Plan<'_>,
    tried: &[Tried<'_>],
    clean: &BTreeMap<Prompt, Asked>,
    told: &Told,
) -> Vec<PromptSample> {
    let under_chaos = tried.iter().filter_map(|(job, asked)| {
        let trial = plan.trials.get(job.trial?)?;
        trial.active.any().then_some((job, asked, trial))
    });
    under_chaos
        .map(|(job, asked, trial)| {
            let invariants = plan.invariants.iter().enumerate();
            let judging = invariants.filter(|(place, invariant)| job.judges(*place, invariant));
            let judged = judging.map(|(_, invariant)| {
                let sample = sample(plan, invariant, trial.active, job, asked, clean, told);
                (sample.judgement, sample.fails_without_chaos)
            });
            PromptSample {
                faults_applied: asked.faults_applied,
                families: asked.families.clone(),
                judgements: judged.collect(),
            }
        })
        .collect()
}

/// One asking as invariants see it, and the same prompt's clean run.
struct Subjects<'a> {
    /// `None`: it cannot be judged.
    tried: Option<Subject<'a>>,
    /// `None`: there is none that can be.
    clean: Option<Subject<'a>>,
}

fn subjects<'a>(
    plan: &'a Plan<'_>,
    active: Active,
    job: &'a Job<'_>,
    asked: &'a Asked,
    clean: &'a BTreeMap<Prompt, Asked>,
    told: &'a Told,
) -> Subjects<'a> {
    let clean = clean.get(job.prompt).filter(|clean| clean.wrong.is_none());
    let subject = |asked: &'a Asked, active| Subject {
        prompt: job.prompt,
        answer: &asked.answer,
        trace: &asked.trace,
        baseline: clean.map(|clean| Baseline {
            answer: &clean.answer,
            trace: Some(&clean.trace),
        }),
        active,
        prices: plan.prices,
        told,
    };
    Subjects {
        tried: asked.wrong.is_none().then(|| subject(asked, active)),
        clean: clean.map(|clean| subject(clean, Active::default())),
    }
}

fn sample(
    plan: &Plan<'_>,
    invariant: &Invariant,
    active: Active,
    job: &Job<'_>,
    asked: &Asked,
    clean: &BTreeMap<Prompt, Asked>,
    told: &Told,
) -> Sample {
    let subjects = subjects(plan, active, job, asked, clean, told);
    let cannot_be_judged = || {
        let why = asked.wrong.clone().unwrap_or_default();
        Judgement::Judged(Verdict::Error(why))
    };
    Sample {
        judgement: subjects
            .tried
            .map_or_else(cannot_be_judged, |subject| invariant.judge(&subject)),
        faults_applied: asked.faults_applied,
        fails_without_chaos: subjects
            .clean
            .and_then(|clean| invariant.fails_without_chaos(&clean)),
        evidence: asked.evidence(job.prompt),
    }
}
