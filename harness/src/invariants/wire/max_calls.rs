//! `max_calls`: the maximum number of attempts at a tool or host.

use super::{Narrow, holds, requested};
use crate::count::count;
use crate::invariants::{Check, InvariantKind, Verdict};

/// `tool` or `host`, and `max`.
pub(super) const MAX_CALLS: InvariantKind = InvariantKind::wire("max_calls", |fields| {
    let narrow = Narrow::read(fields);
    let most = fields.whole("max", "Most attempts.", 0..=1_000_000, " attempts");
    let counted = ["tool", "to", "from", "host", "hosts"];
    if !counted.iter().any(|name| fields.has(name)) {
        fields.missing("tool", "whose calls are counted, or `host`");
    }
    fields.require("max", "the greatest number of attempts");
    let (narrow, most) = (narrow?, most?);
    Some(Check::new(move |subject| {
        let attempts: Vec<_> = narrow.attempts(subject.trace).collect();
        let calls = attempts.len() as u64;
        if calls == 0 && requested::times(&narrow, subject.trace) > 0 {
            let (requests, reason) = requested::count(&narrow, subject);
            let reason = format!("{reason}; the limit is {most}");
            return if requests > most {
                Verdict::fails(reason)
            } else {
                holds(subject.trace, reason).with_margin_of(requests, most)
            };
        }
        let reason = format!("{} to call {}", count(calls, "attempt"), narrow.name());
        let over = usize::try_from(most).ok();
        match over.and_then(|most| attempts.get(most)) {
            Some(over) => Verdict::fails(format!("{reason}; the limit is {most}")).at(over),
            None => holds(subject.trace, format!("{reason}, of at most {most}"))
                .with_margin_of(calls, most),
        }
    }))
});

#[cfg(test)]
mod tests {
    use super::super::testing::{judged, reason};
    use crate::invariants::testing::Outcome::*;
    use crate::trace::testing::Sent;

    #[test]
    fn retries_count_too() {
        let call = || Sent::get("https://t.test/").tool("a").status(503);
        for (written, count, expected) in [
            ("{type: max_calls, tool: a, max: 2}", 2, Holds),
            ("{type: max_calls, tool: a, max: 2}", 3, Fails),
            ("{type: max_calls, host: T.Test, max: 2}", 3, Fails),
            ("{type: max_calls, tool: '*', max: 2}", 3, Fails),
            ("{type: max_calls, host: 't.test:443', max: 2}", 3, Fails),
            ("{type: max_calls, host: other.test, max: 0}", 3, Holds),
        ] {
            let sent: Vec<_> = (0..count).map(|_| call()).collect();
            assert_eq!(judged(written, &sent), expected, "{written} {count}");
        }
    }

    #[test]
    fn the_messages_between_two_agents_are_counted_alone() {
        let sent = [
            Sent::agent("worker", Some("planner")),
            Sent::agent("worker", None),
            Sent::agent("critic", Some("planner")),
            Sent::get("https://t.test/"),
        ];
        for (written, expected) in [
            ("{type: max_calls, to: worker, max: 1}", Fails),
            (
                "{type: max_calls, to: worker, from: planner, max: 1}",
                Holds,
            ),
            (
                "{type: max_calls, to: worker, from: planner, max: 0}",
                Fails,
            ),
            ("{type: max_calls, from: planner, max: 1}", Fails),
            ("{type: max_calls, from: critic, max: 0}", Holds),
        ] {
            assert_eq!(judged(written, &sent), expected, "{written}");
        }
        let written = "{type: max_calls, to: worker, from: planner, max: 0}";
        assert_eq!(
            reason(written, &sent),
            "1 attempt to call worker from planner; the limit is 0"
        );
    }

    #[test]
    fn every_tool_is_one_without_a_name_too_but_no_model() {
        let sent = [Sent::get("https://t.test/"), Sent::model("[]")];
        for (written, expected) in [
            ("{type: max_calls, tool: '*', max: 0}", Fails),
            ("{type: max_calls, tool: '*', max: 1}", Holds),
            ("{type: tool_not_called, tool: '*'}", Fails),
            ("{type: tool_called, tool: '*'}", Holds),
            ("{type: tool_called, tool: '*', min: 2}", Fails),
        ] {
            assert_eq!(judged(written, &sent), expected, "{written}");
        }
    }

    #[test]
    fn of_a_tool_inside_the_agent_the_models_wishes_are_counted() {
        let request = || {
            let mut request = Sent::model("[]");
            request.record.llm.get_or_insert_default().tool_calls = vec!["a".into()];
            request
        };
        let written = "{type: max_calls, tool: a, max: 2}";
        assert_eq!(judged(written, &[request(), request()]), Holds);
        assert_eq!(judged(written, &[request(), request(), request()]), Fails);
    }

    #[test]
    #[rustfmt::skip]
    fn the_reason_names_whose_calls_were_counted() {
        let sent = [
            Sent::get("https://t.test/").tool("a"),
            Sent::get("https://t.test/").tool("a"),
            Sent::get("https://v.test/").tool("b"),
        ];
        for (written, said) in [
            ("{type: max_calls, tool: a, max: 1}", "2 attempts to call a; the limit is 1"),
            ("{type: max_calls, tool: a, max: 2}", "2 attempts to call a, of at most 2"),
            ("{type: max_calls, tool: b, max: 1}", "1 attempt to call b, of at most 1"),
            ("{type: max_calls, host: t.test, max: 1}", "2 attempts to call t.test;"),
            ("{type: max_calls, tool: a, host: [t.test, u.test], max: 1}", "call a at t.test or u.test;"),
        ] {
            let told = reason(written, &sent);
            assert!(told.contains(said), "{written}: {told}");
        }
    }
}
