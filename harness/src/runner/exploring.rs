//! Executes an exploration over calls: one round after the other, each point as a scenario.

use std::collections::{BTreeMap, BTreeSet};

use super::plan::{Component, RunPart, Trial, TrialPrompt, TrialPrompts};
use super::result::InvocationResult;
use super::rounds::{RanInvocation, Rounds};
use super::{Ran, RanPart, RunError, Tell};
use crate::digest::sha256;
use crate::explore::calls::{self, CallSearch, Planned, PointResult};
use crate::invariants::Invariant;
use crate::prompt::Prompt;
use crate::reach::Rules;
use crate::run::{
    CellRecord, CellState, ExplorationRecord, FaultPoint, PointFault, PointState, RunRecord,
    ScenarioRecord, ShrunkRecord,
};
use crate::scores::{Column, Matrix, RunOutcome, score_of};
use crate::suite::Suite;

/// Name of the clean scenario.
const CLEAN: &str = "clean";

/// An exploration in progress.
pub(super) struct Exploring<'s> {
    suite: &'s Suite,
    prompts: &'s [Prompt],
    invariants: &'s [Invariant],
    budget: u64,
    earlier: Option<&'s RunRecord>,
    tell: &'s dyn Tell,
    /// The clean answer to each prompt, by the prompt's number.
    clean: BTreeMap<u64, String>,
    /// `None` until the clean run is done.
    search: Option<CallSearch>,
    /// The points of the current round.
    planned: Vec<Planned>,
}

impl<'s> Exploring<'s> {
    /// `earlier` is the interrupted run that is continued.
    pub(super) fn new(
        suite: &'s Suite,
        invariants: &'s [Invariant],
        budget: u64,
        earlier: Option<&'s RunRecord>,
        tell: &'s dyn Tell,
    ) -> Self {
        Self {
            suite,
            prompts: &suite.golden_prompts,
            invariants,
            budget,
            earlier,
            tell,
            clean: BTreeMap::new(),
            search: None,
            planned: Vec::new(),
        }
    }

    /// The first part of the run: the golden prompts without chaos.
    pub(super) fn clean_part(invariants: &'s [Invariant]) -> RunPart<'s> {
        let trials = vec![Trial::clean(CLEAN)];
        RunPart::new(Component::Exploration, invariants, trials)
    }

    /// Reports the cells that the interrupted run has of its points.
    pub(super) async fn report_earlier(&self) {
        for cell in self.earlier_cells() {
            self.tell.cell(cell.clone()).await;
        }
    }

    /// Adds the results of the whole exploration to those of the executed rounds.
    pub(super) fn finish(&self, ran: &mut Ran) -> Result<(), RunError> {
        let Some(record) = self.search.as_ref().map(|search| self.record(search)) else {
            return Ok(());
        };
        let cells: Vec<CellRecord> = self.earlier_cells().cloned().collect();
        let earlier: BTreeSet<_> = cells.iter().map(|cell| cell.scenario.as_str()).collect();
        let points = record.points.iter();
        let points = points.filter(|point| earlier.contains(&*point.name));
        let columns = points.map(|point| {
            let trial = trial(&record, &point.name, &point.faults)?;
            Ok(Column {
                scenario: ScenarioRecord {
                    name: trial.name,
                    under_chaos: true,
                    rules_applied: point.faults.len() as u64,
                    invocations: 1,
                    passed: u64::from(point.state == PointState::Passed),
                    judged: u64::from(matches!(
                        point.state,
                        PointState::Passed | PointState::Failed
                    )),
                    rules: trial.rule_lines,
                    daemon: None,
                },
                idle: None,
            })
        });
        let columns = columns.collect::<Result<_, RunError>>()?;
        ran.shrunk.extend(minimal(&record, ran, &cells));
        ran.parts.push(RanPart {
            component: Component::Exploration,
            matrix: Matrix { columns, cells },
            demands: Vec::new(),
            chaos_resilience: None,
            robustness: None,
        });
        ran.exploration = Some(record);
        Ok(())
    }

    /// What was executed and found so far.
    fn record(&self, search: &CallSearch) -> ExplorationRecord {
        ExplorationRecord {
            suite: self.suite.digests(),
            ..search.record()
        }
    }

    fn earlier_cells(&self) -> impl Iterator<Item = &CellRecord> {
        let record = self.earlier.and_then(|run| run.exploration.as_ref());
        let points = record.into_iter().flat_map(|record| &record.points);
        let names: BTreeSet<_> = points.map(|point| point.name.as_str()).collect();
        let cells = self.earlier.into_iter().flat_map(|run| &run.cells);
        cells.filter(move |cell| names.contains(&*cell.scenario))
    }

    /// Begins the search with the calls of the clean run.
    fn begin(&mut self, clean: &[RanInvocation<'_>]) -> CallSearch {
        let mut calls = Vec::new();
        for (prompt, number) in self.prompts.iter().zip(1..) {
            let mut ran = clean.iter();
            if let Some(ran) = ran.find(|ran| ran.job.prompt == prompt) {
                calls.extend(calls::calls(&ran.result.trace, number));
                self.clean.insert(number, ran.result.answer.text.clone());
            }
        }
        let earlier = self
            .earlier
            .and_then(|run| Some((&*run.id, run.exploration.as_ref()?)));
        CallSearch::new(self.budget, clean.len() as u64, calls, earlier)
    }

    fn observed(&self, point: &Planned, ran: &RanInvocation<'_>) -> PointResult {
        let any = |state: CellState| {
            let mut verdicts = ran.verdicts.iter();
            verdicts.any(|one| {
                one.state == state && !(state == CellState::Failed && one.fails_without_chaos)
            })
        };
        let state = match applied(ran.result) {
            _ if any(CellState::Failed) => PointState::Failed,
            applied if applied < point.faults.len() => PointState::NotReached,
            _ if any(CellState::Passed) => PointState::Passed,
            _ => PointState::NotJudged,
        };
        let answer = &ran.result.answer;
        let class = match self.clean.get(&point.prompt) {
            _ if answer.error.is_some() => "error",
            _ if answer.is_blank() => "blank",
            Some(clean) if *clean == answer.text => "as without chaos",
            Some(_) | None => "another",
        };
        let mut behaviour = calls::names_after_fault(&ran.result.trace);
        behaviour.extend(ran.verdicts.iter().map(|one| one.state.as_str().to_owned()));
        behaviour.push(class.to_owned());
        let mut behaviour = sha256(behaviour.join("\n"));
        behaviour.truncate(16);
        PointResult {
            state,
            behaviour,
            calls: calls::calls(&ran.result.trace, point.prompt),
        }
    }
}

impl<'s> Rounds<'s> for Exploring<'s> {
    fn next(&mut self, last: &[RanInvocation<'_>]) -> Result<Vec<RunPart<'s>>, RunError> {
        let mut search = match self.search.take() {
            Some(search) => search,
            None => self.begin(last),
        };
        for point in &self.planned {
            let mut last = last.iter();
            if let Some(ran) = last.find(|ran| ran.trial.name == point.name) {
                let observed = self.observed(point, ran);
                search.add(point, observed);
            }
        }
        self.planned = search.next();
        let record = self.record(&search);
        self.search = Some(search);
        let trials = self.planned.iter().map(|point| {
            let place = usize::try_from(point.prompt).unwrap_or(usize::MAX) - 1;
            let prompt = self.prompts.get(place).cloned();
            let prompts = prompt.map(|prompt| TrialPrompt {
                original: Some(prompt.clone()),
                prompt,
                mutant: None,
            });
            Ok(Trial {
                prompts: TrialPrompts::Own(prompts.into_iter().collect()),
                ..trial(&record, &point.name, &point.faults)?
            })
        });
        let trials = trials.collect::<Result<Vec<_>, RunError>>()?;
        self.tell.explored(record);
        let part = RunPart::new(Component::Exploration, self.invariants, trials);
        let part = Some(part).filter(|part| !part.trials.is_empty());
        Ok(part.into_iter().collect())
    }
}

/// The faults of a point as a scenario.
fn trial(record: &ExplorationRecord, name: &str, faults: &[PointFault]) -> Result<Trial, RunError> {
    let profile = calls::profile(&record.calls, faults).map_err(|errors| {
        let why = errors.first().map(ToString::to_string).unwrap_or_default();
        RunError::Agent(format!("the rules of `{name}` cannot be read: {why}"))
    });
    let (profile, firings) = profile?;
    let trial = Trial::of(name, &profile);
    Ok(Trial {
        rules: Rules::Limited {
            rules: Box::new(trial.rules),
            firings,
        },
        ..trial
    })
}

/// The number of rules that were applied.
fn applied(result: &InvocationResult) -> usize {
    let applied = result.records().flat_map(|record| record.applied());
    let ids: BTreeSet<_> = applied.map(|rule| &*rule.rule).collect();
    ids.len()
}

/// The failures under several faults. Each is minimal: with fewer of its faults the agent passed, or the call of another
/// one did not occur.
fn minimal<'r>(
    record: &'r ExplorationRecord,
    ran: &'r Ran,
    earlier: &'r [CellRecord],
) -> Vec<ShrunkRecord> {
    let several = record
        .in_state(PointState::Failed)
        .filter(|point| point.faults.len() > 1);
    let several: BTreeMap<_, _> = several.map(|point| (&*point.name, point)).collect();
    let own = ran.parts.iter().flat_map(|part| &part.matrix.cells);
    let failed = earlier.iter().chain(own);
    let failed = failed.filter(|cell| cell.state == CellState::Failed && !cell.baseline_failed);
    let shrunk = failed.filter_map(|cell| {
        let point: &FaultPoint = several.get(&*cell.scenario)?;
        let names = point.faults.iter();
        let names = names.map(|one| format!("{} on the {}", one.fault, record.call_name(one.call)));
        Some(ShrunkRecord {
            invariant: cell.invariant.clone(),
            scenario: cell.scenario.clone(),
            of: point.faults.len() as u64,
            needed: names.collect(),
            invocations: 0,
            fails_without: false,
            is_minimal: true,
        })
    });
    shrunk.collect()
}

/// The share of passed points among passed and failed ones; `None`: there are none.
pub(super) fn score(record: &ExplorationRecord) -> Option<f64> {
    let of = |state| record.in_state(state).count() as u64;
    let (passed, failed) = (of(PointState::Passed), of(PointState::Failed));
    score_of(passed, passed + failed)
}

/// What the points make of a run; `None`: the minimum score decides.
pub(super) fn outcome(record: &ExplorationRecord, has_minimum: bool) -> Option<RunOutcome> {
    let mut failed = record.in_state(PointState::Failed);
    let number = failed.clone().count();
    match (failed.next(), score(record)) {
        (_, None) if record.calls.is_empty() => Some(RunOutcome::Inconclusive(
            "no call of the agent that a fault could change came through the proxy".to_owned(),
        )),
        (_, None) => Some(RunOutcome::Inconclusive(
            "no point could be judged: no fault was applied, or no invariant applies".to_owned(),
        )),
        (Some(first), _) if !has_minimum => Some(RunOutcome::Failed(format!(
            "{number} of {} points failed, `{}` the first",
            record.points.len(),
            first.name
        ))),
        _ => None,
    }
}
