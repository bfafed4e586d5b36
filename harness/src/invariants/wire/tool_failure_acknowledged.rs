//! `tool_failure_acknowledged`: the model is told that a tool failed.
//!
//! The next model request after a failed call must carry a result of that tool that owns up to it ([`told`]).
//! An agent that retried with success has nothing to tell.

mod phrases;
mod told;

use std::sync::LazyLock;

use regex::Regex;

use self::told::{Failed, Told};
use super::{Narrow, holds, wire, wishes};
use crate::invariants::words::quoted;
use crate::invariants::{Check, Kind, Subject, Verdict};
use crate::trace::{Attempt, Class, ToolReport, Trace, Turn};

pub(super) const TOOL_FAILURE_ACKNOWLEDGED: Kind = wire("tool_failure_acknowledged", |fields| {
    Some(Box::new(Acknowledged(Narrow::read(fields)?)))
});

#[derive(Debug)]
struct Acknowledged(Narrow);

/// A model's wish to call a tool, as the requests of all dialects repeat it.
static WISH: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r#"(?x)
        "tool_calls"\s*:\s*\[\s*\{
        | "type"\s*:\s*"(?:tool_use|function_call)"
        | "(?:functionCall|toolUse)"\s*:
        "#,
    )
    .expect("a constant pattern")
});

impl Check for Acknowledged {
    fn judge(&self, subject: &Subject<'_>) -> Verdict {
        let turns = subject.trace.turns();
        let mut told = 0;
        let mut unread = false;
        let mut unclear = None;
        for attempts in self.0.calls(subject.trace) {
            let Some(last) = attempts.last().filter(|last| last.calls_a_tool()) else {
                continue;
            };
            let Some(failure) = &last.failure else {
                continue;
            };
            let ended = last.ended.unwrap_or(last.began);
            let Some(turn) = turns.iter().find(|turn| turn.attempt.began >= ended) else {
                continue;
            };
            let before = turns.iter().rfind(|turn| turn.attempt.began < last.began);
            let Some(reports) = of_tool(turn, before, last) else {
                if leaves_out(subject.trace, turn) {
                    return Verdict::Fails(format!(
                        "{}: {}, and {} tells the model of no result at all of what it wished to call",
                        last.name(),
                        failure.why,
                        turn.attempt.id
                    ));
                }
                unread = true;
                continue;
            };
            let failed = failed(subject.trace, last, turn);
            let found: Vec<_> = reports
                .iter()
                .map(|report| told::told(report, &failed))
                .collect();
            match reports.last() {
                _ if found.contains(&Told::Failure) => told += 1,
                Some(hides) if !found.contains(&Told::Unknown) => {
                    return Verdict::Fails(format!(
                        "{}: {}, and {} tells the model {}",
                        last.name(),
                        failure.why,
                        turn.attempt.id,
                        quoted(&hides.content)
                    ));
                }
                Some(_) | None => {
                    unclear = Some(format!(
                        "{}: {}; whether {} tells the model so cannot be known from its words",
                        last.name(),
                        failure.why,
                        turn.attempt.id
                    ));
                }
            }
        }
        if let Some(reason) = unclear {
            return Verdict::Insufficient(reason);
        }
        match (told, unread) {
            (_, true) => {
                let reason = "what the model was told after a tool failed was not read, or names no \
                              result of that tool";
                Verdict::Insufficient(reason.to_owned())
            }
            (0, false) => {
                Verdict::Insufficient("no tool failed before a model was asked".to_owned())
            }
            (told, false) => holds(
                subject.trace,
                format!("the model was told of {told} failures"),
            ),
        }
    }
}

/// Whether a model that wished a call is then told of no result, nor in any words of a failure.
fn leaves_out(trace: &Trace, turn: &Turn<'_>) -> bool {
    let request = trace.exchange(turn.attempt).request.as_ref();
    let body = request.and_then(|request| request.body.as_ref());
    let Some(body) = body.filter(|body| body.whole && turn.reports.is_some()) else {
        return false;
    };
    let mut before = trace
        .attempts()
        .iter()
        .filter(|attempt| attempt.began < turn.attempt.began);
    let text = String::from_utf8_lossy(&body.bytes);
    let was_wished = before.any(|attempt| wishes::of_exchange(trace, attempt).next().is_some());
    let is_told = phrases::says(&text) || phrases::hints(&text);
    (was_wished || WISH.is_match(&text)) && !is_told
}

/// What is known of a failed call when the model is told of it.
fn failed(trace: &Trace, attempt: &Attempt, turn: &Turn<'_>) -> Failed {
    let answer = |attempt: &Attempt| {
        let answer = trace.exchange(attempt).response.as_ref()?;
        let body = answer.body.as_ref()?;
        Some(told::texts(&String::from_utf8_lossy(&body.bytes)))
    };
    let others = trace.attempts().iter().filter(|one| {
        one.calls_a_tool() && one.failure.is_none() && one.began < turn.attempt.began
    });
    let is_reported =
        (attempt.failure.as_ref()).is_some_and(|failure| failure.class == Class::Reported);
    Failed {
        status: attempt.status,
        answer: answer(attempt).unwrap_or_default(),
        is_error: is_reported || attempt.status.is_some_and(|status| status >= 400),
        others: others.filter_map(answer).collect(),
    }
}

/// What the turn tells of the tool that the one before it did not; of all tools where their names are not known.
/// `None`: nothing.
fn of_tool<'a>(
    turn: &'a Turn<'_>,
    before: Option<&Turn<'_>>,
    attempt: &Attempt,
) -> Option<Vec<&'a ToolReport>> {
    let known = before.and_then(|before| before.reports.as_deref());
    let is_new = |report: &&ToolReport| !known.is_some_and(|known| known.contains(report));
    let new = || turn.reports.iter().flatten().filter(is_new);
    let named = |report: &&ToolReport| {
        let tool = report.tool.as_deref();
        tool.is_some_and(|tool| attempt.tools.iter().any(|name| name == tool))
    };
    let mut found: Vec<_> = new().filter(named).collect();
    if found.is_empty() {
        found = new().collect();
    }
    (!found.is_empty()).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::super::testing::judged;
    use crate::invariants::testing::Outcome::*;
    use crate::trace::testing::Sent;

    fn told(content: &str) -> Sent {
        let call = r#"{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"search","arguments":"{}"}}]}"#;
        Sent::model(&format!(
            r#"[{{"role":"user","content":"hi"}},{call},{{"role":"tool","tool_call_id":"c1","content":"{content}"}}]"#
        ))
    }

    #[test]
    fn a_failure_is_told_and_not_hidden() {
        let search = |status| Sent::get("https://s.test/").tool("search").status(status);
        let written = "{type: tool_failure_acknowledged, tool: search}";
        for (sent, expected) in [
            (vec![search(503), told("HTTP 503 from search")], Holds),
            (vec![search(500), told("Error: the service is down")], Holds),
            (
                vec![search(503), told("The search is temporarily unavailable")],
                Holds,
            ),
            (vec![search(503), told("Sunny and 22 degrees")], Fails),
            (vec![search(503).reset(), told("")], Fails),
            (vec![search(503), search(200), told("Sunny")], Unproven),
            (vec![search(200), told("Sunny")], Unproven),
            (vec![search(503)], Unproven),
            (vec![search(503), Sent::model("[]").unread()], Unproven),
        ] {
            assert_eq!(judged(written, &sent), expected, "{sent:#?}");
        }
    }

    #[test]
    fn leaving_the_result_out_is_hiding_it() {
        let mut wished = Sent::model("[]");
        wished.record.llm.get_or_insert_default().tool_calls = vec!["search".into()];
        let failed = || Sent::get("https://s.test/").tool("search").status(503);
        let written = "{type: tool_failure_acknowledged}";
        for (messages, expected) in [
            (r#"[{"role":"user","content":"Weather?"}]"#, Fails),
            (
                r#"[{"role":"user","content":"The search failed"}]"#,
                Unproven,
            ),
        ] {
            let sent = [wished.clone(), failed(), Sent::model(messages)];
            assert_eq!(judged(written, &sent), expected, "{messages}");
        }
        let repeated = r#"[{"role":"user","content":"Weather?"},{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"search","arguments":"{}"}}]}]"#;
        assert_eq!(judged(written, &[failed(), Sent::model(repeated)]), Fails);
        // Nobody knows whether the model is to hear of a call that it did not wish.
        let unasked = [failed(), Sent::model("[]")];
        assert_eq!(judged(written, &unasked), Unproven);
    }

    #[test]
    fn what_an_mcp_server_says_of_a_failure_counts() {
        let failed = Sent::mcp("search", "{}", 1)
            .answer_body(r#"{"jsonrpc":"2.0","id":1,"result":{"isError":true,"content":[]}}"#);
        let written = "{type: tool_failure_acknowledged}";
        assert_eq!(judged(written, &[failed.clone(), told("42 hits")]), Fails);
        assert_eq!(judged(written, &[failed, told("the tool failed")]), Holds);
    }

    /// Search failed so, and this was told of it.
    fn after(failed: Sent, content: &str) -> crate::invariants::testing::Outcome {
        let content = serde_json::to_string(content).expect("a string");
        let told = told(content.trim_matches('"'));
        judged(
            "{type: tool_failure_acknowledged}",
            &[failed.tool("search"), told],
        )
    }

    #[test]
    fn what_is_made_up_is_no_failure_that_is_told() {
        for content in [
            r#"{"ok": true, "error": null, "weather": "sunny"}"#,
            r#"{"errors": [], "data": {"weather": "sunny"}}"#,
            r#"{"error": "", "failed": false, "status": 200, "hits": ["a"]}"#,
            r#"{"error": "none", "hits": 2}"#,
            "Kiel: hotel room for 499 EUR",
            "Kiel: hotel room for 503 EUR",
            "Sunny in Kiel. Found 5 results in 412 ms.",
            "The Failsafe umbrella is in stock, 20 EUR",
            "No errors. Sunny in Kiel.",
            "0 errors, no failures: Kiel is sunny. The search did not fail.",
            "[]",
            "null",
        ] {
            assert_eq!(
                after(Sent::get("https://s.test/").status(503), content),
                Fails,
                "{content}"
            );
        }
    }

    #[test]
    fn a_failure_is_told_in_many_ways() {
        for content in [
            "The search service is down right now.",
            "search did not work",
            "Service temporarily overloaded (HTTP status Service-Unavailable)",
            r#"{"success": false}"#,
            r#"{"ok": false, "message": "search is currently offline"}"#,
            r#"{"result": {"is_error": true}}"#,
            r#"{"status_code": 503, "body": ""}"#,
            r#"{"status": "failed"}"#,
            "SEARCH_OUTAGE",
            "503",
            "got 503 from the search",
            "HTTPStatusError('https://s.test/')",
            "read ECONNRESET",
            "Die Suche ist derzeit leider nicht erreichbar.",
            "Le service de recherche est indisponible pour le moment.",
            "El servicio no está disponible.",
            "Il servizio non è raggiungibile.",
            "A pesquisa falhou.",
            "De zoekdienst is niet bereikbaar.",
            "Сервис недоступен.",
            "検索サービスは利用できません。",
            "搜索服务不可用",
        ] {
            assert_eq!(
                after(Sent::get("https://s.test/").status(503), content),
                Holds,
                "{content}"
            );
        }
        let said = Sent::get("https://s.test/")
            .status(500)
            .answer_body(r#"{"detail": "cat sits on the cable"}"#);
        assert_eq!(after(said.clone(), "search: Cat sits on the cable"), Holds);
        assert_eq!(after(said, "search: sunny in Kiel today"), Fails);
    }

    #[test]
    fn what_cannot_be_read_proves_nothing() {
        let found = r#"{"weather": "light rain until noon"}"#;
        for (failed, content) in [
            (Sent::get("https://s.test/").status(503), "n/a"),
            (Sent::get("https://s.test/").status(503), "การค้นหาอากาศวันนี้"),
            (
                Sent::get("https://s.test/").status(503),
                "Sorry, Kiel later",
            ),
            (Sent::get("https://s.test/").answer_body(found).cut(), found),
        ] {
            assert_eq!(after(failed, content), Unproven, "{content}");
        }
        // From elsewhere, and so not made up.
        let other = Sent::get("https://other.test/")
            .tool("wiki")
            .answer_body(found);
        let sent = [
            Sent::get("https://s.test/").tool("search").status(503),
            other,
            told("light rain until noon"),
        ];
        assert_eq!(judged("{type: tool_failure_acknowledged}", &sent), Unproven);
    }

    #[test]
    fn an_earlier_failure_that_was_told_says_nothing_of_a_later_one() {
        let search = || Sent::get("https://s.test/?q=1").tool("search").status(503);
        let call = |id: &str| {
            format!(
                r#"{{"role":"assistant","tool_calls":[{{"id":"{id}","type":"function","function":{{"name":"search","arguments":"{{}}"}}}}]}}"#
            )
        };
        let result = |id: &str, text: &str| {
            format!(r#"{{"role":"tool","tool_call_id":"{id}","content":"{text}"}}"#)
        };
        let first = [call("c1"), result("c1", "error: status 503")].join(",");
        let both =
            |text: &str| Sent::model(&format!("[{first},{},{}]", call("c2"), result("c2", text)));
        let sent = |text: &str| {
            let again = Sent::get("https://s.test/?q=2").tool("search").status(503);
            [
                search(),
                Sent::model(&format!("[{first}]")),
                again,
                both(text),
            ]
        };
        let written = "{type: tool_failure_acknowledged}";
        assert_eq!(judged(written, &sent("Sunny and 22 degrees")), Fails);
        assert_eq!(judged(written, &sent("error: status 503")), Holds);
    }
}
