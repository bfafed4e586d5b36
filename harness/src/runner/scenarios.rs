//! Judges and reports scenarios one by one in the plan's order, and aggregates their results.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::mpsc;

use super::invoker::RunTally;
use super::jobs::InvocationJob;
use super::judge::{Judge, ScenarioResult};
use super::plan::{Component, InPart, RunPart, RunPlan, Trial};
use super::result::InvocationResult;
use super::rounds::RanInvocation;
use super::{JobResult, RanPart, Tell, replays};
use crate::run::{
    CoverageRecord, DistributionRecord, RecoveryRecord, ReplayRecord, StabilityRecord,
};
use crate::scores::{Matrix, chaos_resilience, recoveries, robustness, stability};
use crate::trace::Trace;

/// The scenarios of a run, with the results of those judged so far.
pub(super) struct Scenarios<'p, 's> {
    plan: &'p RunPlan<'s>,
    judge: Judge<'p, 's>,
    judged: BTreeMap<InPart, ScenarioResult>,
    /// Results of the judged scenarios.
    results: Vec<JobResult<'p>>,
    /// Invocations and applied rules so far, whether judged or not.
    tally: &'p RunTally,
    /// The coverage of the judged scenarios.
    covered: CoverageRecord,
}

/// The first failed invocation of an invariant in a scenario.
pub(super) struct FailedCase<'p> {
    part: &'p RunPart<'p>,
    pub(super) trial: &'p Trial,
    /// The index of the invariant.
    place: usize,
    /// Its name in cells.
    pub(super) invariant: String,
    pub(super) job: InvocationJob<'p>,
    pub(super) result: Arc<InvocationResult>,
}

impl<'p, 's> Scenarios<'p, 's> {
    /// No scenario is judged yet. `clean` are the results of the clean run; `tally` counts what the run executes.
    pub(super) fn new(plan: &'p RunPlan<'s>, clean: &[JobResult<'p>], tally: &'p RunTally) -> Self {
        Self {
            plan,
            judge: Judge::new(plan, clean),
            judged: BTreeMap::new(),
            results: Vec::new(),
            tally,
            covered: CoverageRecord::default(),
        }
    }

    /// Judges each new scenario as soon as all its invocations are `done` and all earlier scenarios are judged.
    /// `invocations` is the count for each scenario. Returns early if `done` closes, because the run has failed
    /// then.
    pub(super) async fn judge(
        &mut self,
        invocations: &BTreeMap<InPart, usize>,
        mut done: mpsc::Receiver<JobResult<'p>>,
        tell: &dyn Tell,
    ) {
        let mut waiting: BTreeMap<InPart, Vec<JobResult<'p>>> = BTreeMap::new();
        let plan = self.plan;
        for (at, part, trial) in places(plan) {
            if self.judged.contains_key(&at) {
                continue;
            }
            let expected = invocations.get(&at).copied().unwrap_or(0);
            while waiting.get(&at).map_or(0, Vec::len) < expected {
                let Some(one) = done.recv().await else {
                    return;
                };
                if let Some(at) = one.0.trial {
                    waiting.entry(at).or_default().push(one);
                }
            }
            let mut results = waiting.remove(&at).unwrap_or_default();
            results.sort_by_key(|(job, _)| job.number);
            let judged = self.judge.scenario(part, trial, &results).await;
            self.add(at, results, judged, tell).await;
        }
    }

    async fn add(
        &mut self,
        at: InPart,
        results: Vec<JobResult<'p>>,
        judged: ScenarioResult,
        tell: &dyn Tell,
    ) {
        let matrix = Matrix {
            columns: vec![judged.column.clone()],
            cells: judged.cells.clone(),
        };
        let more = matrix.coverage();
        self.covered.cells += more.cells;
        self.covered.chaos_cells += more.chaos_cells;
        self.covered.exercised += more.exercised;
        self.results.extend(results);
        self.judged.insert(at, judged);
        tell.coverage(self.coverage());
        for cell in matrix.cells {
            tell.cell(cell).await;
        }
    }

    /// The first failure of each invariant in each scenario, in order. Failures that also happen without chaos are left
    /// out.
    pub(super) fn failures(&self) -> Vec<FailedCase<'p>> {
        let plan = self.plan;
        let mut failures = Vec::new();
        for (at, part, trial) in places(plan) {
            let own = self.results.iter().filter(|(job, _)| job.trial == Some(at));
            let own: Vec<_> = own.collect();
            let judged = self.judged.get(&at);
            for (place, number) in judged.iter().flat_map(|judged| &judged.failures) {
                let (job, result) = own[*number].clone();
                failures.push(FailedCase {
                    part,
                    trial,
                    place: *place,
                    invariant: part.name_of(&part.invariants[*place]),
                    job,
                    result,
                });
            }
        }
        failures
    }

    /// Whether the invariant of a failure also fails in another invocation, judged as one of this scenario.
    pub(super) async fn fails(
        &mut self,
        failure: &FailedCase<'p>,
        trial: &Trial,
        job: InvocationJob<'p>,
        result: InvocationResult,
    ) -> bool {
        let results = [(job, Arc::new(result))];
        let judged = self.judge.scenario(failure.part, trial, &results).await;
        judged
            .failures
            .iter()
            .any(|(place, _)| *place == failure.place)
    }

    /// The judged invocations of the parts from this index on, in order.
    pub(super) fn round(&self, from: usize) -> Vec<RanInvocation<'_>> {
        let mut round = Vec::new();
        for (at, _, trial) in places(self.plan).filter(|(at, _, _)| at.part >= from) {
            let own = self.results.iter().filter(|(job, _)| job.trial == Some(at));
            let judged = self.judged.get(&at);
            let verdicts = judged.map_or(&[][..], |judged| &judged.verdicts);
            round.extend(
                own.zip(verdicts)
                    .map(|((job, result), verdicts)| RanInvocation {
                        trial,
                        job,
                        result,
                        verdicts,
                    }),
            );
        }
        round
    }

    /// Drops the traffic of all invocations except of the clean run. A retry storm has more than fits in memory for
    /// several levels.
    pub(super) fn forget_traces(&mut self) {
        let own = self.results.iter_mut();
        for result in own.filter_map(|(_, result)| Arc::get_mut(result)) {
            result.trace = Trace::default();
        }
    }

    /// The results of all judged scenarios, in order.
    pub(super) fn results(&self) -> &[JobResult<'p>] {
        &self.results
    }

    /// Why the judge model or the embeddings endpoint could not be reached.
    pub(super) fn unreachable(&self) -> Option<String> {
        self.judge.unreachable().map(str::to_owned)
    }

    /// Every part with its cells, scenario by scenario.
    pub(super) fn into_parts(mut self) -> Vec<RanPart> {
        let parts = self.plan.parts.iter().enumerate();
        parts.map(|(place, part)| self.part(place, part)).collect()
    }

    fn part(&mut self, place: usize, part: &RunPart<'_>) -> RanPart {
        let own = self.judged.iter_mut();
        let own: Vec<_> = own.filter(|(at, _)| at.part == place).collect();
        let under_chaos = own
            .iter()
            .filter(|(_, judged)| judged.column.scenario.under_chaos);
        let prompts = under_chaos.flat_map(|(_, judged)| &judged.prompts);
        RanPart {
            component: part.component,
            demands: part.demands(),
            chaos_resilience: chaos_resilience(prompts.map(|(_, sample)| sample)),
            robustness: robustness(own.iter().flat_map(|(at, judged)| {
                let kind = part
                    .trials
                    .get(at.trial)
                    .and_then(|trial| trial.mutation.as_deref());
                let weight = kind.zip(self.plan.mutations);
                let weight = weight.map_or(0.0, |(kind, mutations)| mutations.weight(kind));
                judged
                    .prompts
                    .iter()
                    .map(move |(_, sample)| (weight, sample))
            })),
            matrix: Matrix {
                columns: own
                    .iter()
                    .map(|(_, judged)| judged.column.clone())
                    .collect(),
                cells: (own.into_iter())
                    .flat_map(|(_, judged)| std::mem::take(&mut judged.cells))
                    .collect(),
            },
        }
    }

    /// The agent's recovery rate for each family of faults.
    pub(super) fn recoveries(&self) -> Vec<RecoveryRecord> {
        let prompts = self.judged.values().flat_map(|judged| &judged.prompts);
        recoveries(prompts.map(|(_, sample)| sample))
    }

    /// The distributions of the invocations' numbers, scenario by scenario.
    pub(super) fn distributions(&self) -> Vec<DistributionRecord> {
        let judged = self.judged.values();
        judged.flat_map(|one| one.distributions.clone()).collect()
    }

    /// The replayed sessions.
    pub(super) fn replays(&self) -> Vec<ReplayRecord> {
        let records = places(self.plan).filter_map(|(at, _, trial)| {
            let session = trial.tape.as_ref()?;
            let mut results = self.results.iter();
            let (_, first) = results.find(|(job, _)| job.trial == Some(at))?;
            let judged = self.judged.get(&at)?;
            Some(replays::record(session, first, &judged.cells))
        });
        records.collect()
    }

    /// How consistent the repeats are; `None` without repeats.
    pub(super) fn stability(&self) -> Option<StabilityRecord> {
        if self.plan.repeat <= 1 {
            return None;
        }
        let mut repeats: BTreeMap<(InPart, usize), Vec<Option<bool>>> = BTreeMap::new();
        for (at, judged) in &self.judged {
            for (invocation, sample) in &judged.prompts {
                let of_it = repeats.entry((*at, *invocation)).or_default();
                of_it.push(sample.passed());
            }
        }
        let repeats = repeats.values().map(Vec::as_slice);
        Some(stability(self.plan.repeat, repeats))
    }

    /// A warning about prompts that chaos resilience leaves out because they also fail without chaos; `None`: there
    /// are none.
    pub(super) fn left_out(&self) -> Option<String> {
        let is_chaos = |at: &InPart| {
            let part = self.plan.parts.iter().nth(at.part);
            part.is_some_and(|part| part.component == Component::Chaos)
        };
        let (mut invocations, mut left_out) = (0, Vec::new());
        for (at, judged) in self.judged.iter().filter(|(at, _)| is_chaos(at)) {
            let results = self
                .results
                .iter()
                .filter(|(job, _)| job.trial == Some(*at));
            for ((job, _), (_, sample)) in results.zip(&judged.prompts) {
                invocations += 1;
                left_out.extend(sample.fails_in_baseline_only().then_some(job.prompt));
            }
        }
        let prompt = left_out.first()?.beginning();
        Some(format!(
            "{} of {invocations} invocations under chaos fail nothing but what fails without chaos too, and are in no chaos \
             resilience, `{prompt}` the first",
            left_out.len()
        ))
    }

    /// The coverage of the judged scenarios, with all invocations and applied rules so far.
    pub(super) fn coverage(&self) -> CoverageRecord {
        CoverageRecord {
            agent_invocations: self.tally.invocations(),
            rules_applied: self.tally.rules_applied(),
            ..self.covered.clone()
        }
    }
}

/// Every scenario with its index, in order.
fn places<'p>(plan: &'p RunPlan<'_>) -> impl Iterator<Item = (InPart, &'p RunPart<'p>, &'p Trial)> {
    let parts = plan.parts.iter().enumerate();
    parts.flat_map(|(place, part)| {
        let trials = part.trials.iter().enumerate();
        trials.map(move |(number, trial)| {
            let at = InPart {
                part: place,
                trial: number,
            };
            (at, part, trial)
        })
    })
}
