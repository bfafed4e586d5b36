//! Warnings about valid settings of a suite that are probably mistakes.

use squall_documents::{DocumentError, Fields};

use super::{Agent, Contract, Prompt, Suite};
use crate::agents::settings::Way;
use crate::agents::template;
use crate::invariants::{Active, Invariant, When};

/// The warnings of a standalone contract. Its suite may define prompts, tools and scenarios.
pub(super) fn doubts_of_contract(contract: &Contract) -> Vec<DocumentError> {
    let mut doubts = Vec::new();
    if !contract.scenarios.is_empty() {
        doubts.extend(of_scenarios(contract));
    }
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
    if let Some(contract) = suite.written_contract() {
        for invariant in &contract.invariants {
            doubts.extend(of_no_tool(invariant, suite));
        }
        doubts.extend(of_scenarios(contract));
    }
    let of_chaos = suite.chaos.iter().map(|chaos| Active::of(chaos));
    let mut runs: Vec<_> = of_chaos.collect();
    runs.push(Active::default());
    for invariant in &suite.invariants {
        doubts.extend(never_applies(invariant, &runs));
        doubts.extend(of_no_tool(invariant, suite));
    }
    doubts
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
    let tool = counted_tool(invariant)?;
    (!tools(suite).any(|known| known == tool)).then(|| {
        let message = format!(
            "invariant `{}` is about calls of `{tool}`, and only MCP tools are called so: say which calls are meant, \
             `tools: {{{tool}: {{match_url: \"https://…/*\"}}}}`",
            invariant.id
        );
        invariant.place.error(message)
    })
}

/// The tools in the suite: those with URLs, and those in rules.
fn tools(suite: &Suite) -> impl Iterator<Item = &str> {
    let chaos = suite.scenarios().iter().map(|scenario| &scenario.chaos);
    let rules = chaos.chain(&suite.chaos).flat_map(|chaos| &chaos.rules);
    let written = suite.tools.written.iter().map(|(name, _)| name.as_str());
    written.chain(rules.filter_map(|rule| rule.tool()))
}

/// The tool whose calls an invariant counts in the traffic, if it names one.
pub(crate) fn counted_tool(invariant: &Invariant) -> Option<&str> {
    let tool = invariant.tool.as_deref()?;
    (OF_CALLS.contains(&invariant.kind) && !tool.contains(['*', '{'])).then_some(tool)
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
