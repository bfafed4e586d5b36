//! What models wish to call: all that is seen of tools inside the agent.

use squall_journal::record::RuleOutcome;

use super::Narrow;
use crate::invariants::Subject;
use crate::trace::{Attempt, Trace};

/// The mode that puts a wish there which no model had.
const MADE_UP: &str = "unknown_tool_call";

/// The tools that a model wished to call in this exchange, and not Squall in its name.
pub(super) fn of_exchange<'t>(
    trace: &'t Trace,
    attempt: &Attempt,
) -> impl Iterator<Item = &'t str> + use<'t> {
    let record = &trace.exchange(attempt).record;
    let mut rules = record.rules.iter();
    let is_made_up = rules.any(|rule| rule.mode == MADE_UP && rule.outcome == RuleOutcome::Applied);
    let llm = record.llm.as_ref().filter(|_| !is_made_up);
    llm.into_iter()
        .flat_map(|llm| llm.tool_calls.iter().map(String::as_str))
}

/// How often a tool was called, retries apart, or how often the model wished it; and by what that is known.
pub(super) fn count(narrow: &Narrow, subject: &Subject<'_>) -> (u64, String) {
    let name = narrow.name();
    let calls = narrow.calls(subject.trace).count() as u64;
    let wishes = wishes(narrow, subject.trace);
    if calls > 0 || wishes == 0 {
        return (calls, format!("calls of {name} on the wire: {calls}"));
    }
    let clean = subject.baseline.and_then(|clean| clean.trace);
    if clean.is_some_and(|clean| narrow.calls(clean).next().is_some()) {
        let told = format!(
            "calls of {name} on the wire: 0; the model wished {wishes}, which do not count: without chaos calls of it \
             go over the wire"
        );
        return (0, told);
    }
    let told = format!(
        "calls of {name} on the wire: 0, so what the model wished counts, as for a tool inside the agent: {wishes}"
    );
    (wishes, told)
}

/// How often the model wished to call it.
pub(super) fn wishes(narrow: &Narrow, trace: &Trace) -> u64 {
    let Some(tool) = narrow.tool.as_ref().filter(|_| narrow.hosts.is_empty()) else {
        return 0;
    };
    let wished = trace
        .attempts()
        .iter()
        .flat_map(|attempt| of_exchange(trace, attempt));
    wished.filter(|name| tool.matches(name)).count() as u64
}

/// The first call of it that is known, else the first exchange in which the model wished one.
pub(super) fn first<'t>(narrow: &Narrow, trace: &'t Trace) -> Option<&'t Attempt> {
    let wishes_it = |attempt: &&Attempt| {
        let tool = narrow.tool.as_ref();
        of_exchange(trace, attempt).any(|name| tool.is_some_and(|tool| tool.matches(name)))
    };
    let mut attempts = trace.attempts().iter();
    let called = attempts.clone().find(|attempt| narrow.wants(attempt));
    called.or_else(|| attempts.find(wishes_it))
}
