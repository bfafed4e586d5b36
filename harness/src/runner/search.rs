//! The rounds of a run that searches for failing mutants: one generation a round.

use super::RunError;
use super::plan::{RunPart, Trial};
use super::rounds::{RanInvocation, Rounds};
use super::spec::RunSpec;
use crate::invariants::measures::{Measure, Measured};
use crate::mutations::{Mutant, MutationSearch, SearchSettings};
use crate::run::{CellState, SearchRecord};

/// The type of mutation in the cells of search.
const SEARCH: &str = "search";

/// Plans generations until a budget is used.
pub(super) struct SearchRounds<'s> {
    spec: &'s RunSpec,
    settings: &'s SearchSettings,
    search: MutationSearch<'s>,
    record: SearchRecord,
}

impl<'s> SearchRounds<'s> {
    pub(super) fn new(
        spec: &'s RunSpec,
        settings: &'s SearchSettings,
        search: MutationSearch<'s>,
    ) -> Self {
        let prices = Some(&spec.suite.prices).filter(|prices| !prices.is_empty());
        let record = SearchRecord {
            dollars: prices.map(|_| 0.0),
            ..SearchRecord::default()
        };
        Self {
            spec,
            settings,
            search,
            record,
        }
    }

    /// What was searched.
    pub(super) fn into_record(self) -> SearchRecord {
        self.record
    }

    /// Adds the invocations of the last round.
    fn add(&mut self, last: &[RanInvocation<'_>]) {
        let is_searched = self.record.generations > 0;
        let mut failed: Vec<&Mutant> = Vec::new();
        for one in last {
            let Some(mutant) = one.job.own.and_then(|own| own.mutant.as_ref()) else {
                continue;
            };
            if is_searched {
                self.record.invocations += 1;
                let (result, prices) = (one.result, &self.spec.suite.prices);
                let measured = Measured::of(&result.answer, &result.trace, prices);
                let cost = measured.value(Measure::Cost).unwrap_or(0.0);
                self.record.dollars = self.record.dollars.map(|all| all + cost);
            }
            match margin(one) {
                Some(Margin::Passed(margin)) => self.search.add(mutant, Some(margin)),
                Some(Margin::Failed) => {
                    self.search.add(mutant, None);
                    if !failed.contains(&mutant) {
                        failed.push(mutant);
                    }
                }
                None => {}
            }
        }
        if is_searched {
            self.record.failed.push(failed.len() as u64);
        }
    }

    /// The invocations that are left; or why there is no further generation.
    fn left(&self) -> Result<u64, String> {
        let (settings, record) = (self.settings, &self.record);
        if record.generations == settings.generations as u64 {
            return Err("all generations were executed".to_owned());
        }
        let most = settings.invocations as u64;
        let left = most.saturating_sub(record.invocations) / self.spec.repeat.max(1);
        if left == 0 {
            return Err(format!("the budget of {most} invocations is used"));
        }
        match record.dollars.zip(settings.dollars) {
            Some((spent, most)) if spent >= most => {
                Err(format!("the budget of {most} USD is used"))
            }
            _ => Ok(left),
        }
    }
}

impl<'s> Rounds<'s> for SearchRounds<'s> {
    fn next(&mut self, last: &[RanInvocation<'_>]) -> Result<Vec<RunPart<'s>>, RunError> {
        self.add(last);
        let left = match self.left() {
            Ok(left) => usize::try_from(left).unwrap_or(usize::MAX),
            Err(why) => {
                self.record.ended = why;
                return Ok(Vec::new());
            }
        };
        let number = self.record.generations + 1;
        let generation = usize::try_from(number).unwrap_or(usize::MAX);
        let mutants = self.search.generation(generation, left);
        if mutants.is_empty() {
            "no further mutant is new".clone_into(&mut self.record.ended);
            return Ok(Vec::new());
        }
        self.record.generations = number;
        let trial = Trial {
            name: format!("{SEARCH} {number}"),
            ..self.spec.mutation_trial(SEARCH, &mutants)
        };
        let part = self.spec.mutation_part(vec![trial]);
        Ok(vec![part.map_err(|wrong| RunError::Agent(wrong.message))?])
    }
}

/// How close an invocation came to failing.
enum Margin {
    /// The smallest margin of its invariants; those without a number count 1.
    Passed(f64),
    /// An invariant failed that holds for the golden prompt.
    Failed,
}

/// `None`: nothing was judged.
fn margin(one: &RanInvocation<'_>) -> Option<Margin> {
    let verdicts = || one.verdicts.iter().filter(|one| !one.fails_without_chaos);
    if verdicts().any(|verdict| verdict.state == CellState::Failed) {
        return Some(Margin::Failed);
    }
    let passed = verdicts().filter(|verdict| verdict.state == CellState::Passed);
    let margins = passed.map(|verdict| verdict.margin.unwrap_or(1.0));
    margins.min_by(f64::total_cmp).map(Margin::Passed)
}
