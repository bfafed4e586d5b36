//! Tool calls that models request. They are the only evidence of tools inside the agent.

use super::Narrow;
use crate::invariants::Subject;
use crate::trace::{Attempt, Trace};

/// The mode that adds a tool call which the model did not request.
const NOT_BY_THE_MODEL: &str = "unknown_tool_call";

/// The tools that the model requested in this exchange, without injected ones.
pub(super) fn in_exchange<'t>(
    trace: &'t Trace,
    attempt: &Attempt,
) -> impl Iterator<Item = &'t str> + use<'t> {
    let record = &trace.exchange(attempt).record;
    let by_a_fault = record.applied().any(|rule| rule.mode == NOT_BY_THE_MODEL);
    let llm = record.llm.as_ref().filter(|_| !by_a_fault);
    llm.into_iter()
        .flat_map(|llm| llm.tool_calls.iter().map(String::as_str))
}

/// The number of calls of a tool without retries, or else of the model's requests for it; and a description of the
/// source.
pub(super) fn count(narrow: &Narrow, subject: &Subject<'_>) -> (u64, String) {
    let name = narrow.name();
    let calls = narrow.calls(subject.trace).count() as u64;
    let requests = times(narrow, subject.trace);
    if calls > 0 || requests == 0 {
        return (calls, format!("calls of {name} on the wire: {calls}"));
    }
    let clean = subject.baseline.and_then(|clean| clean.trace);
    if clean.is_some_and(|clean| narrow.calls(clean).next().is_some()) {
        let reason = format!(
            "calls of {name} on the wire: 0; the model's {} for it not counted: without chaos calls of it go over the wire",
            crate::count::count(requests, "request")
        );
        return (0, reason);
    }
    let reason = format!(
        "calls of {name} on the wire: 0, so the model's requests count, as for a tool inside the agent: {requests}"
    );
    (requests, reason)
}

/// The number of the model's requests for it.
pub(super) fn times(narrow: &Narrow, trace: &Trace) -> u64 {
    let Some(tool) = narrow.tool.as_ref().filter(|_| narrow.hosts.is_empty()) else {
        return 0;
    };
    let attempts = trace.attempts().iter();
    let names = attempts.flat_map(|attempt| in_exchange(trace, attempt));
    names.filter(|name| tool.matches(name)).count() as u64
}

/// Its first call, or else the first exchange in which the model requested it.
pub(super) fn first<'t>(narrow: &Narrow, trace: &'t Trace) -> Option<&'t Attempt> {
    let requests_it = |attempt: &&Attempt| {
        let tool = narrow.tool.as_ref();
        in_exchange(trace, attempt).any(|name| tool.is_some_and(|tool| tool.matches(name)))
    };
    let mut attempts = trace.attempts().iter();
    let called = attempts.clone().find(|attempt| narrow.wants(attempt));
    called.or_else(|| attempts.find(requests_it))
}
