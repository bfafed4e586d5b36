//! `retries_transient`: a transient failure is tried again, or another way is taken.
//!
//! Another way is a call of the same kind of thing: another model that is asked the same; the same tool at
//! another host or port; by the same method the same path at another host or port, or another tool that is told
//! all that the first one was. What only shares a word with it may be another way or the next step.

use std::time::Duration;

use squall_journal::record::Kind as ExchangeKind;

use super::{Narrow, failed_for, fails, holds, is_nameless, wire};
use crate::invariants::{Check, Kind, Subject, Verdict};
use crate::trace::{Attempt, Class, Trace, path_and_query};

/// `within_ms`, default 60000, 1 to a day.
pub(super) const RETRIES_TRANSIENT: Kind = wire("retries_transient", |fields| {
    let narrow = Narrow::read(fields);
    let about = "Within how many milliseconds; default 60000.";
    let within = fields.whole("within_ms", about, 1..=86_400_000, " milliseconds");
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
        let mut perhaps = None;
        for attempts in self.narrow.calls(subject.trace) {
            let Some(first) = attempts
                .iter()
                .find(|one| failed_for(one, Class::Transient))
            else {
                continue;
            };
            failures += 1;
            let retried = attempts.iter().any(|later| self.follows(first, later));
            if retried {
                continue;
            }
            let why = first.failure.as_ref().map(|failure| failure.why.as_str());
            let told = format!(
                "{}: {}, and neither a retry nor another way followed within {} ms",
                first.name(),
                why.unwrap_or_default(),
                self.within.as_millis()
            );
            match self.other_way(first, subject.trace) {
                Some((OtherWay::Yes, _)) => {}
                Some((OtherWay::Perhaps, later)) => {
                    let told = format!("{told}, unless {} was one", later.name());
                    perhaps = perhaps.or(Some(told));
                }
                Some((OtherWay::No, _)) | None => {
                    if is_nameless(first) {
                        let told = format!("{told}, as far as bodies were read");
                        return Verdict::Insufficient(told);
                    }
                    return fails(subject.trace, told);
                }
            }
        }
        if let Some(told) = perhaps {
            return Verdict::Insufficient(told);
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

    /// The call that was most surely another way.
    fn other_way<'a>(&self, failed: &Attempt, trace: &'a Trace) -> Option<(OtherWay, &'a Attempt)> {
        let later = trace.attempts().iter();
        let later = later.filter(|later| self.follows(failed, later));
        let judged = later.map(|later| (is_other_way(failed, later, trace), later));
        judged.max_by_key(|(way, _)| *way)
    }
}

/// Whether a call is another way to what failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum OtherWay {
    No,
    Perhaps,
    Yes,
}

fn is_other_way(failed: &Attempt, later: &Attempt, trace: &Trace) -> OtherWay {
    let is_elsewhere = later.host_and_port != failed.host_and_port;
    match (failed.kind, later.kind) {
        (ExchangeKind::Llm, ExchangeKind::Llm) if is_elsewhere || later.model != failed.model => {
            asks_the_same(failed, later, trace)
        }
        (ExchangeKind::Llm, _) | (_, ExchangeKind::Llm) => OtherWay::No,
        _ if later.kind != failed.kind && !(later.calls_a_tool() && failed.calls_a_tool()) => {
            OtherWay::No
        }
        _ if is_elsewhere && !failed.tools.is_empty() && later.tools == failed.tools => {
            OtherWay::Yes
        }
        _ => says_the_same(failed, later, trace),
    }
}

/// Whether two models are asked the same, by the last that is said to them.
fn asks_the_same(failed: &Attempt, later: &Attempt, trace: &Trace) -> OtherWay {
    let turns = trace.turns();
    let asked = |attempt: &Attempt| {
        let turn = turns.iter().find(|turn| turn.attempt.id == attempt.id)?;
        turn.asked.clone()
    };
    match (asked(failed), asked(later)) {
        (Some(one), Some(other)) if one == other => OtherWay::Yes,
        _ => OtherWay::Perhaps,
    }
}

/// Whether two tools are told the same, by the words of both requests.
fn says_the_same(failed: &Attempt, later: &Attempt, trace: &Trace) -> OtherWay {
    let is_elsewhere = later.host_and_port != failed.host_and_port;
    let (one, other) = (trace.about(failed), trace.about(later));
    let path = |attempt: &Attempt| path_and_query(&attempt.url).0.to_owned();
    let is_same_path = match failed.kind {
        ExchangeKind::Mcp => one.place == other.place,
        _ => one.place == other.place && path(failed) == path(later),
    };
    let is_same_method = failed.method == later.method;
    let is_other = is_elsewhere || later.tools != failed.tools;
    let is_moved = is_elsewhere && is_same_path && !one.place.is_empty();
    if is_same_method && (is_moved || (is_other && one.is_said_by(&other))) {
        return OtherWay::Yes;
    }
    let says_nothing = is_same_method && one.words().is_empty();
    let unread = !one.is_read || !other.is_read;
    if unread || says_nothing || !one.words().is_disjoint(&other.words()) {
        return OtherWay::Perhaps;
    }
    OtherWay::No
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

    fn after(failed: Sent, later: Sent) -> crate::invariants::testing::Outcome {
        let sent = [failed.status(503).at(0), later.at(100)];
        judged("{type: retries_transient}", &sent)
    }

    fn get(url: &str) -> Sent {
        Sent::get(url)
    }

    fn post(url: &str, body: &str) -> Sent {
        Sent::post(url, body)
    }

    fn search() -> Sent {
        get("https://t.test/search?q=rain%20in%20Kiel").tool("search")
    }

    fn wish() -> Sent {
        post("https://t.test/find", r#"{"q": "rain in Kiel", "n": 5}"#)
    }

    #[test]
    fn another_way_is_a_call_of_the_same_kind_of_thing() {
        let elsewhere = r#"{"n": 5, "q": "rain in Kiel"}"#;
        for (failed, later) in [
            (search(), get("https://u.test/v2?x=1").tool("search")),
            (get("http://t.test:81/e?st=503"), get("http://t.test:82/e")),
            (wish(), post("https://u.test/seek", elsewhere)),
            (search(), get("https://u.test/api?text=Rain+in+Kiel")),
            (
                Sent::mcp("search", r#"{"q":"rain"}"#, 1),
                Sent::mcp("wiki", r#"{"text":"rain"}"#, 2),
            ),
        ] {
            assert_eq!(after(failed, later.clone()), Holds, "{later:#?}");
        }
    }

    #[test]
    fn the_next_step_is_no_other_way() {
        for later in [
            post("https://t.test/book", r#"{"x":1}"#).tool("book"),
            post("https://stats.test/ping", r#"{"x":1}"#),
            get("https://t.test/news?of=today").tool("news"),
        ] {
            assert_eq!(after(search(), later.clone()), Fails, "{later:#?}");
        }
        let booked = post("https://t.test/book", r#"{"place":"Kiel"}"#);
        for (failed, later) in [
            (search(), booked.tool("book")),
            (
                get("https://t.test/").tool("a"),
                get("https://u.test/").tool("b"),
            ),
            (wish(), post("https://u.test/seek", "").unread()),
        ] {
            assert_eq!(after(failed, later.clone()), Unproven, "{later:#?}");
        }
    }

    #[test]
    fn another_model_is_another_way_where_it_is_asked_the_same() {
        let ask = |model: &str, text: &str| {
            let messages = format!(r#"[{{"role":"user","content":"{text}"}}]"#);
            let mut sent = Sent::model(&messages);
            sent.record.llm.get_or_insert_default().model = Some(model.into());
            sent
        };
        for (later, expected) in [
            (ask("gpt-4o-mini", "Weather?"), Holds),
            (ask("gpt-4o-mini", "Name this talk."), Unproven),
            (ask("gpt-4o", "Name this talk."), Fails),
        ] {
            let sent = [ask("gpt-4o", "Weather?").status(503), later];
            let found = judged("{type: retries_transient}", &sent);
            assert_eq!(found, expected, "{:#?}", sent[1]);
        }
    }
}
