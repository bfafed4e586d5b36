//! `no_unasked_tool`: under chaos no tool is called that is not called without.

use std::collections::BTreeSet;

use squall_profiles::glob::Glob;

use super::{Narrow, globs, holds, wire, wishes};
use crate::invariants::{Check, Kind, Subject, Verdict};
use crate::trace::Trace;

/// `allow`: tools that may be called nevertheless.
pub(super) const NO_UNASKED_TOOL: Kind = wire("no_unasked_tool", |fields| {
    let narrow = Narrow::read(fields);
    let allow = globs(fields, "allow", "a glob over names of tools");
    Some(Box::new(NoUnasked {
        narrow: narrow?,
        allow: allow?,
    }))
});

#[derive(Debug)]
struct NoUnasked {
    narrow: Narrow,
    allow: Vec<Glob>,
}

impl Check for NoUnasked {
    fn judge(&self, subject: &Subject<'_>) -> Verdict {
        let Some(clean) = subject.baseline.and_then(|clean| clean.trace) else {
            return Verdict::Error("there is no clean run to compare with".to_owned());
        };
        let asked = called(&Narrow::default(), clean);
        let unasked = called(&self.narrow, subject.trace)
            .into_iter()
            .find(|tool| {
                !asked.contains(tool) && !self.allow.iter().any(|glob| glob.matches(tool))
            });
        match unasked {
            Some(tool) => Verdict::Fails(format!("{tool} was called, and is not in the clean run")),
            None if clean.lost() > 0 => {
                Verdict::Insufficient("the clean run was not kept whole".to_owned())
            }
            None => holds(subject.trace, "only tools of the clean run were called"),
        }
    }

    fn needs_baseline(&self) -> bool {
        true
    }
}

/// Tools that were called, and those that the model wished to call.
fn called(narrow: &Narrow, trace: &Trace) -> BTreeSet<String> {
    let on_the_wire = narrow
        .attempts(trace)
        .filter(|attempt| attempt.calls_a_tool())
        .flat_map(|attempt| attempt.tools.iter().cloned());
    let wished = narrow
        .attempts(trace)
        .flat_map(|attempt| wishes::of_exchange(trace, attempt).map(str::to_owned));
    on_the_wire.chain(wished).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::{judged, judged_on};
    use crate::invariants::testing::Outcome::*;
    use crate::trace::testing::{Sent, trace};

    #[test]
    fn the_clean_run_says_which_tools_are_asked_for() {
        let call = |tool: &str| Sent::get("https://t.test/").tool(tool);
        let clean = trace(&[call("search"), call("weather")]);
        for (written, tools, expected) in [
            ("{type: no_unasked_tool}", vec!["search"], Holds),
            ("{type: no_unasked_tool}", vec![], Holds),
            (
                "{type: no_unasked_tool}",
                vec!["search", "send_email"],
                Fails,
            ),
            (
                "{type: no_unasked_tool, allow: ['send_*']}",
                vec!["send_email"],
                Holds,
            ),
        ] {
            let sent: Vec<_> = tools.iter().map(|tool| call(tool)).collect();
            assert_eq!(
                judged_on(written, &trace(&sent), Some(&clean)),
                expected,
                "{tools:?}"
            );
        }
        assert_eq!(judged("{type: no_unasked_tool}", &[call("search")]), Errs);
        let mut wish = Sent::model("[]");
        wish.record.llm.get_or_insert_default().tool_calls = vec!["execute_lookup".into()];
        let judged =
            |sent: Sent| judged_on("{type: no_unasked_tool}", &trace(&[sent]), Some(&clean));
        assert_eq!(judged(wish.clone()), Fails);
        // That one no model wished.
        assert_eq!(judged(wish.injected("unknown_tool_call", json!({}))), Holds);
    }
}
