//! The invocations of a run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use squall_journal::tape::Session;

use super::plan::{InPart, RunPart, RunPlan, Trial, TrialPrompt, TrialPrompts};
use crate::invariants::{Conversations, Invariant};
use crate::prompt::Prompt;
use crate::reach::Rules;
use crate::suite::{Counters, Isolation};

/// One invocation.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct InvocationJob<'p> {
    /// Its index in the run; results are sorted by it.
    pub(super) number: usize,
    /// Its scenario; `None`: no chaos.
    pub(super) trial: Option<InPart>,
    pub(super) prompt: &'p Prompt,
    /// What its scenario knows of the prompt; `None`: it is a golden prompt or a probe.
    pub(super) own: Option<&'p TrialPrompt>,
    /// Its index in the scenario, the same in every repeat.
    pub(super) invocation: usize,
    /// The repeat that it belongs to, from 1.
    pub(super) repeat: u64,
    /// Its conversations.
    pub(super) conversations: Conversations,
    /// The only invariant that judges it; `None`: all that judge golden prompts.
    only: Option<usize>,
    /// Whether the prompt is a probe of that invariant.
    is_probe: bool,
    /// Used in random draws instead of the scope's name.
    pub(super) key: String,
    /// Whether it continues the activation of the previous invocation.
    pub(super) goes_on: bool,
    /// Rules instead of its scenario's.
    pub(super) rules: Option<Rules>,
    /// A tape instead of its scenario's.
    pub(super) tape: Option<Arc<Session>>,
}

impl<'p> InvocationJob<'p> {
    /// A prompt without chaos.
    pub(super) fn clean(number: usize, prompt: &'p Prompt) -> Self {
        Self {
            number,
            trial: None,
            prompt,
            own: None,
            invocation: number,
            repeat: 1,
            conversations: Conversations::One,
            only: None,
            is_probe: false,
            key: format!("clean/{}", number + 1),
            goes_on: false,
            rules: None,
            tape: None,
        }
    }

    /// Whether it is one conversation.
    pub(super) fn is_single(&self) -> bool {
        self.conversations == Conversations::One
    }

    /// The prompt whose clean answer is the baseline; `None`: there is no baseline.
    pub(super) fn baseline(&self) -> Option<&'p Prompt> {
        match self.own {
            Some(own) => own.original.as_ref(),
            None => Some(self.prompt),
        }
    }

    /// Whether the invariant at this index judges it.
    pub(super) fn judges(&self, place: usize, invariant: &Invariant) -> bool {
        match self.only {
            Some(only) => only == place,
            None => {
                !self.is_probe
                    && invariant.probes.is_empty()
                    && invariant.check.conversations == Conversations::One
            }
        }
    }
}

/// The clean baseline: every prompt and probe once without chaos. Jobs of clean scenarios are reused and removed
/// from `units`; the others are invoked for the baseline alone.
pub(super) fn clean<'p>(
    plan: &'p RunPlan<'_>,
    units: &mut Vec<Vec<InvocationJob<'p>>>,
) -> Vec<InvocationJob<'p>> {
    let (mut prompts, mut known) = (Vec::new(), BTreeSet::new());
    for part in plan.parts.iter() {
        let judging = part.invariants.iter().filter(|_| part.is_golden());
        let of_invariants = judging.flat_map(|one| {
            let golden = plan.prompts.iter();
            let own = one.check.conversations != Conversations::One && one.probes.is_empty();
            let prompts = one.probes.iter().chain(golden.filter(move |_| own));
            prompts.map(|prompt| (prompt, one.check.conversations))
        });
        let baselines = part.trials.iter().flat_map(|trial| {
            let prompts = prompts_of(plan, part, trial).into_iter();
            prompts.filter_map(|(prompt, own)| match own {
                Some(own) => own.original.as_ref(),
                None => Some(prompt),
            })
        });
        let baselines = baselines.map(|prompt| (prompt, Conversations::One));
        for asked in baselines.chain(of_invariants) {
            if known.insert(asked) {
                prompts.push(asked);
            }
        }
    }
    let mut taken_out = |prompt: &Prompt, conversations| {
        units.iter_mut().find_map(|unit| {
            let mut jobs = unit.iter();
            let is_it = |job: &InvocationJob<'_>| {
                job.own.is_none()
                    && job.prompt == prompt
                    && job.conversations == conversations
                    && plan.is_clean(job.trial)
            };
            let at = jobs.position(is_it)?;
            Some(unit.remove(at))
        })
    };
    let jobs = prompts.into_iter().enumerate();
    jobs.map(|(number, (prompt, conversations))| {
        taken_out(prompt, conversations).unwrap_or_else(|| InvocationJob {
            conversations,
            ..InvocationJob::clean(number, prompt)
        })
    })
    .collect()
}

/// The prompts of a scenario that are no probes; none if every invariant has its own probes.
fn prompts_of<'p>(
    plan: &'p RunPlan<'_>,
    part: &'p RunPart<'_>,
    trial: &'p Trial,
) -> Vec<(&'p Prompt, Option<&'p TrialPrompt>)> {
    let mut invariants = part.invariants.iter();
    if invariants.all(|invariant| !invariant.probes.is_empty()) {
        return Vec::new();
    }
    match &trial.prompts {
        TrialPrompts::Golden => plan.prompts.iter().map(|prompt| (prompt, None)).collect(),
        TrialPrompts::Own(own) => own.iter().map(|one| (&one.prompt, Some(one))).collect(),
    }
}

/// Every prompt in every scenario of the parts from this index on. Invocations that share counters form one unit, so
/// they run sequentially in one slot.
pub(super) fn under_chaos<'p>(plan: &'p RunPlan<'_>, from: usize) -> Vec<Vec<InvocationJob<'p>>> {
    let mut units = Vec::new();
    let mut numbers = 0..;
    for (part_place, part) in plan.parts.iter().enumerate().skip(from) {
        for (place, scenario) in part.trials.iter().enumerate() {
            let at = InPart {
                part: part_place,
                trial: place,
            };
            // The invocations of a level of load run at once, and share counters in another way.
            let is_level = plan.load_limits(Some(at)).is_some();
            let counters = if is_level {
                Counters::Invocation
            } else {
                plan.counters
            };
            for repeat in 1..=plan.repeat {
                let invocations = invocations(plan, part, scenario).into_iter().enumerate();
                let jobs = invocations.map(|(invocation, (prompt, own, only, is_probe, name))| {
                    InvocationJob {
                        number: numbers.next().unwrap_or(usize::MAX),
                        trial: Some(at),
                        prompt,
                        own,
                        invocation,
                        repeat,
                        conversations: only.map_or_else(<_>::default, |at: usize| {
                            part.invariants[at].check.conversations
                        }),
                        only,
                        is_probe,
                        key: shortened(match counters {
                            Counters::Invocation => {
                                format!("{}/{name}/{repeat}", scenario.name)
                            }
                            Counters::Run => format!("{}/{repeat}", scenario.name),
                        }),
                        goes_on: is_level || (counters == Counters::Run && invocation > 0),
                        rules: None,
                        tape: None,
                    }
                });
                match counters {
                    Counters::Invocation => units.extend(jobs.map(|job| vec![job])),
                    Counters::Run => units.push(jobs.collect()),
                }
            }
        }
    }
    units
}

/// The number of invocations of each scenario.
pub(super) fn by_scenario(units: &[Vec<InvocationJob<'_>>]) -> BTreeMap<InPart, usize> {
    let mut invocations = BTreeMap::new();
    for at in units.iter().flatten().filter_map(|job| job.trial) {
        *invocations.entry(at).or_default() += 1;
    }
    invocations
}

type JobKey<'p> = (
    &'p Prompt,
    Option<&'p TrialPrompt>,
    Option<usize>,
    bool,
    String,
);

fn invocations<'p>(
    plan: &'p RunPlan<'_>,
    part: &'p RunPart<'_>,
    trial: &'p Trial,
) -> Vec<JobKey<'p>> {
    let mut invocations: Vec<JobKey<'p>> = Vec::new();
    let invariants = || part.invariants.iter().enumerate();
    let prompts = prompts_of(plan, part, trial).into_iter();
    for (number, (prompt, own)) in prompts.enumerate() {
        let name = format!("prompt-{}", number + 1);
        let alone = invariants().filter(|(_, one)| {
            one.probes.is_empty()
                && match one.check.conversations {
                    Conversations::One => part.isolation == Isolation::Cell,
                    Conversations::Repeated(_) | Conversations::Interleaved => own.is_none(),
                }
        });
        let alone = alone.map(|(place, one)| {
            let name = format!("{name}/{}", one.id);
            (prompt, own, Some(place), false, name)
        });
        let alone: Vec<_> = alone.collect();
        if part.isolation == Isolation::Scenario {
            invocations.push((prompt, own, None, false, name));
        }
        invocations.extend(alone);
    }
    for (place, invariant) in invariants() {
        if matches!(trial.prompts, TrialPrompts::Own(_)) {
            break;
        }
        let probes = invariant.probes.iter().enumerate();
        invocations.extend(probes.map(|(number, prompt)| {
            let name = format!("probe-{}/{}", number + 1, invariant.id);
            (prompt, None, Some(place), true, name)
        }));
    }
    invocations
}

/// Longest key, in bytes.
const KEY: usize = 256;

/// Cuts the beginning of a longer key: the end identifies it within its scenario.
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
