//! `retries_transient`: a transient failure is tried again, or another way is taken.

use std::time::Duration;

use squall_journal::record::Kind as ExchangeKind;

use super::{Narrow, failed_for, holds, is_nameless, wire};
use crate::invariants::{Check, Kind, Subject, Verdict};
use crate::trace::{Attempt, Class, Trace};

/// `within_ms`, default 60000, 1 to a day.
pub(super) const RETRIES_TRANSIENT: Kind = wire("retries_transient", |fields| {
    let narrow = Narrow::read(fields);
    let within = fields.whole("within_ms", 1..=86_400_000, " milliseconds");
    Some(Box::new(RetriesTransient {
        narrow: narrow?,
        within: Duration::from_millis(within.unwrap_or(60_000)),
    }))
});

#[derive(Debug)]
struct RetriesTransient {
    narrow: Narrow,
    within: Duration,
}

impl Check for RetriesTransient {
    fn judge(&self, subject: &Subject<'_>) -> Verdict {
        let mut failures = 0;
        for attempts in self.narrow.calls(subject.trace) {
            let Some(first) = attempts
                .iter()
                .find(|one| failed_for(one, Class::Transient))
            else {
                continue;
            };
            failures += 1;
            let retried = attempts.iter().any(|later| self.follows(first, later));
            if retried || self.fell_back(first, subject.trace) {
                continue;
            }
            let why = first.failure.as_ref().map(|failure| failure.why.as_str());
            let told = format!(
                "{}: {}, and neither a retry nor another way followed within {} ms",
                first.name(),
                why.unwrap_or_default(),
                self.within.as_millis()
            );
            if is_nameless(first) || subject.trace.lost() > 0 {
                return Verdict::Insufficient(format!("{told}, as far as bodies were read"));
            }
            return Verdict::Fails(told);
        }
        match failures {
            0 => Verdict::Insufficient("nothing failed for a while only".to_owned()),
            failures => holds(
                subject.trace,
                format!("{failures} calls were tried again or elsewhere"),
            ),
        }
    }
}

impl RetriesTransient {
    fn follows(&self, failed: &Attempt, later: &Attempt) -> bool {
        let ended = failed.ended.unwrap_or(failed.began);
        let pause = later.began.checked_sub(ended);
        later.id != failed.id && pause.is_some_and(|pause| pause <= self.within)
    }

    /// Another model or host for a model, another tool or host for a tool.
    fn fell_back(&self, failed: &Attempt, trace: &Trace) -> bool {
        trace.attempts().iter().any(|later| {
            let other = later.host != failed.host
                || match failed.kind {
                    ExchangeKind::Llm => later.model != failed.model,
                    ExchangeKind::Tool | ExchangeKind::Mcp | ExchangeKind::Other => {
                        later.tools != failed.tools
                    }
                };
            let alike =
                later.kind == failed.kind || (later.calls_a_tool() && failed.calls_a_tool());
            alike && other && self.follows(failed, later)
        })
    }
}

#[cfg(test)]
mod tests {
    use squall_journal::record::Outcome;

    use super::super::testing::judged;
    use crate::invariants::testing::Outcome::*;
    use crate::trace::testing::Sent;

    #[test]
    fn a_retry_or_another_way_is_wanted() {
        let failed = || Sent::get("https://t.test/").tool("a").status(503).at(0);
        let written = "{type: retries_transient, within_ms: 1000}";
        let again = |at| Sent::get("https://t.test/").tool("a").at(at);
        let model = |name: &str, at| Sent::model("[]").used(name, 1, 1).at(at);
        for (sent, expected) in [
            (vec![failed()], Fails),
            (vec![failed(), again(500)], Holds),
            (vec![failed(), again(1011)], Fails),
            (
                vec![failed(), Sent::get("https://other.test/").tool("b").at(100)],
                Holds,
            ),
            (vec![failed(), model("gpt-4o", 100)], Fails),
            (
                vec![model("gpt-4o", 0).status(529), model("gpt-4o-mini", 50)],
                Holds,
            ),
            (vec![model("gpt-4o", 0).reset()], Fails),
            (vec![Sent::get("https://t.test/").status(404)], Unproven),
            (
                vec![Sent::post("https://t.test/", "").unread().status(503)],
                Unproven,
            ),
        ] {
            assert_eq!(judged(written, &sent), expected, "{sent:#?}");
        }
    }

    #[test]
    fn an_agent_may_hang_up_on_a_model_that_has_said_all() {
        let left = |finish: Option<&str>| {
            let mut sent = Sent::model("[]").used("gpt-4o", 1, 1);
            sent.record.outcome = Outcome::ClientGone;
            let llm = sent.record.llm.as_mut().expect("a model call");
            llm.finish = finish.map(str::to_owned);
            judged("{type: retries_transient}", &[sent])
        };
        assert_eq!(left(Some("stop")), Unproven);
        assert_eq!(left(None), Fails);
    }
}
