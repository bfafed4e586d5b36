//! `tool_failure_acknowledged`: the model is told that a tool failed.
//!
//! The next model request after a failed call must carry a result of that tool that owns up to it, by its
//! structure or in words of a short list ([`told`]); what neither tells, `judge: model` asks the suite's model. An
//! agent that retried with success has nothing to tell.

mod phrases;
mod told;

use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Value, json};

use self::told::Told;
use super::{Narrow, holds, wire, wishes};
use crate::invariants::model_judge::{Judge, question};
use crate::invariants::words::quoted;
use crate::invariants::{Check, Kind, Subject, Verdict};
use crate::outside::Question;
use crate::trace::{Attempt, Class, ToolReport, Trace, Turn};

pub(super) const TOOL_FAILURE_ACKNOWLEDGED: Kind = wire("tool_failure_acknowledged", |fields| {
    let judge = Judge::read(fields);
    let narrow = Narrow::read(fields)?;
    Some(Box::new(Acknowledged { narrow, judge }))
});

#[derive(Debug)]
struct Acknowledged {
    narrow: Narrow,
    judge: Judge,
}

const PASSES: &str = "It is a list of failed calls of tools: `tool`, `failure` (what happened), and `told` (what the \
    model that had asked for the call was then told of its result). It passes if of each of them the model was told, in \
    whatever words, that the call failed or that its result is missing or uncertain. It does not pass if a model was \
    told something else as if it were the result.";

/// What the model was told of the calls that failed.
#[derive(Debug, Default)]
struct Failures {
    /// Calls of which it was told that they failed.
    told: usize,
    /// Why one of them was hidden from it.
    hidden: Option<String>,
    /// Why nobody knows of another.
    unread: bool,
    /// What was told of those whose words do not tell, for a model to judge.
    unclear: Vec<Value>,
}

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
    fn asks(&self, subject: &Subject<'_>) -> Vec<Question> {
        let failures = self.failures(subject.trace);
        if !failures.are_unclear() {
            return Vec::new();
        }
        let by_words = by_words(&failures, subject.trace);
        self.judge.asks(&by_words, || failures.question())
    }

    fn judge(&self, subject: &Subject<'_>) -> Verdict {
        let failures = self.failures(subject.trace);
        let by_words = by_words(&failures, subject.trace);
        if !failures.are_unclear() {
            return by_words;
        }
        self.judge.judge(by_words, subject, || failures.question())
    }

    fn needs_model(&self) -> bool {
        self.judge == Judge::Model
    }
}

impl Failures {
    /// Whether a model could tell what words do not.
    fn are_unclear(&self) -> bool {
        !self.unread && !self.unclear.is_empty()
    }

    fn question(&self) -> Question {
        question(PASSES, &Value::Array(self.unclear.clone()))
    }
}

fn by_words(failures: &Failures, trace: &Trace) -> Verdict {
    let insufficient = |reason: &str| Verdict::Insufficient(reason.to_owned());
    match failures {
        Failures {
            hidden: Some(hidden),
            ..
        } => Verdict::Fails(hidden.clone()),
        Failures { unread: true, .. } => insufficient(
            "what the model was told after a tool failed was not read, or names no result of that tool",
        ),
        Failures { unclear, .. } if !unclear.is_empty() => insufficient(
            "neither structure nor words tell whether the model was told of a failure; `judge: model` asks the \
             suite's model",
        ),
        Failures { told: 0, .. } => insufficient("no tool failed before a model was asked"),
        Failures { told, .. } => holds(trace, format!("the model was told of {told} failures")),
    }
}

impl Acknowledged {
    fn failures(&self, trace: &Trace) -> Failures {
        let turns = trace.turns();
        let mut failures = Failures::default();
        for attempts in self.narrow.calls(trace) {
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
            let hidden = |what: String| {
                let (name, why, id) = (last.name(), &failure.why, &turn.attempt.id);
                Some(format!("{name}: {why}, and {id} tells the model {what}"))
            };
            let Some(reports) = of_tool(turn, before, last) else {
                if leaves_out(trace, turn) {
                    let what = "of no result at all of what it wished to call";
                    failures.hidden = failures.hidden.or_else(|| hidden(what.to_owned()));
                } else {
                    failures.unread = true;
                }
                continue;
            };
            let answer = answer_of(trace, last);
            let found: Vec<_> = reports
                .iter()
                .map(|report| told::told(report, &answer))
                .collect();
            if found.contains(&Told::Failure) {
                failures.told += 1;
            } else if let (false, Some(hides)) = (found.contains(&Told::Unclear), reports.last()) {
                failures.hidden = failures.hidden.or_else(|| hidden(quoted(&hides.content)));
            } else {
                let contents: Vec<_> = reports.iter().map(|report| &report.content).collect();
                failures.unclear.push(json!({
                    "tool": last.name(), "failure": failure.why, "told": contents,
                }));
            }
        }
        failures
    }
}

/// The text of a call's answer, if that is an error and not half of something else.
fn answer_of(trace: &Trace, attempt: &Attempt) -> String {
    let reported =
        (attempt.failure.as_ref()).is_some_and(|failure| failure.class == Class::Reported);
    if !reported && attempt.status.is_none_or(|status| status < 400) {
        return String::new();
    }
    let answer = trace.exchange(attempt).response.as_ref();
    let body = answer.and_then(|answer| answer.body.as_ref());
    body.map(|body| String::from_utf8_lossy(&body.bytes).into_owned())
        .unwrap_or_default()
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
    (was_wished || WISH.is_match(&text)) && !phrases::says(&text)
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
    use super::*;
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
            (vec![search(503), told("Sunny and 22 degrees")], Unproven),
            (
                vec![
                    search(503),
                    told(r#"{\"ok\": true, \"weather\": \"sunny\"}"#),
                ],
                Fails,
            ),
            (vec![search(503).reset(), told("")], Fails),
            (vec![search(503), search(200), told("Sunny")], Unproven),
            (vec![search(200), told("Sunny")], Unproven),
            (
                vec![
                    search(200).injected("slow", json!({})),
                    told(r#"{\"ok\": true, \"weather\": \"sunny\"}"#),
                ],
                Unproven,
            ),
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
        assert_eq!(judged(written, &[failed.clone(), told("")]), Fails);
        assert_eq!(
            judged(written, &[failed.clone(), told("42 hits")]),
            Unproven
        );
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
    fn structure_and_a_short_list_of_words_tell() {
        let failed = || Sent::get("https://s.test/").status(503);
        for (content, expected) in [
            (r#"{"ok": true, "error": null, "weather": "sunny"}"#, Fails),
            (r#"{"errors": [], "data": {"weather": "sunny"}}"#, Fails),
            (r#"{"failed": false, "status": 200, "hits": ["a"]}"#, Fails),
            ("[]", Fails),
            ("null", Fails),
            ("Kiel: hotel room for 503 EUR", Unproven),
            ("No errors. Sunny in Kiel.", Unproven),
            (
                "0 errors, no failures: Kiel is sunny. The search did not fail.",
                Unproven,
            ),
            ("The Failsafe umbrella is in stock, 20 EUR", Unproven),
            ("Sorry, Kiel later", Unproven),
            ("การค้นหาอากาศวันนี้", Unproven),
            ("The search service is down right now.", Holds),
            ("search did not work", Holds),
            ("Service temporarily overloaded", Holds),
            (r#"{"success": false}"#, Holds),
            (r#"{"ok": false, "message": "later"}"#, Holds),
            (r#"{"ok": true, "data": {"error": "no such town"}}"#, Holds),
            (r#"{"result": {"is_error": true}}"#, Holds),
            (r#"{"status_code": 503, "body": ""}"#, Holds),
            (r#"{"status": "failed"}"#, Holds),
            ("SEARCH_OUTAGE", Holds),
            ("got code 503 from the search", Holds),
            ("HTTPStatusError('https://s.test/')", Holds),
            ("read ECONNRESET", Holds),
        ] {
            assert_eq!(after(failed(), content), expected, "{content}");
        }
    }

    #[test]
    fn the_tools_own_error_hides_nothing_and_half_an_answer_may() {
        let said = r#"{"detail": "cat sits on the cable"}"#;
        let failed = || Sent::get("https://s.test/").status(500).answer_body(said);
        assert_eq!(after(failed(), &format!("search: {said}")), Holds);
        let found = r#"{"weather": "light rain until noon"}"#;
        let cut = Sent::get("https://s.test/").answer_body(found).cut();
        assert_eq!(after(cut, found), Unproven);
    }

    #[test]
    fn the_model_is_asked_what_words_do_not_tell() {
        let failures = Failures {
            unclear: vec![json!({ "tool": "search", "failure": "503", "told": ["Sunny"] })],
            ..Failures::default()
        };
        let words = by_words(&failures, &Trace::default());
        assert!(failures.are_unclear() && matches!(words, Verdict::Insufficient(_)));
        let asked = Judge::Model.asks(&words, || failures.question());
        assert!(matches!(&asked[..], [Question::Model { prompt, .. }] if prompt.contains("Sunny")));
        assert!(Judge::Words.asks(&words, || failures.question()).is_empty());
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
        assert_eq!(judged(written, &sent("")), Fails);
        assert_eq!(judged(written, &sent("error: status 503")), Holds);
    }
}
