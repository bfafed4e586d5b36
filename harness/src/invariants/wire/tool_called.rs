//! `tool_called`, `tool_not_called`: a tool is called a minimum number of times, or never.
//!
//! For a tool inside the agent, only the model's requests are in the traffic. They count if no call of the tool was
//! seen in this run or in the clean run, and the reason reports it.

use squall_documents::Fields;

use super::requested::{count, first};
use super::{Narrow, fails, holds};
use crate::invariants::{Check, InvariantKind, Verdict};

/// `tool`, `min` (default 1).
pub(super) const TOOL_CALLED: InvariantKind = InvariantKind::wire("tool_called", |fields| {
    let least = fields.whole("min", "How often at least; default 1.", 1..=1_000_000, "");
    let (narrow, least) = (named(fields)?, least.unwrap_or(1));
    Some(Check::new(move |subject| {
        let (count, reason) = count(&narrow, subject);
        let reason = format!("{reason}, demanded are {least}");
        if count >= least {
            return Verdict::holds(reason);
        }
        fails(subject.trace, reason)
    }))
});

/// `tool`.
pub(super) const TOOL_NOT_CALLED: InvariantKind =
    InvariantKind::wire("tool_not_called", |fields| {
        let narrow = named(fields)?;
        Some(Check::new(move |subject| {
            let (count, reason) = count(&narrow, subject);
            if count == 0 {
                return holds(subject.trace, reason);
            }
            match first(&narrow, subject.trace) {
                Some(call) => Verdict::fails(format!("{reason}; first {}", call.id)).at(call),
                None => Verdict::fails(reason),
            }
        }))
    });

fn named(fields: &mut Fields<'_, '_>) -> Option<Narrow> {
    let narrow = Narrow::read(fields);
    fields.require("tool", "the tool's name, or a glob over names");
    narrow
}

#[cfg(test)]
mod tests {
    use super::super::testing::{judged, judged_beside, reason};
    use crate::invariants::testing::Outcome::*;
    use crate::trace::testing::Sent;

    #[test]
    #[rustfmt::skip]
    fn calls_are_counted_by_the_tools_name() {
        let search = || Sent::get("https://s.test/").tool("web_search");
        let other = || Sent::get("https://o.test/").tool("other");
        for (written, sent, expected) in [
            ("{type: tool_called, tool: web_search}", vec![other(), search()], Holds),
            ("{type: tool_called, tool: web_search}", vec![other()], Fails),
            ("{type: tool_called, tool: 'web_*', min: 2}", vec![search(), search()], Holds),
            ("{type: tool_called, tool: web_search, min: 2}", vec![search()], Fails),
            ("{type: tool_called, tool: web_search, hosts: [x.test]}", vec![search()], Fails),
            ("{type: tool_not_called, tool: web_search}", vec![other()], Holds),
            ("{type: tool_not_called, tool: web_search}", vec![search()], Fails),
            ("{type: tool_not_called, tool: mail}", vec![Sent::mcp("mail", "{}", 1)], Fails),
        ] {
            assert_eq!(judged(written, &sent), expected, "{written}");
        }
    }

    #[test]
    fn a_retry_is_no_second_call_and_a_wish_counts_where_no_call_was_seen() {
        let failed = Sent::get("https://s.test/").tool("a").status(503);
        let twice = [failed.clone(), failed];
        assert_eq!(
            judged("{type: tool_called, tool: a, min: 2}", &twice),
            Fails
        );
        let mut request = Sent::model("[]");
        request.record.llm.get_or_insert_default().tool_calls = vec!["send_email".into()];
        assert_eq!(
            judged(
                "{type: tool_not_called, tool: send_email}",
                &[request.clone()]
            ),
            Fails
        );
        assert_eq!(
            judged("{type: tool_called, tool: send_email}", &[request]),
            Holds
        );
    }

    #[test]
    fn a_request_of_the_model_is_named_as_such_and_counts_for_nothing_where_calls_go_over_the_wire()
    {
        let mut request = Sent::model("[]");
        request.record.llm.get_or_insert_default().tool_calls = vec!["send_email".into()];
        let requested = [request];
        let called = [Sent::get("https://mail.test/").tool("send_email")];
        let written = "{type: tool_called, tool: send_email}";
        let unwanted = reason("{type: tool_not_called, tool: send_email}", &called);
        assert!(unwanted.ends_with("on the wire: 1; first x1"), "{unwanted}");
        let told = reason(written, &requested);
        assert!(told.contains("the model's requests count"), "{told}");
        assert!(reason(written, &called).contains("on the wire: 1"));
        for (written, expected) in [
            (written, Fails),
            ("{type: tool_not_called, tool: send_email}", Holds),
        ] {
            assert_eq!(
                judged_beside(written, &requested, &called),
                expected,
                "{written}"
            );
        }
    }
}
