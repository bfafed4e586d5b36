//! `tool_order`: tools are first called in this order.

use super::{globs, holds, wire, wishes};
use crate::invariants::{Check, Kind, Subject, Verdict};
use squall_profiles::glob::Glob;

/// `tools`, two at least. Those that were not called are left out.
pub(super) const TOOL_ORDER: Kind = wire("tool_order", |fields| {
    let tools = globs(fields, "tools", "the names of tools, in order");
    if !fields.has("tools") {
        fields.missing("tools", "the names of tools, in order");
    }
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
    fn judge(&self, subject: &Subject<'_>) -> Verdict {
        let trace = subject.trace;
        let attempts = trace.attempts();
        let on_the_wire = |tool: &Glob| {
            let place = attempts.iter().position(|attempt| {
                attempt.calls_a_tool() && attempt.tools.iter().any(|name| tool.matches(name))
            });
            place.map(|place| (place, 0))
        };
        // A tool inside the agent is called once the model wishes it.
        let wished = |tool: &Glob| {
            attempts.iter().enumerate().find_map(|(place, attempt)| {
                let mut names = wishes::of_exchange(trace, attempt);
                let at = names.position(|name| tool.matches(name))?;
                Some((place, at + 1))
            })
        };
        let first = |tool: &Glob| on_the_wire(tool).or_else(|| wished(tool));
        let called: Vec<(&str, (usize, usize))> = self
            .0
            .iter()
            .filter_map(|tool| Some((tool.as_str(), first(tool)?)))
            .collect();
        if called.len() < 2 {
            let names: Vec<_> = called.iter().map(|(tool, _)| *tool).collect();
            let told = if names.is_empty() {
                "none".to_owned()
            } else {
                names.join(", ")
            };
            return Verdict::Insufficient(format!("of the tools only {told} was called"));
        }
        let wrong = called.windows(2).find(|pair| pair[0].1 > pair[1].1);
        match wrong {
            Some([(later, at), (earlier, _)]) => Verdict::Fails(format!(
                "{earlier} was called before {later}, which came first in {}",
                attempts[at.0].id
            )),
            _ => holds(subject.trace, "the tools were called in order"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::judged;
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
}
