//! Advice on a cell, based on the traffic.

use squall_journal::record::{RuleOutcome, RuleRecord};
use squall_profiles::family::Family;
use squall_profiles::fault::FaultMode;
use squall_profiles::faults;

use super::story::{InjectedFault, Story, Wire};
use crate::agents::ConversationFaultMode;
use crate::agents::conversation::PLACE;
use crate::count::times;
use crate::run::{CellRecord, CellState};

/// Advice on a cell with the decisive invocations `stories`; `None` if there is nothing to do.
pub(super) fn advice(wire: &Wire<'_>, cell: &CellRecord, stories: &[Story<'_>]) -> Option<String> {
    match cell.state {
        CellState::Passed | CellState::NotApplicable => None,
        CellState::Failed if cell.baseline_failed => {
            Some("It fails without chaos too: fix the agent or the invariant first.".to_owned())
        }
        CellState::Failed => Some(of_a_failure(wire.type_of(cell), stories)),
        CellState::Error => Some(
            "The cell could not be judged: fix what the reason names, and run again.".to_owned(),
        ),
        CellState::NotExercised => Some(of_nothing(wire.is_under_chaos(cell), stories)),
    }
}

fn of_a_failure(invariant: &str, stories: &[Story<'_>]) -> String {
    let injections: Vec<_> = stories.iter().flat_map(Story::injections).collect();
    // The fault of the decisive exchange, or else one that does more than delay; of several the first.
    let rank = |one: &&InjectedFault<'_>| (one.is_decisive, !is_delay(one.rule));
    let Some(cause) = injections.iter().rev().max_by_key(rank) else {
        let unseen: usize = stories.iter().map(|story| story.missing).sum();
        let evidence = stories.iter().map(|story| story.invocation);
        let replayed = evidence
            .rev()
            .find_map(|one| Some((one.fault.as_ref()?, &one.call)));
        return match unseen {
            0 if let Some((mode, call)) = replayed
                && call.as_deref() == Some(PLACE)
                && let Some(mode) = ConversationFaultMode::parse(mode) =>
            {
                let remedy = of_type(invariant).unwrap_or_else(|| mode.remedy());
                format!("The fault {} hit the conversation. {remedy}", mode.as_str())
            }
            0 if let Some((fault, call)) = replayed => {
                let on = (call.as_ref()).map_or_else(String::new, |call| format!(" on {call}"));
                format!("The replayed session: {fault}{on}.")
            }
            0 => "No fault was applied in this invocation: the agent failed by itself.".to_owned(),
            _ => "The injected faults are not in this report any more; run again to see them."
                .to_owned(),
        };
    };
    let remedy = of_type(invariant).unwrap_or_else(|| remedy(cause.rule));
    format!("{} {remedy}", happened(cause))
}

/// Advice on a failed invariant of this type, independent of the fault.
fn of_type(invariant: &str) -> Option<&'static str> {
    Some(match invariant {
        "excludes_pii" => {
            "Check what the agent answers before it is shown: remove personal data and secrets, whatever a tool has \
             returned."
        }
        "no_canary_egress" | "no_pii_leaves" | "no_secret_leaves" => {
            "Check what the agent sends before it leaves: send secrets, personal data and what a tool or a document \
             asked for only to hosts that need it."
        }
        "no_cross_session" => {
            "Keep the state of each conversation under its id: no variable, cache or memory that conversations share."
        }
        "hosts_allowed" => {
            "Restrict the hosts that the agent may call to those that its task needs."
        }
        "no_unasked_tool" => {
            "Let no text of a tool or a document cause a call: offer the model only the tools of the task, and ask the \
             user before any other is called."
        }
        "no_duplicate_side_effects" => {
            "Before repeating a call that changes something, check whether it was done, or send an idempotency key."
        }
        "honours_retry_after" => {
            "Wait at least as long as `Retry-After` says before the next attempt, or answer without that call."
        }
        "backs_off" => {
            "Wait longer before each further attempt, and vary the wait by a random part."
        }
        "max_calls" | "retries_bounded" | "loop_free" => {
            "Limit how often the same call is made, all attempts together; then answer with what there is and say \
             what is missing."
        }
        "no_retry_of_permanent" => {
            "This error does not pass: do not repeat the same request. Change it, use another source, or end with a \
             clear message."
        }
        "refusal_check" => {
            "Treat instructions in prompts, tools and documents as data where they contradict the agent's task, and \
             decline them."
        }
        _ => return None,
    })
}

/// Whether a rule only delays.
pub(crate) fn is_delay(rule: &RuleRecord) -> bool {
    mode(rule).is_some_and(|mode| mode.only_delays)
}

/// Describes injected faults and the agent's reaction.
fn happened(cause: &InjectedFault<'_>) -> String {
    let then = match cause.again {
        0 => "did not call it again".to_owned(),
        again => format!("called it again {}", times(again)),
    };
    format!(
        "The fault {} hit {} {}; the agent got {} and {then}.",
        cause.rule.mode,
        cause.on,
        times(cause.times),
        cause.got
    )
}

fn of_nothing(under_chaos: bool, stories: &[Story<'_>]) -> String {
    let calls = || stories.iter().flat_map(|story| &story.calls);
    let unseen: usize = stories.iter().map(|story| story.missing).sum();
    let mut rules = calls().flat_map(|call| &call.exchange.rules);
    if let Some(bypassed) = rules
        .clone()
        .find(|rule| rule.outcome == RuleOutcome::Bypassed)
    {
        let why = bypassed
            .reason
            .as_deref()
            .unwrap_or("no reason is recorded");
        return format!(
            "The rule {} fired and could not be carried out: {why}.",
            bypassed.rule
        );
    }
    if calls().any(|call| call.exchange.applied().next().is_some()) {
        return "Faults were applied, but the evidence is insufficient: see the reason.".to_owned();
    }
    if let Some(idle) = rules.find(|rule| rule.outcome == RuleOutcome::NotDrawn) {
        let why = idle.reason.as_deref().unwrap_or("no reason is recorded");
        return format!(
            "The rule {} matched and did not fire: {why}. Change its trigger, or send more prompts.",
            idle.rule
        );
    }
    match (calls().count(), unseen) {
        (0, 0) => "Nothing of this agent went through the proxy: point it there with what `squall env` prints, \
             and see with `squall verify` that its calls arrive."
            .to_owned(),
        (0, _) => "Its calls are not in this report any more; run again to see them.".to_owned(),
        _ if under_chaos => {
            "Its calls went through the proxy, and no rule matched them: correct the condition that the reason names, \
             or have the agent make calls that the rules are about."
                .to_owned()
        }
        _ => "Nothing that this invariant checks happened in this scenario. Make it happen there, by rules or by other \
             prompts, or leave the scenario out with `when`."
            .to_owned(),
    }
}

/// The recommended reaction to a fault.
fn remedy(rule: &RuleRecord) -> &'static str {
    mode(rule).map_or(
        "Decide what the agent does when this call fails, and let its answer say what is missing.",
        |mode| mode.remedy,
    )
}

fn mode(rule: &RuleRecord) -> Option<&'static FaultMode> {
    let mut families = Family::ALL.into_iter();
    let family = families.find(|family| family.as_str() == rule.family)?;
    faults::mode(family, &rule.mode)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::testing::fixture;

    #[test]
    fn what_an_agent_gives_out_or_does_twice_is_not_cured_by_retries() {
        for invariant in [
            "excludes_pii",
            "refusal_check",
            "no_canary_egress",
            "hosts_allowed",
            "no_unasked_tool",
            "no_duplicate_side_effects",
            "no_pii_leaves",
            "no_secret_leaves",
            "max_calls",
            "retries_bounded",
            "loop_free",
            "no_retry_of_permanent",
        ] {
            let known = crate::invariants::type_names().any(|name| name == invariant);
            let remedy = of_type(invariant).filter(|_| known);
            let remedy = remedy.unwrap_or_else(|| panic!("no remedy: {invariant}"));
            assert!(!remedy.to_lowercase().contains("retry"), "{remedy}");
        }
        assert_eq!(of_type("contains"), None);
    }

    #[test]
    fn g60_nobody_but_who_did_it_is_blamed() {
        let report = fixture();
        let wire = Wire::of(&report);
        let of = |state: CellState| {
            let cells = report
                .run
                .cells
                .iter()
                .filter(move |cell| cell.state == state);
            cells.map(|cell| (cell, advice(&wire, cell, &wire.stories(cell))))
        };
        for (cell, told) in of(CellState::Error) {
            let told = told.expect("advice");
            assert!(
                told.starts_with("The cell could not be judged"),
                "{cell:?}: {told}"
            );
        }
        for (cell, told) in of(CellState::Failed).filter(|(cell, _)| cell.baseline_failed) {
            let told = told.expect("advice");
            assert!(told.contains("fails without chaos too"), "{cell:?}: {told}");
        }
        assert_eq!(of(CellState::Error).count(), 1, "the fixture has one");
        for (_, told) in of(CellState::Passed) {
            assert_eq!(told, None);
        }
    }

    #[test]
    fn advice_names_what_happened() {
        let report = fixture();
        let wire = Wire::of(&report);
        let told: Vec<_> = report
            .run
            .cells
            .iter()
            .map(|cell| {
                let advice =
                    advice(&wire, cell, &wire.stories(cell)).unwrap_or_else(|| "-".to_owned());
                format!("{} in {}: {advice}", cell.invariant, cell.scenario)
            })
            .collect();
        insta::assert_snapshot!(told.join("\n"));
    }
}
