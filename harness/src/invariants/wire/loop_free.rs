//! `loop_free`: the same tool call with the same arguments is not repeated too often.

use std::collections::BTreeMap;

use super::{Narrow, holds, requested};
use crate::count::count;
use crate::invariants::{Check, InvariantKind, Subject, Verdict};
use crate::trace::{Attempt, Trace};

/// `max`, default 5. Retries count too, because a repeated failing call is also a loop.
pub(super) const LOOP_FREE: InvariantKind = InvariantKind::wire("loop_free", |fields| {
    let narrow = Narrow::read(fields);
    let most = fields.whole("max", "Most equal calls.", 1..=1_000_000, " equal calls");
    let (narrow, most) = (narrow?, most.unwrap_or(5));
    Some(Check::new(move |subject| judged(subject, &narrow, most)))
});

fn judged(subject: &Subject<'_>, narrow: &Narrow, most: u64) -> Verdict {
    let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
    let mut unread = 0;
    let attempts = narrow.attempts(subject.trace);
    for attempt in attempts.filter(|one| one.calls_a_tool()) {
        let Some(identity) = attempt.identity else {
            unread += 1;
            continue;
        };
        let times = counts.entry(identity).or_default();
        *times += 1;
        if *times > most {
            let name = attempt.name();
            let reason =
                format!("{name}: the same call was made {times} times; the limit is {most}");
            return Verdict::fails(reason).at(attempt);
        }
    }
    if unread > most {
        let reason = format!("the arguments of {} were not read", count(unread, "call"));
        return Verdict::insufficient(reason);
    }
    let inside = most_requested(narrow, subject.trace);
    if let Some((tool, times)) = inside.filter(|(_, times)| *times > most) {
        return Verdict::insufficient(format!(
            "the model requested {tool} {times} times, and with which arguments is not known"
        ));
    }
    let reason = match counts.values().max() {
        None => "no call was made".to_owned(),
        Some(1) => "no call was made twice".to_owned(),
        Some(more) => format!("no call was made more than {more} times"),
    };
    holds(subject.trace, reason)
}

/// The tool inside the agent that the model requested most often, and its count.
fn most_requested<'t>(narrow: &Narrow, trace: &'t Trace) -> Option<(&'t str, u64)> {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    let is_inside = |name: &&str| {
        let tool = narrow.tool.as_ref();
        let on_the_wire = |attempt: &Attempt| attempt.tools.iter().any(|tool| tool == name);
        tool.is_none_or(|tool| tool.matches(name)) && !trace.attempts().iter().any(on_the_wire)
    };
    let attempts = trace.attempts().iter();
    let names = attempts.flat_map(|attempt| requested::in_exchange(trace, attempt));
    for name in names.filter(is_inside) {
        *counts.entry(name).or_default() += 1;
    }
    counts.into_iter().max_by_key(|(_, times)| *times)
}

#[cfg(test)]
mod tests {
    use super::super::testing::judged;
    use crate::invariants::testing::Outcome::*;
    use crate::trace::testing::Sent;

    #[test]
    fn equal_calls_are_counted_and_others_are_not() {
        let search = |query: usize| Sent::get(&format!("https://s.test/?q={query}")).tool("search");
        let same = |count: usize| -> Vec<_> { (0..count).map(|_| search(1)).collect() };
        let request = || {
            let mut request = Sent::model("[]");
            request.record.llm.get_or_insert_default().tool_calls = vec!["inside".into()];
            request
        };
        let different: Vec<_> = (0..9).map(search).collect();
        let mcp = |count: u32| -> Vec<_> {
            (0..count)
                .map(|id| Sent::mcp("search", r#"{"q":1}"#, id))
                .collect()
        };
        for (written, sent, expected) in [
            ("{type: loop_free}", same(5), Holds),
            ("{type: loop_free}", same(6), Fails),
            ("{type: loop_free, max: 1}", same(2), Fails),
            ("{type: loop_free}", different, Holds),
            ("{type: loop_free}", mcp(6), Fails),
            ("{type: loop_free}", mcp(5), Holds),
            ("{type: loop_free, tool: other}", same(9), Holds),
            ("{type: loop_free}", vec![search(1).status(503); 6], Fails),
            ("{type: loop_free}", vec![request(); 6], Unproven),
            ("{type: loop_free}", vec![request(); 5], Holds),
            ("{type: loop_free}", vec![Sent::model("[]"); 9], Holds),
            (
                "{type: loop_free}",
                vec![Sent::post("https://s.test/", "").unread(); 6],
                Unproven,
            ),
        ] {
            assert_eq!(judged(written, &sent), expected, "{written} {}", sent.len());
        }
    }
}
