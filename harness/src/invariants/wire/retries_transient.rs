//! `retries_transient`: the agent retries after a transient failure, or uses a fallback.
//!
//! A fallback is the same call to another model, host or port, or a call of another tool with all data of the
//! failed one.

use std::collections::BTreeSet;
use std::time::Duration;

use squall_journal::record::Kind as ExchangeKind;

use super::{Narrow, failed_for, fails, holds, is_nameless};
use crate::count::count;
use crate::invariants::{Check, InvariantKind, Subject, Verdict};
use crate::trace::{Attempt, FailureClass, Trace};

/// `within_ms`, default 60000, 1 to a day.
pub(super) const RETRIES_TRANSIENT: InvariantKind =
    InvariantKind::wire("retries_transient", |fields| {
        let narrow = Narrow::read(fields);
        let about = "Within how many milliseconds; default 60000.";
        let within = fields.whole("within_ms", about, 1..=86_400_000, " milliseconds");
        let (narrow, within) = (narrow?, Duration::from_millis(within.unwrap_or(60_000)));
        Some(Check::new(move |subject| judged(subject, &narrow, within)))
    });

fn judged(subject: &Subject<'_>, narrow: &Narrow, within: Duration) -> Verdict {
    let trace = subject.trace;
    let mut failures = 0_u64;
    for attempts in narrow.calls(trace) {
        let mut failed = attempts.iter();
        let Some(first) = failed.find(|one| failed_for(one, FailureClass::Transient)) else {
            continue;
        };
        failures += 1;
        let follows = |later: &Attempt| {
            let pause = later.began.checked_sub(first.ended.unwrap_or(first.began));
            later.id != first.id && pause.is_some_and(|pause| pause <= within)
        };
        let is_fallback = |later: &Attempt| follows(later) && is_fallback(first, later, trace);
        if attempts.iter().any(|one| follows(one)) || trace.attempts().iter().any(is_fallback) {
            continue;
        }
        let why = first.failure.as_ref().map(|failure| failure.why.as_str());
        let reason = format!(
            "{}: {}, and neither a retry nor a fallback followed within {} ms",
            first.name(),
            why.unwrap_or_default(),
            within.as_millis()
        );
        if is_nameless(first) {
            let reason = format!("{reason}, as far as bodies were read");
            return Verdict::insufficient(reason).at(first);
        }
        return fails(trace, reason).at(first);
    }
    match failures {
        0 => Verdict::insufficient("there was no transient failure"),
        failures => holds(
            trace,
            format!("{} retried, or with a fallback", count(failures, "call")),
        ),
    }
}

fn is_fallback(failed: &Attempt, later: &Attempt, trace: &Trace) -> bool {
    let is_elsewhere = later.host_and_port != failed.host_and_port;
    match (failed.kind, later.kind) {
        (ExchangeKind::Llm, ExchangeKind::Llm) => is_elsewhere || later.model != failed.model,
        _ if !(failed.calls_a_tool() && later.calls_a_tool()) => false,
        _ if is_elsewhere && !failed.tools.is_empty() && later.tools == failed.tools => true,
        _ if is_elsewhere && (&failed.method, failed.path()) == (&later.method, later.path()) => {
            true
        }
        _ => {
            let data = folded(&trace.data(failed));
            let is_other = is_elsewhere || later.tools != failed.tools;
            is_other && !data.is_empty() && data.is_subset(&folded(&trace.data(later)))
        }
    }
}

/// Normalises values for comparison. Short ones are dropped, because they occur in many requests by chance.
fn folded(data: &BTreeSet<String>) -> BTreeSet<String> {
    let data = data.iter().filter(|value| value.chars().count() >= 3);
    data.map(|value| value.to_lowercase()).collect()
}

#[cfg(test)]
mod tests {
    use squall_journal::record::Outcome;

    use super::super::testing::judged;
    use crate::invariants::testing::Outcome::*;
    use crate::trace::testing::Sent;

    #[test]
    fn a_retry_or_a_fallback_is_required() {
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

    fn find() -> Sent {
        post("https://t.test/find", r#"{"q": "rain in Kiel", "n": 5}"#)
    }

    #[test]
    fn a_fallback_gets_the_same_call_or_all_its_data() {
        let elsewhere = r#"{"n": 5, "q": "rain in Kiel"}"#;
        for (failed, later) in [
            (search(), get("https://u.test/v2?x=1").tool("search")),
            (get("http://t.test:81/e?st=503"), get("http://t.test:82/e")),
            (find(), post("https://u.test/seek", elsewhere)),
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
    fn the_next_step_is_no_fallback() {
        for later in [
            post("https://t.test/book", r#"{"x":1}"#).tool("book"),
            post("https://stats.test/ping", r#"{"x":1}"#),
            get("https://t.test/news?of=today").tool("news"),
            post("https://t.test/book", r#"{"place":"Kiel"}"#).tool("book"),
            Sent::model("[]"),
        ] {
            assert_eq!(after(search(), later.clone()), Fails, "{later:#?}");
        }
        let ask = |model: &str| {
            let mut sent = Sent::model("[]");
            sent.record.llm.get_or_insert_default().model = Some(model.into());
            sent
        };
        for (later, expected) in [
            (ask("gpt-4o-mini"), Holds),
            (Sent::mcp("ask", "{}", 1), Fails),
        ] {
            assert_eq!(after(ask("gpt-4o"), later.clone()), expected, "{later:#?}");
        }
    }
}
