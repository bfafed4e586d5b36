//! `tool_failure_acknowledged`: the model is told that a tool failed.
//!
//! The next model request after a failed call must carry a result of that tool that says so in some
//! way: a status, an error, a word for one. An agent that retried with success has nothing to tell.

use std::sync::LazyLock;

use regex::Regex;

use super::{Narrow, holds, wire, wishes};
use crate::invariants::words::quoted;
use crate::invariants::{Check, Kind, Subject, Verdict};
use crate::trace::{Attempt, ToolReport, Trace, Turn};

pub(super) const TOOL_FAILURE_ACKNOWLEDGED: Kind = wire("tool_failure_acknowledged", |fields| {
    Some(Box::new(Acknowledged(Narrow::read(fields)?)))
});

#[derive(Debug)]
struct Acknowledged(Narrow);

/// Words of failure, in what agents and frameworks tell their models.
static TELLS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r#"(?ix)
        \b(?:error|fail|unavailable|exception|traceback|time[d]?[\ -]?out|timeout|refused|denied|reset|unreachable
        |invalid|not\ found|could\ not|couldn'?t|cannot|can'?t|unable|no\ (?:data|result|answer|response)|broken
        |rate[\ -]limit|too\ many|try\ again|retry|aborted|disconnected|malformed|internal\ server)
        |\b[45]\d\d\b
        |"is_?error"\s*:\s*true|"status"\s*:\s*"(?:error|fail)"#,
    )
    .expect("a constant pattern")
});

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
            let Some(reports) = of_tool(turn, last) else {
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
            match reports
                .iter()
                .rev()
                .find(|report| !TELLS.is_match(&report.text))
            {
                Some(hides) if !reports.iter().any(|report| TELLS.is_match(&report.text)) => {
                    return Verdict::Fails(format!(
                        "{}: {}, and {} tells the model {}",
                        last.name(),
                        failure.why,
                        turn.attempt.id,
                        quoted(&hides.text)
                    ));
                }
                _ => told += 1,
            }
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
    (was_wished || WISH.is_match(&text)) && !TELLS.is_match(&text)
}

/// What the turn tells of the tool; of all tools where their names are not known. `None`: nothing.
fn of_tool<'a>(turn: &'a Turn<'_>, attempt: &Attempt) -> Option<Vec<&'a ToolReport>> {
    let reports = turn.reports.as_ref()?;
    let named = |report: &&ToolReport| {
        let tool = report.tool.as_deref();
        tool.is_some_and(|tool| attempt.tools.iter().any(|name| name == tool))
    };
    let mut found: Vec<_> = reports.iter().filter(named).collect();
    if found.is_empty() {
        found = reports.iter().collect();
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
}
