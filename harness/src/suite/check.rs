//! What is allowed in a suite and still surely not meant.

use squall_profiles::document::{At, Tree};
use squall_profiles::error::ProfileError;

use super::agent::Way;
use super::reader::Fields;
use super::{Active, Agent, Contract, ContractPart, Prompt, Suite};
use crate::agents::template;
use crate::invariants::{Invariant, When, without_effect};

/// Each with its place.
pub(super) fn doubts(suite: &Suite) -> Vec<ProfileError> {
    let mut doubts = Vec::new();
    if let Some(ContractPart::Written(contract)) = &suite.contract {
        let scenarios: Vec<_> = contract.scenarios.iter().map(|one| one.active).collect();
        for invariant in &contract.invariants {
            doubts.extend(never_applies(invariant, &scenarios));
            doubts.extend(of_an_invariant(invariant, suite));
        }
        doubts.extend(only_clean(contract));
    }
    let of_chaos = suite.chaos.iter().map(|chaos| Active::of(chaos));
    let mut runs: Vec<_> = of_chaos.collect();
    runs.push(Active::default());
    for invariant in &suite.invariants {
        doubts.extend(never_applies(invariant, &runs));
        doubts.extend(of_an_invariant(invariant, suite));
    }
    let written = suite.contract.iter().filter_map(|contract| match contract {
        ContractPart::Written(contract) => Some(&contract.invariants[..]),
        ContractPart::Named(_) => None,
    });
    let all = suite.invariants.iter().chain(written.flatten());
    doubts.extend(without_effect::told(all));
    doubts
}

fn of_an_invariant(invariant: &Invariant, suite: &Suite) -> Option<ProfileError> {
    of_no_prompt(invariant, &suite.golden_prompts).or_else(|| of_no_tool(invariant, suite))
}

/// No golden prompt is one that the invariant judges.
fn of_no_prompt(invariant: &Invariant, prompts: &[Prompt]) -> Option<ProfileError> {
    let filter = invariant.prompt_filter.as_ref()?;
    let never = invariant.probes.is_empty()
        && !prompts.is_empty()
        && !prompts.iter().any(|prompt| filter.wants(prompt));
    never.then(|| {
        let message = format!(
            "invariant `{}` is never judged: no golden prompt fits its `prompt_filter`",
            invariant.id
        );
        invariant.place.error(message)
    })
}

/// Types that count calls on the wire alone, whatever the model calls its tools.
const OF_CALLS: [&str; 7] = [
    "max_calls",
    "retries_bounded",
    "honours_retry_after",
    "backs_off",
    "retries_transient",
    "no_retry_of_permanent",
    "no_duplicate_side_effects",
];

/// Nothing in the suite says which calls are those of the tool.
fn of_no_tool(invariant: &Invariant, suite: &Suite) -> Option<ProfileError> {
    let tool = invariant.tool.as_deref()?;
    let is_glob = tool.contains(['*', '{']);
    if is_glob || !OF_CALLS.contains(&invariant.kind) {
        return None;
    }
    let contract = match &suite.contract {
        Some(ContractPart::Written(contract)) => &contract.scenarios[..],
        Some(ContractPart::Named(_)) | None => &[],
    };
    let chaos = contract.iter().map(|scenario| &scenario.chaos);
    let mut rules = chaos.chain(&suite.chaos).flat_map(|chaos| &chaos.rules);
    let known = suite.tools.written.iter().any(|(name, _)| name == tool)
        || rules.any(|rule| rule.tool() == Some(tool));
    (!known).then(|| {
        let message = format!(
            "invariant `{}` is about calls of `{tool}`, and only MCP tools are called so: say which calls are meant, \
             `tools: {{{tool}: {{match_url: \"https://…/*\"}}}}`",
            invariant.id
        );
        invariant.place.error(message)
    })
}

/// No scenario has what the invariant's `when` asks for.
fn never_applies(invariant: &Invariant, scenarios: &[Active]) -> Option<ProfileError> {
    let applies = scenarios.iter().any(|one| invariant.when.applies(*one));
    let doubtful = !applies && invariant.when != When::Always;
    doubtful.then(|| {
        let message = format!(
            "invariant `{}` is never judged: no scenario fits `when: {}`",
            invariant.id,
            invariant.when.as_str()
        );
        invariant.place.error(message)
    })
}

/// Every scenario is a clean one.
fn only_clean(contract: &Contract) -> Option<ProfileError> {
    let clean = contract.scenarios.iter().all(|one| !one.active.any());
    let first = contract.scenarios.first().filter(|_| clean)?;
    Some(ProfileError {
        file: first.chaos.file.to_string(),
        position: first.position,
        pointer: String::new(),
        message: format!(
            "no scenario of contract `{}` has any chaos in it; nothing will be shown about failures",
            contract.name
        ),
    })
}

/// Where the template of an http agent stands.
const TEMPLATE: &str = "/agent/request_template";

/// A template can be filled with the golden prompts, and is what it looks like.
pub(super) fn template(
    fields: &mut Fields<'_, '_, '_>,
    written: &At<Tree>,
    agent: &Agent,
    prompts: &[Prompt],
) {
    let Way::Http(http) = &agent.way else {
        return;
    };
    let Some(template) = &http.request_template else {
        return;
    };
    let place = written.nearest(TEMPLATE).position;
    let turns = prompts.iter().flat_map(Prompt::turns);
    let left: Option<Vec<_>> = turns
        .map(|turn| template::left_over(template, turn, http.parse_structured_input))
        .collect();
    fields.reader.below_pointer(TEMPLATE, |reader| {
        if let Some(name) = left.as_ref().and_then(|names| names.first()) {
            let message = format!(
                "the template has a placeholder `{{{name}}}`, and no golden prompt has a line `{name}: …`; the \
                 whole prompt is `{{prompt}}`"
            );
            reader.error(place, message);
        } else if !template::has_a_place(template) {
            let message = "the template has no place for the prompt, so that the agent is always asked the same; \
                           write `{prompt}` where it belongs";
            reader.note(place, message);
        } else if let Some(why) = template::no_json(template) {
            let message = format!(
                "the template looks like JSON and is none, so that it is sent as text and nothing in it is escaped: \
                 {why}"
            );
            reader.note(place, message);
        }
    });
}
