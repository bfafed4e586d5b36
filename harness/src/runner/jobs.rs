//! The askings of a run.

use super::plan::Plan;
use crate::invariants::Invariant;
use crate::suite::{Counters, Isolation, Prompt};

/// One asking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Job<'p> {
    /// Its place among all, by which results are put in order.
    pub(super) number: usize,
    /// Which scenario; `None`: no chaos.
    pub(super) trial: Option<usize>,
    /// What is asked.
    pub(super) prompt: &'p Prompt,
    /// The invariant it is for; `None`: all that judge golden prompts.
    only: Option<usize>,
    /// The prompt is a probe of that invariant.
    is_probe: bool,
    /// Stands for the scope in the draws.
    pub(super) key: String,
    /// It goes on under the activation of the asking before it.
    pub(super) goes_on: bool,
}

impl Job<'_> {
    /// Whether an invariant, by its place, judges it.
    pub(super) fn judges(&self, place: usize, invariant: &Invariant) -> bool {
        match self.only {
            Some(only) => only == place,
            None => !self.is_probe && invariant.probes.is_empty(),
        }
    }
}

/// Every prompt and probe once, without chaos.
pub(super) fn clean<'p>(plan: &Plan<'p>) -> Vec<Job<'p>> {
    let mut prompts: Vec<&Prompt> = Vec::new();
    let probes = plan
        .invariants
        .iter()
        .flat_map(|invariant| &invariant.probes);
    for prompt in golden(plan).iter().chain(probes) {
        if !prompts.contains(&prompt) {
            prompts.push(prompt);
        }
    }
    let jobs = prompts.into_iter().enumerate().map(|(number, prompt)| Job {
        number,
        trial: None,
        prompt,
        only: None,
        is_probe: false,
        key: format!("clean/{}", number + 1),
        goes_on: false,
    });
    jobs.collect()
}

/// Golden prompts; none where every invariant has probes of its own.
fn golden<'p>(plan: &Plan<'p>) -> &'p [Prompt] {
    if plan
        .invariants
        .iter()
        .all(|invariant| !invariant.probes.is_empty())
    {
        &[]
    } else {
        plan.prompts
    }
}

/// Every prompt in every scenario. What shares counters is done in one slot, one after the other.
pub(super) fn under_chaos<'p>(plan: &Plan<'p>) -> Vec<Vec<Job<'p>>> {
    let mut units = Vec::new();
    let mut number = 0;
    for (trial, scenario) in plan.trials.iter().enumerate() {
        let mut of_the_scenario = Vec::new();
        for repeat in 1..=plan.repeat {
            for (prompt, only, is_probe, name) in askings(plan) {
                let key = match plan.counters {
                    Counters::Invocation => format!("{}/{name}/{repeat}", scenario.name),
                    Counters::Run => scenario.name.clone(),
                };
                of_the_scenario.push(Job {
                    number,
                    trial: Some(trial),
                    prompt,
                    only,
                    is_probe,
                    key: shortened(key),
                    goes_on: plan.counters == Counters::Run && !of_the_scenario.is_empty(),
                });
                number += 1;
            }
        }
        match plan.counters {
            Counters::Invocation => units.extend(of_the_scenario.into_iter().map(|job| vec![job])),
            Counters::Run => units.push(of_the_scenario),
        }
    }
    units
}

type Asking<'p> = (&'p Prompt, Option<usize>, bool, String);

fn askings<'p>(plan: &Plan<'p>) -> Vec<Asking<'p>> {
    let mut askings: Vec<Asking<'p>> = Vec::new();
    let invariants = || plan.invariants.iter().enumerate();
    for (number, prompt) in golden(plan).iter().enumerate() {
        let name = format!("prompt-{}", number + 1);
        match plan.isolation {
            Isolation::Scenario => askings.push((prompt, None, false, name)),
            Isolation::Cell => {
                let judging = invariants().filter(|(_, one)| one.probes.is_empty());
                askings.extend(judging.map(|(place, one)| {
                    (prompt, Some(place), false, format!("{name}/{}", one.id))
                }));
            }
        }
    }
    for (place, invariant) in invariants() {
        let probes = invariant.probes.iter().enumerate();
        askings.extend(probes.map(|(number, prompt)| {
            let name = format!("probe-{}/{}", number + 1, invariant.id);
            (prompt, Some(place), true, name)
        }));
    }
    askings
}

/// Longest key, bytes.
const KEY: usize = 256;

/// A key that is longer keeps its end, which tells it from others of its scenario.
fn shortened(key: String) -> String {
    if key.len() <= KEY {
        return key;
    }
    let mut from = key.len() - KEY;
    while !key.is_char_boundary(from) {
        from += 1;
    }
    key[from..].to_owned()
}
