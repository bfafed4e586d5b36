//! `tool_failure_acknowledged`: the agent reports a tool's failure to the model.
//!
//! The next model request after a failed call must contain a result of that tool that reports the failure. Its
//! structure or words from a short list decide ([`reported`]). If neither decides, `judge: model` uses the suite's
//! model. An agent whose retry succeeded has nothing to report.

mod phrases;
mod reported;

use serde_json::{Value, json};

use self::reported::{Reported, reported};
use super::{Narrow, holds, requested};
use crate::count::count;
use crate::invariants::model_judge::Judge;
use crate::invariants::words::quoted;
use crate::invariants::{Check, InvariantKind, Subject, Verdict};
use crate::trace::{Attempt, FailureClass, ModelTurn, ToolReport, Trace};

pub(super) const TOOL_FAILURE_ACKNOWLEDGED: InvariantKind =
    InvariantKind::wire("tool_failure_acknowledged", |fields| {
        let judge = Judge::read(fields);
        let narrow = Narrow::read(fields)?;
        Some(Check {
            needs_model: judge == Judge::Model,
            ..Check::new(move |subject| judged(subject, &narrow, judge))
        })
    });

const PASSES: &str = "It is a list of failed calls of tools: `tool`, `failure` (what happened), and `told` (what the \
    model that had asked for the call was then told of its result). It passes if of each of them the model was told, in \
    whatever words, that the call failed or that its result is missing or uncertain. It does not pass if a model was \
    told something else as if it were the result.";

fn judged(subject: &Subject<'_>, narrow: &Narrow, judge: Judge) -> Verdict {
    let trace = subject.trace;
    let turns = trace.turns();
    let (mut acknowledged, mut unread, mut gap, mut unclear) = (0_u64, false, None, Vec::new());
    for attempts in narrow.calls(trace) {
        let Some(last) = attempts.last().filter(|last| last.calls_a_tool()) else {
            continue;
        };
        let Some(failure) = &last.failure else {
            continue;
        };
        let ended = last.ended.unwrap_or(last.began);
        let asks = |turn: &&ModelTurn<'_>| turn.attempt.began >= ended && !turn.is_warm_up;
        let Some(turn) = turns.iter().find(asks) else {
            continue;
        };
        let before = turns.iter().rfind(|turn| turn.attempt.began < last.began);
        let hidden = |what: &str| {
            let (name, why, id) = (last.name(), &failure.why, &turn.attempt.id);
            Verdict::fails(format!("{name}: {why}, and {id} tells the model {what}")).at(last)
        };
        let reports = new_reports(&turns, turn, before, last);
        if turn.gap.is_some() && reports.iter().all(|report| report.tool.is_none()) {
            gap.clone_from(&turn.gap);
            continue;
        }
        if reports.is_empty() {
            if omits_results(trace, turn) {
                return hidden("no result at all of the calls that it requested");
            }
            unread = true;
            continue;
        }
        let answer = error_of(trace, last);
        let found: Vec<_> = reports.iter().map(|one| reported(one, &answer)).collect();
        let contents: Vec<_> = reports.iter().map(|report| &report.content).collect();
        if found.contains(&Some(Reported::Failure)) {
            acknowledged += 1;
        } else if let (false, Some(content)) = (found.contains(&None), contents.last()) {
            return hidden(&quoted(content));
        } else {
            unclear.push(json!({ "tool": last.name(), "failure": failure.why, "told": contents }));
        }
    }
    if let Some(gap) = gap {
        return Verdict::insufficient(gap);
    }
    if unread {
        return Verdict::insufficient(
            "what the model was told after a tool failed was not read, or names no result of that tool",
        );
    }
    if !unclear.is_empty() {
        let by_words = Verdict::insufficient(
            "neither structure nor words tell whether the model was told of a failure; `judge: model` asks the \
                 suite's model",
        );
        return judge.verdict(by_words, subject, PASSES, || Value::Array(unclear));
    }
    match acknowledged {
        0 => Verdict::insufficient("no tool failed before a model was called"),
        failures => holds(
            trace,
            format!("the model was told of {}", count(failures, "failure")),
        ),
    }
}

/// The text of a call's response, if it is a complete error.
fn error_of(trace: &Trace, attempt: &Attempt) -> String {
    let reported =
        (attempt.failure.as_ref()).is_some_and(|failure| failure.class == FailureClass::Reported);
    if !reported && attempt.status.is_none_or(|status| status < 400) {
        return String::new();
    }
    let answer = trace.exchange(attempt).response.as_ref();
    let body = answer.and_then(|answer| answer.body.as_ref());
    body.map(|body| String::from_utf8_lossy(&body.bytes).into_owned())
        .unwrap_or_default()
}

/// Whether a model that requested a call then gets neither a result nor words of a failure.
fn omits_results(trace: &Trace, turn: &ModelTurn<'_>) -> bool {
    let request = trace.exchange(turn.attempt).request.as_ref();
    let body = request.and_then(|request| request.body.as_ref());
    let Some(body) = body.filter(|body| body.whole && turn.reports.is_some()) else {
        return false;
    };
    let mut before = trace.attempts().iter();
    let requested = before.any(|attempt| {
        attempt.began < turn.attempt.began
            && requested::in_exchange(trace, attempt).next().is_some()
    });
    requested && !phrases::says(&String::from_utf8_lossy(&body.bytes))
}

/// The results that are new in a turn, also through the warm-up that it continues: those of the tool, or all if no
/// result names it.
fn new_reports<'a>(
    turns: &'a [ModelTurn<'a>],
    turn: &'a ModelTurn<'a>,
    before: Option<&'a ModelTurn<'a>>,
    attempt: &Attempt,
) -> Vec<&'a ToolReport> {
    let reports = |turn: &'a ModelTurn<'a>| turn.reports.iter().flatten();
    let known = before.into_iter().flat_map(|before| before.chain(turns));
    let known: Vec<_> = known.flat_map(reports).collect();
    let since = turn
        .chain(turns)
        .take_while(|turn| turn.attempt.began >= attempt.began);
    let new: Vec<_> = since
        .flat_map(reports)
        .filter(|report| !known.contains(report))
        .collect();
    let is_named = |report: &&&ToolReport| {
        let tool = report.tool.as_ref();
        tool.is_some_and(|tool| attempt.tools.contains(tool))
    };
    let named: Vec<_> = new.iter().filter(is_named).copied().collect();
    if named.is_empty() { new } else { named }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{judged, questions, reason};
    use crate::invariants::testing::Outcome::*;
    use crate::trace::testing::Sent;

    fn told(content: &str) -> Sent {
        let call = r#"{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"search","arguments":"{}"}}]}"#;
        Sent::model(&format!(
            r#"[{{"role":"user","content":"hi"}},{call},{{"role":"tool","tool_call_id":"c1","content":"{content}"}}]"#
        ))
    }

    #[test]
    #[rustfmt::skip]
    fn a_failure_is_told_and_not_hidden() {
        let search = |status| Sent::get("https://s.test/").tool("search").status(status);
        let written = "{type: tool_failure_acknowledged, tool: search}";
        for (sent, expected) in [
            (vec![search(503), told("HTTP 503 from search")], Holds),
            (vec![search(500), told("Error: the service is down")], Holds),
            (vec![search(503), told("The search is temporarily unavailable")], Holds),
            (vec![search(503), told("Sunny and 22 degrees")], Unproven),
            (vec![search(503), told(r#"{\"ok\": true, \"weather\": \"sunny\"}"#)], Fails),
            (vec![search(503).reset(), told("")], Fails),
            (vec![search(503), search(200), told("Sunny")], Unproven),
            (vec![search(200), told("Sunny")], Unproven),
            (
                vec![
                    search(200).injected("slow", serde_json::json!({})),
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
        let mut requested = Sent::model("[]");
        requested.record.llm.get_or_insert_default().tool_calls = vec!["search".into()];
        let failed = || Sent::get("https://s.test/").tool("search").status(503);
        let written = "{type: tool_failure_acknowledged}";
        for (messages, expected) in [
            (r#"[{"role":"user","content":"Weather?"}]"#, Fails),
            (
                r#"[{"role":"user","content":"The search failed"}]"#,
                Unproven,
            ),
        ] {
            let sent = [requested.clone(), failed(), Sent::model(messages)];
            assert_eq!(judged(written, &sent), expected, "{messages}");
        }
        // The agent need not report a call that the model did not request.
        let unasked = [failed(), Sent::model("[]")];
        assert_eq!(judged(written, &unasked), Unproven);
    }

    #[test]
    #[rustfmt::skip]
    fn a_turn_that_holds_only_what_is_new_is_read_with_what_it_continues() {
        let call = |id: &str, tool: &str| format!(r#"{{"type":"function_call","call_id":"{id}","name":"{tool}"}}"#);
        let calls = [call("c1", "search"), call("c2", "order")].join(",");
        let output = |id: &str, text: &str| {
            format!(r#"{{"type":"function_call_output","call_id":"{id}","output":"{text}"}}"#)
        };
        let asked = || {
            let mut asked = Sent::responses(r#""input":"Weather?""#, "resp_1", &calls);
            asked.record.llm.get_or_insert_default().tool_calls = vec!["search".into(), "order".into()];
            asked
        };
        let down = |tool: &str| Sent::get(&format!("https://{tool}.test/")).tool(tool).status(503);
        let next = |previous: &str, input: &str| {
            Sent::responses(&format!(r#"{previous},"input":[{input}]"#), "resp_2", "")
        };
        let (seen, unseen) = (r#""previous_response_id":"resp_1""#, r#""previous_response_id":"resp_9""#);
        let results = |search: &str| [output("c1", search), output("c2", "error: status 503")].join(",");
        let warm_up = |input: &str| Sent::responses(&format!(r#"{seen},"generate":false,"input":[{input}]"#), "resp_w", "");
        let user = r#"{"role":"user","content":"Go on"}"#;
        let written = "{type: tool_failure_acknowledged, tool: search}";
        let hidden = r#"{\"ok\": true, \"weather\": \"sunny\"}"#;
        let earlier = || next(seen, &results("error: status 503"));
        let again = |text: &str| next(r#""previous_response_id":"resp_2""#, &output("c3", text));
        let mut more = earlier();
        more = more.answer_body(&format!(r#"{{"id":"resp_2","output":[{}]}}"#, call("c3", "search")));
        for (sent, expected) in [
            // The other tool's failure is reported in any case.
            (vec![asked(), down("search"), next(seen, &results("HTTP 503"))], Holds),
            (vec![asked(), down("search"), next(seen, &results(hidden))], Fails),
            (vec![asked(), down("search"), next(seen, user)], Fails),
            (vec![asked(), down("search"), next(unseen, &output("c9", "HTTP 503"))], Unproven),
            (vec![asked(), down("search"), next(unseen, &output("c9", hidden))], Unproven),
            (vec![asked(), down("search"), next(unseen, user)], Unproven),
            (vec![asked(), down("search"), next(r#""conversation":"conv_1""#, user)], Unproven),
            // The answer with the call was seen.
            (vec![asked(), down("search"), next(r#""conversation":"conv_1""#, &results("HTTP 503"))], Holds),
            (vec![asked(), down("search"), next(r#""conversation":"conv_1""#, &results(hidden))], Fails),
            // A warm-up asks the model nothing.
            (vec![asked(), down("search"), warm_up(""), next(seen, &results("HTTP 503"))], Holds),
            (
                vec![
                    asked(), down("search"), warm_up(&results("HTTP 503")),
                    next(r#""previous_response_id":"resp_w""#, ""),
                ],
                Holds,
            ),
            (vec![asked(), down("search"), more.clone(), down("search"), again(hidden)], Fails),
            (vec![asked(), down("search"), more.clone(), down("search"), again("HTTP 503")], Holds),
            // The whole conversation, where its continuation was lost.
            (
                vec![
                    asked(), down("search"), more, down("search"),
                    Sent::responses(
                        &format!(r#""input":[{user},{calls},{},{},{}]"#, results("error: status 503"), call("c3", "search"), output("c3", hidden)),
                        "resp_3", "",
                    ),
                ],
                Fails,
            ),
        ] {
            assert_eq!(judged(written, &sent), expected, "{sent:#?}");
        }
        let sent = [asked(), down("search"), next(unseen, user)];
        assert_eq!(reason(written, &sent), "the conversation began before Squall saw it (x3 continues resp_9)");
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

    /// The outcome after a failed search with this report to the model.
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

    #[test]
    fn the_model_is_asked_where_structure_and_words_do_not_decide() {
        let search = || Sent::get("https://s.test/").tool("search").status(503);
        let sent = [search(), told("Sunny")];
        let asked = questions("{type: tool_failure_acknowledged, judge: model}", &sent);
        assert!(
            matches!(&asked[..], [prompt] if prompt.contains("Sunny")),
            "{asked:?}"
        );
        assert!(questions("{type: tool_failure_acknowledged}", &sent).is_empty());
        let clear = [search(), told("HTTP 503")];
        assert!(questions("{type: tool_failure_acknowledged, judge: model}", &clear).is_empty());
    }
}
