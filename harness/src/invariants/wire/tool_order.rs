//! `tool_order`: tools are first called in this order.

use super::{globs, holds, wire, wishes};
use crate::invariants::{Check, Kind, Subject, Verdict};
use crate::trace::Trace;
use squall_profiles::glob::Glob;

/// `tools`, two at least. Those that were not called are left out.
pub(super) const TOOL_ORDER: Kind = wire("tool_order", |fields| {
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
    Some(Box::new(Order(tools)))
});

#[derive(Debug)]
struct Order(Vec<Glob>);

impl Check for Order {
    fn tools(&self) -> Vec<&str> {
        self.0.iter().map(Glob::as_str).collect()
    }

    fn judge(&self, subject: &Subject<'_>) -> Verdict {
        let trace = subject.trace;
        let tools = self.0.iter();
        let called: Vec<_> = tools.filter_map(|tool| First::of(tool, subject)).collect();
        let by_wish: Vec<_> = called
            .iter()
            .filter(|first| first.is_a_wish())
            .map(|first| first.tool)
            .collect();
        let by_wish = match &by_wish[..] {
            [] => String::new(),
            tools => format!(
                "; of {} no call is on the wire, so the model's first wish counts, as for a tool inside the agent",
                tools.join(", ")
            ),
        };
        if called.len() < 2 {
            let names: Vec<_> = called.iter().map(|first| first.tool).collect();
            let told = if names.is_empty() {
                "none".to_owned()
            } else {
                names.join(", ")
            };
            return Verdict::Insufficient(format!("of the tools only {told} was called{by_wish}"));
        }
        let wrong = called.windows(2).find(|pair| pair[0].at > pair[1].at);
        match wrong {
            Some([later, earlier]) => Verdict::Fails(format!(
                "{} was called before {}, which came first in {}{by_wish}",
                earlier.tool,
                later.tool,
                trace.attempts()[later.at.0].id
            )),
            _ => holds(trace, format!("the tools were called in order{by_wish}")),
        }
    }
}

/// The first call of a tool.
struct First<'o> {
    tool: &'o str,
    /// In which attempt, and as which wish of that; 0: it is the call itself.
    at: (usize, usize),
}

impl<'o> First<'o> {
    /// A tool inside the agent is called once the model wishes it; not so one whose calls go over the wire, as the
    /// clean run shows.
    fn of(tool: &'o Glob, subject: &Subject<'_>) -> Option<Self> {
        let clean = subject.baseline.and_then(|clean| clean.trace);
        let is_outside = clean.is_some_and(|clean| on_the_wire(tool, clean).is_some());
        let wish = || wished(tool, subject.trace).filter(|_| !is_outside);
        let call = on_the_wire(tool, subject.trace).map(|place| (place, 0));
        Some(Self {
            tool: tool.as_str(),
            at: call.or_else(wish)?,
        })
    }

    fn is_a_wish(&self) -> bool {
        self.at.1 > 0
    }
}

/// The attempt that calls a tool first.
fn on_the_wire(tool: &Glob, trace: &Trace) -> Option<usize> {
    let mut attempts = trace.attempts().iter();
    attempts.position(|attempt| {
        attempt.calls_a_tool() && attempt.tools.iter().any(|name| tool.matches(name))
    })
}

/// The attempt in which the model wishes to call a tool first, and as which of its wishes, from 1.
fn wished(tool: &Glob, trace: &Trace) -> Option<(usize, usize)> {
    let mut attempts = trace.attempts().iter().enumerate();
    attempts.find_map(|(place, attempt)| {
        let mut names = wishes::of_exchange(trace, attempt);
        let at = names.position(|name| tool.matches(name))?;
        Some((place, at + 1))
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
        let mut wish = Sent::model("[]");
        wish.record.llm.get_or_insert_default().tool_calls = vec!["pay".into(), "look".into()];
        assert_eq!(judged(written, &[wish]), Fails, "inside the agent");
    }

    #[test]
    fn a_wish_is_told_as_such_and_counts_for_nothing_where_calls_go_over_the_wire() {
        let mut wish = Sent::model("[]");
        wish.record.llm.get_or_insert_default().tool_calls = vec!["pay".into()];
        let wished = [wish, Sent::get("https://t.test/").tool("look")];
        let written = "{type: tool_order, tools: [look, pay]}";
        let told = reason(written, &wished);
        assert!(told.contains("of pay no call is on the wire"), "{told}");
        let called = ["look", "pay"].map(|tool| Sent::get("https://t.test/").tool(tool));
        assert!(!reason(written, &called).contains("wish"));
        assert_eq!(judged_beside(written, &wished, &[]), Fails);
        assert_eq!(judged_beside(written, &wished, &called), Unproven);
    }
}
