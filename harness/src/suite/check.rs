//! Warnings about valid settings of a suite that are probably mistakes.

use squall_documents::{DocumentError, Fields, nearest};

use super::{Agent, Contract, ContractPart, Prompt, Replays, Suite, SuiteSession};
use crate::agents::settings::Way;
use crate::agents::template;
use crate::invariants::{Active, Invariant, When, without_effect};

/// The warnings of a standalone contract. Its suite may define prompts, tools and scenarios.
pub(super) fn doubts_of_contract(contract: &Contract) -> Vec<DocumentError> {
    let mut doubts = Vec::new();
    if !contract.scenarios.is_empty() {
        doubts.extend(of_scenarios(contract));
    }
    doubts.extend(without_effect::warning(contract.invariants.iter()));
    doubts
}

/// Warns if invariants can never be judged in these scenarios.
fn of_scenarios(contract: &Contract) -> Vec<DocumentError> {
    let scenarios: Vec<_> = contract.scenarios.iter().map(|one| one.active).collect();
    let never = |invariant| never_applies(invariant, &scenarios);
    let mut doubts: Vec<_> = contract.invariants.iter().filter_map(never).collect();
    doubts.extend(only_clean(contract));
    doubts
}

/// The warnings of a suite.
pub(super) fn doubts(suite: &Suite) -> Vec<DocumentError> {
    let mut doubts = Vec::new();
    let mut left = MOST_COMPARED;
    if let Some(ContractPart::Written(contract)) = &suite.contract {
        for invariant in &contract.invariants {
            doubts.extend(of_an_invariant(invariant, suite, &mut left));
        }
        doubts.extend(of_scenarios(contract));
    }
    let of_chaos = suite.chaos.iter().map(|chaos| Active::of(chaos));
    let mut runs: Vec<_> = of_chaos.collect();
    runs.push(Active::default());
    for invariant in &suite.invariants {
        doubts.extend(never_applies(invariant, &runs));
        doubts.extend(of_an_invariant(invariant, suite, &mut left));
    }
    let written = suite.contract.iter().filter_map(|contract| match contract {
        ContractPart::Written(contract) => Some(&contract.invariants[..]),
        ContractPart::Named(_) => None,
    });
    let all = suite.invariants.iter().chain(written.flatten());
    doubts.extend(without_effect::warning(all));
    doubts
}

/// Limit for the total cost of the checks: expression bytes times prompt bytes, plus the comparison of names.
/// Beyond it no warnings are reported.
const MOST_COMPARED: usize = 1 << 30;

/// Cost of comparing two letters of names.
const LETTERS: usize = 128;

fn take(left: &mut usize, cost: usize) -> Option<()> {
    *left = left.checked_sub(cost)?;
    Some(())
}

fn of_an_invariant(
    invariant: &Invariant,
    suite: &Suite,
    left: &mut usize,
) -> Option<DocumentError> {
    of_no_prompt(invariant, &suite.golden_prompts, left)
        .or_else(|| of_a_tool_misspelt(invariant, suite, left))
        .or_else(|| of_no_tool(invariant, suite))
}

/// Warns if the invariant's filter matches no golden prompt.
fn of_no_prompt(
    invariant: &Invariant,
    prompts: &[Prompt],
    left: &mut usize,
) -> Option<DocumentError> {
    let filter = invariant.prompt_filter.as_ref()?;
    let turns = prompts.iter().flat_map(Prompt::turns);
    take(left, filter.0.cost(turns.map(String::len).sum()))?;
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

/// Types that only count calls in the traffic, independent of the model's tool names.
const OF_CALLS: [&str; 7] = [
    "max_calls",
    "retries_bounded",
    "honours_retry_after",
    "backs_off",
    "retries_transient",
    "no_retry_of_permanent",
    "no_duplicate_side_effects",
];

/// Warns if nothing in the suite maps calls to the tool.
fn of_no_tool(invariant: &Invariant, suite: &Suite) -> Option<DocumentError> {
    let tool = invariant.tool.as_deref()?;
    if is_glob(tool) || !OF_CALLS.contains(&invariant.kind) {
        return None;
    }
    (!tools(suite).any(|known| known == tool)).then(|| {
        let message = format!(
            "invariant `{}` is about calls of `{tool}`, and only MCP tools are called so: say which calls are meant, \
             `tools: {{{tool}: {{match_url: \"https://…/*\"}}}}`",
            invariant.id
        );
        invariant.place.error(message)
    })
}

/// Warns if the tool's name is similar to a known one. An unknown tool may run inside the agent.
fn of_a_tool_misspelt(
    invariant: &Invariant,
    suite: &Suite,
    left: &mut usize,
) -> Option<DocumentError> {
    let more = invariant.check.tools.iter().map(String::as_str);
    let named = invariant.tool.as_deref().into_iter().chain(more);
    let told = named.filter(|tool| !is_glob(tool)).find_map(|tool| {
        if tools(suite).any(|known| known == tool) {
            return None;
        }
        let letters: usize = tools(suite).map(str::len).sum();
        take(left, letters * tool.len() * LETTERS)?;
        let meant = *nearest(tool, tools(suite)).first()?;
        Some((tool, meant))
    });
    let (tool, meant) = told?;
    let message = format!(
        "invariant `{}` is about the tool `{tool}`, and the suite knows none called so; did you mean `{meant}`?",
        invariant.id
    );
    Some(invariant.place.error(message))
}

/// The tools in the suite: those with URLs, and those in rules.
fn tools(suite: &Suite) -> impl Iterator<Item = &str> {
    let contract = match &suite.contract {
        Some(ContractPart::Written(contract)) => &contract.scenarios[..],
        Some(ContractPart::Named(_)) | None => &[],
    };
    let chaos = contract.iter().map(|scenario| &scenario.chaos);
    let rules = chaos.chain(&suite.chaos).flat_map(|chaos| &chaos.rules);
    let written = suite.tools.written.iter().map(|(name, _)| name.as_str());
    written.chain(rules.filter_map(|rule| rule.tool()))
}

fn is_glob(tool: &str) -> bool {
    tool.contains(['*', '{'])
}

/// Warns if no scenario matches the invariant's `when`.
fn never_applies(invariant: &Invariant, scenarios: &[Active]) -> Option<DocumentError> {
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

/// Warns if every scenario is clean.
fn only_clean(contract: &Contract) -> Option<DocumentError> {
    let clean = contract.scenarios.iter().all(|one| !one.active.any());
    let first = contract.scenarios.first().filter(|_| clean)?;
    Some(DocumentError {
        file: first.chaos.file.to_string(),
        position: first.position,
        pointer: first.pointer.clone(),
        message: format!(
            "no scenario of contract `{}` has any chaos in it; nothing will be shown about failures",
            contract.name
        ),
    })
}

/// The contract name in flakestorm's sessions that name no contract.
const NO_CONTRACT: &str = "default";

/// Warns about sessions with another contract than the suite's. Only a daemon can check whether it exists.
pub(super) fn contracts_of_sessions(
    fields: &mut Fields<'_, '_>,
    contract: Option<&ContractPart>,
    replays: &Replays,
) {
    let own = match contract {
        Some(ContractPart::Written(contract)) => Some(&contract.name),
        Some(ContractPart::Named(name)) => Some(name),
        None => None,
    };
    let Some(written) = fields.node("replays") else {
        return;
    };
    for (number, session) in replays.sessions.iter().enumerate() {
        let SuiteSession::Inline(session) = session else {
            continue;
        };
        let named = session.contract.as_ref();
        let foreign = named.filter(|name| Some(*name) != own && *name != NO_CONTRACT);
        let Some(name) = foreign else { continue };
        let pointer = format!("/sessions/{number}/contract");
        let place = written.nearest(&pointer).position;
        let message = format!(
            "session `{}` names the contract `{name}`, which is not the suite's; whether a daemon has one called so is \
             not looked up here",
            session.id
        );
        fields.reader.below("replays", |reader| {
            reader.below_pointer(&pointer, |reader| reader.note(place, message));
        });
    }
}

/// Checks that golden prompts fill a template, and that a template that looks like JSON is valid.
pub(super) fn template(fields: &mut Fields<'_, '_>, agent: &Agent, prompts: &[Prompt]) {
    let Way::Http(http) = &agent.way else {
        return;
    };
    let Some(template) = &http.request_template else {
        return;
    };
    let written = fields.node("agent");
    let place = written.map(|agent| agent.nearest("/request_template").position);
    let place = place.unwrap_or_default();
    let turns: Vec<_> = prompts.iter().flat_map(Prompt::turns).collect();
    let places = template::places(template);
    let left: Vec<_> = turns
        .iter()
        .filter_map(|turn| {
            let structured = http.parse_structured_input;
            Some((turn, template::left_over(&places, turn, structured)?))
        })
        .collect();
    let fits_none = left.len() == turns.len();
    fields.reader.below_pointer("/agent/request_template", |reader| {
        if let Some((_, name)) = left.first().filter(|_| fits_none) {
            let message = format!(
                "the template has a placeholder `{{{name}}}`, and no golden prompt has a line `{name}: …`; the \
                 whole prompt is `{{prompt}}`"
            );
            reader.error(place, message);
        } else if let Some((turn, name)) = left.first() {
            let prompt: String = turn.chars().take(60).collect();
            let message = format!(
                "{} of {} prompts have no line `{name}: …`, which the template has a place for, and are not judged: \
                 `{prompt}` the first",
                left.len(),
                turns.len()
            );
            reader.note(place, message);
        } else if places.is_empty() {
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
