//! `tool_order`: the first calls of tools are in this order.

use squall_profiles::glob::Glob;

use super::{globs, holds, requested};
use crate::invariants::{Check, InvariantKind, Subject, Verdict};
use crate::trace::Trace;

/// `tools`: at least two. Tools that were not called are ignored.
pub(super) const TOOL_ORDER: InvariantKind = InvariantKind::wire("tool_order", |fields| {
    let tools = globs(
        fields,
        "tools",
        "The names of tools, in order.",
        "the names of tools, in order",
    );
    fields.require("tools", "the names of tools, in order");
    let tools = tools?;
    if fields.has("tools") && tools.len() < 2 {
        fields.error("tools", "an order takes two tools at least");
        return None;
    }
    Some(Check::new(move |subject| judged(subject, &tools)))
});

fn judged(subject: &Subject<'_>, tools: &[Glob]) -> Verdict {
    let trace = subject.trace;
    let first = |tool| Some((Glob::as_str(tool), first_call(tool, subject)?));
    let called: Vec<_> = tools.iter().filter_map(first).collect();
    let requested = called.iter().filter(|(_, (_, request))| *request > 0);
    let requested: Vec<_> = requested.map(|(tool, _)| *tool).collect();
    let basis = match &requested[..] {
        [] => String::new(),
        tools => format!(
            "; of {} no call is on the wire, so the model's first request counts, as for a tool inside the agent",
            tools.join(", ")
        ),
    };
    if called.len() < 2 {
        let only = called.first().map_or("none", |(tool, _)| tool);
        return Verdict::insufficient(format!("of the tools only {only} was called{basis}"));
    }
    let wrong = called.windows(2).find(|pair| pair[0].1 > pair[1].1);
    let Some([(later, (place, _)), (earlier, _)]) = wrong else {
        return holds(trace, format!("the tools were called in order{basis}"));
    };
    let attempt = &trace.attempts()[*place];
    Verdict::fails(format!(
        "{earlier} was called before {later}, which came first in {}{basis}",
        attempt.id
    ))
    .at(attempt)
}

/// The attempt with the first call of a tool, and the index of the model's request in it, from 1; 0 is the call
/// itself. Requests count only if the traffic contains no call, neither here nor in the clean run.
fn first_call(tool: &Glob, subject: &Subject<'_>) -> Option<(usize, usize)> {
    let trace = subject.trace;
    let on_the_wire = |trace: &Trace| {
        let mut attempts = trace.attempts().iter();
        attempts.position(|attempt| {
            attempt.calls_a_tool() && attempt.tools.iter().any(|name| tool.matches(name))
        })
    };
    if let Some(place) = on_the_wire(trace) {
        return Some((place, 0));
    }
    let clean = subject.baseline.and_then(|clean| clean.trace);
    if clean.is_some_and(|clean| on_the_wire(clean).is_some()) {
        return None;
    }
    let mut attempts = trace.attempts().iter().enumerate();
    attempts.find_map(|(place, attempt)| {
        let mut names = requested::in_exchange(trace, attempt);
        Some((place, names.position(|name| tool.matches(name))? + 1))
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{judged, judged_beside, reason};
    use crate::invariants::testing::Outcome::*;
    use crate::trace::testing::Sent;

    #[test]
    fn the_first_calls_count() {
        let call = |tool: &str| Sent::get("https://t.test/").tool(tool);
        let written = "{type: tool_order, tools: [look, book, pay]}";
        for (tools, expected) in [
            (vec!["look", "book", "pay"], Holds),
            (vec!["look", "book", "look", "pay"], Holds),
            (vec!["look", "pay"], Holds),
            (vec!["pay", "look"], Fails),
            (vec!["look", "pay", "book"], Fails),
            (vec!["look"], Unproven),
            (vec![], Unproven),
        ] {
            let sent: Vec<_> = tools.iter().map(|tool| call(tool)).collect();
            assert_eq!(judged(written, &sent), expected, "{tools:?}");
        }
        let mut request = Sent::model("[]");
        request.record.llm.get_or_insert_default().tool_calls = vec!["pay".into(), "look".into()];
        assert_eq!(judged(written, &[request]), Fails, "inside the agent");
    }

    #[test]
    fn a_request_of_the_model_is_named_as_such_and_counts_for_nothing_where_calls_go_over_the_wire()
    {
        let mut request = Sent::model("[]");
        request.record.llm.get_or_insert_default().tool_calls = vec!["pay".into()];
        let requested = [request, Sent::get("https://t.test/").tool("look")];
        let written = "{type: tool_order, tools: [look, pay]}";
        let told = reason(written, &requested);
        assert!(told.contains("of pay no call is on the wire"), "{told}");
        let called = ["look", "pay"].map(|tool| Sent::get("https://t.test/").tool(tool));
        assert!(!reason(written, &called).contains("request"));
        assert_eq!(judged_beside(written, &requested, &[]), Fails);
        assert_eq!(judged_beside(written, &requested, &called), Unproven);
    }
}
