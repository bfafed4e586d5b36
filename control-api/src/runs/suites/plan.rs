//! What is asked for, as a plan that the harness carries out; or all that is wrong with it.

use std::num::NonZeroUsize;

use squall_harness::invariants::Invariant;
use squall_harness::run::RunKind;
use squall_harness::runner::{Part, Plan, Trial};
use squall_harness::suite::agent::{Reset, Way};
use squall_harness::suite::{Contract, ContractPart, Suite};
use squall_profiles::limits::{Limited, Limits};

use super::super::runner::Order;
use crate::problem::Detail;

/// What is to be carried out.
pub(super) struct Planned<'o> {
    pub(super) plan: Plan<'o>,
    /// What of the suite is left out.
    pub(super) warnings: Vec<String>,
}

/// All that is wrong with an order.
pub(super) fn wrong(order: &Order) -> Vec<Detail> {
    let mut wrong = Vec::new();
    let mut idle = |option: &str| {
        wrong.push(Detail::at(
            format!("/options/{option}"),
            format!(
                "`{option}` means nothing in a run of kind {}; leave it out",
                order.kind.as_str()
            ),
        ));
    };
    if order.names_profile && matches!(order.kind, RunKind::Contract | RunKind::Verify) {
        idle("profile");
    }
    if order.kind == RunKind::Verify {
        if order.repeat != 1 {
            idle("repeat");
        }
        if order.baseline.is_some() {
            idle("baseline");
        }
    } else {
        wrong.extend(plan(order).err());
    }
    wrong
}

/// How many invocations may be under way at once. A reset from outside concerns all of them unless the suite says
/// otherwise, so there is one; an agent in a process for each slot is reset in its own.
pub(super) fn at_once(order: &Order) -> NonZeroUsize {
    let agent = &order.suite.agent;
    let own_process = matches!(agent.way, Way::Command(_) | Way::Python { .. });
    match &agent.reset {
        None => order.concurrency,
        Some(_) if agent.reset_isolated => order.concurrency,
        Some(Reset::Function(_)) if own_process => order.concurrency,
        Some(_) => NonZeroUsize::MIN,
    }
}

/// A warning that resets keep invocations from being under way at once; `None`: they do not.
pub(super) fn one_at_a_time(order: &Order, at_once: NonZeroUsize) -> Option<String> {
    (at_once < order.concurrency).then(|| {
        format!(
            "one invocation at a time, not {}: the agent's reset may concern others that are under way. If it \
             concerns only the invocation that its `baggage` (of a program: `SQUALL_SCOPE`) names, set \
             `agent.reset: {{isolated: true}}`",
            order.concurrency
        )
    })
}

/// The plan of a run that tries the agent.
pub(super) fn plan(order: &Order) -> Result<Planned<'_>, Detail> {
    let suite = &*order.suite;
    let (parts, mut warnings) = match order.kind {
        RunKind::Contract => (
            vec![Part::contract(contract(suite).ok_or_else(no_contract)?)],
            Vec::new(),
        ),
        RunKind::Ci => (everything(order)?, left_out(suite)),
        RunKind::Chaos | RunKind::Mutation | RunKind::Replay | RunKind::Verify => {
            let trial = order.chaos.clone().ok_or_else(no_chaos)?;
            (vec![Part::chaos(judging(suite)?, trial)], Vec::new())
        }
    };
    if suite.golden_prompts.is_empty() {
        let wanted = "the agent is asked the suite's `golden_prompts`, and it has none";
        return Err(Detail::at("/suite/golden_prompts", wanted));
    }
    let prompts = suite.golden_prompts.len();
    let once: usize = parts.iter().map(|part| part.verdicts(prompts)).sum();
    let repeats = usize::try_from(order.repeat).unwrap_or(usize::MAX);
    Limits::default()
        .take(Limited::Verdicts, once.saturating_mul(repeats))
        .map_err(|over| Detail::at("/suite", over.to_string()))?;
    warnings.extend(order.doubts.iter().cloned());
    Ok(Planned {
        plan: Plan {
            seed: order.seed,
            repeat: order.repeat,
            ..Plan::new(suite, &order.id, parts)
        },
        warnings,
    })
}

/// Every part that the suite configures.
fn everything(order: &Order) -> Result<Vec<Part<'_>>, Detail> {
    let suite = &*order.suite;
    let contract = contract(suite);
    let mut parts = Vec::new();
    if let Some(chaos) = &order.chaos {
        let taken = |name: &str| {
            let mut scenarios = contract.iter().flat_map(|contract| &contract.scenarios);
            scenarios.any(|scenario| scenario.name == name)
        };
        let mut name = chaos.name.clone();
        while taken(&name) {
            // Cells are told apart by the names of their scenarios.
            name.push_str(" (prompts)");
        }
        let trial = Trial {
            name,
            ..chaos.clone()
        };
        // Without invariants of their own prompts are judged by the contract's, which are the same then.
        let others = contract.filter(|_| !suite.invariants.is_empty());
        parts.push(Part {
            others: others.map_or(&[], |contract| &contract.invariants[..]),
            ..Part::chaos(judging(suite)?, trial)
        });
    }
    parts.extend(contract.map(Part::contract));
    if parts.is_empty() {
        let wanted = "this version tries chaos and contracts, and the suite has neither: write `chaos` or \
                      `contract`, or name the run's profile";
        return Err(Detail::at("/suite", wanted));
    }
    Ok(parts)
}

/// What the suite configures that is not carried out.
fn left_out(suite: &Suite) -> Vec<String> {
    let replays = !suite.replays.sessions.is_empty() || !suite.replays.sources.is_empty();
    let parts = [("mutations", suite.mutates), ("replays", replays)];
    let left_out = parts.into_iter().filter(|(_, configured)| *configured);
    left_out
        .map(|(part, _)| {
            format!("the suite's `{part}` are left out: this version does not carry them out yet")
        })
        .collect()
}

/// What prompts under chaos are judged by: the suite's invariants, else its contract's.
fn judging(suite: &Suite) -> Result<&[Invariant], Detail> {
    let of_the_contract = contract(suite).map(|contract| &contract.invariants[..]);
    let own = Some(&suite.invariants[..]).filter(|own| !own.is_empty());
    own.or(of_the_contract).ok_or_else(|| {
        let wanted = "prompts under chaos are judged by the suite's `invariants`, and it has none";
        Detail::at("/suite/invariants", wanted)
    })
}

fn contract(suite: &Suite) -> Option<&Contract> {
    match &suite.contract {
        Some(ContractPart::Written(contract)) => Some(contract),
        Some(ContractPart::Named(_)) | None => None,
    }
}

fn no_contract() -> Detail {
    let wanted =
        "a run of kind contract needs one: write it, or the name of a stored one, as `contract`";
    Detail::at("/suite/contract", wanted)
}

fn no_chaos() -> Detail {
    let wanted = "say which chaos: name a profile here, or write `chaos` in the suite";
    Detail::at("/options/profile", wanted)
}

#[cfg(test)]
mod tests {
    use squall_harness::suite;
    use squall_profiles::variables::Variables;

    use super::*;

    #[test]
    fn g39_what_no_run_carries_out_is_told_of() {
        let told = |rest: &str| {
            let text = format!(
                "agent: {{endpoint: 'http://agent.test/'}}\ngolden_prompts: [hello]\n\
                 invariants: [{{type: completes}}]\n{rest}\n"
            );
            let suite = suite::parse("suite.yaml", &text, Variables::Refused).expect("valid");
            left_out(&suite)
        };
        for (rest, part) in [
            (
                "replays: {sources: [{type: langsmith, project: x}]}",
                Some("`replays`"),
            ),
            (
                "replays: {sessions: [{id: one, input: hello}]}",
                Some("`replays`"),
            ),
            ("mutations: {count: 2}", Some("`mutations`")),
            ("replays: {sources: []}", None),
            ("", None),
        ] {
            let told = told(rest);
            let is_told = part.is_none_or(|part| told.iter().any(|one| one.contains(part)));
            assert!(is_told, "{rest}: {told:?}");
            assert_eq!(told.len(), usize::from(part.is_some()), "{rest}: {told:?}");
        }
    }
}
