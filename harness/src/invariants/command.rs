//! `command`: a program of the suite judges the answer.
//!
//! The program reads one JSON document on stdin: the prompt, the answer, the clean answer, the active chaos and the
//! traffic. It writes one document on stdout: `{"holds": true | false | null, "reason": "…"}`; `null` means
//! insufficient evidence.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Check, InvariantKind, Subject, Verdict};
use crate::answer::AgentAnswer;
use crate::outside::Question;
use crate::reach::{SeenExchange, SeenMessage};

/// `command`: the program and its arguments; `timeout_ms` 100 to 300000, default 10000.
pub(super) const COMMAND: InvariantKind = InvariantKind::answer("command", |fields| {
    let what = "the program and its arguments, like `[python, check.py]`";
    let empty = format!("the list is empty; write {what}");
    let command = fields.field("command", "The program and its arguments.", |value| {
        value.some(what, &empty, |value| value.text())
    });
    let about = "How long it may take, milliseconds; default 10000.";
    let timeout = fields.whole("timeout_ms", about, 100..=300_000, " milliseconds");
    fields.require("command", what);
    let command: Vec<_> = command?.into_iter().map(|word| word.value).collect();
    let within = Duration::from_millis(timeout.unwrap_or(10_000));
    Some(Check {
        starts_a_program: true,
        ..Check::new(move |subject| judged(subject, &command, within))
    })
});

/// Longest part of a body in the program's input, in bytes.
const BODY: usize = 64 << 10;

/// The program's output.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CommandOutput {
    #[serde(deserialize_with = "Option::deserialize")]
    holds: Option<bool>,
    reason: String,
}

fn judged(subject: &Subject<'_>, command: &[String], within: Duration) -> Verdict {
    let question = Question::Program {
        command: command.to_owned(),
        input: input(subject).to_string(),
        within,
    };
    let output = match subject.replies.text(&question) {
        Ok(output) => output,
        Err(why) => return Verdict::error(why),
    };
    match serde_json::from_str(output) {
        Ok(CommandOutput { holds, reason }) => match holds {
            Some(holds) => Verdict::of(holds, reason),
            None => Verdict::insufficient(reason),
        },
        Err(error) => Verdict::error(format!(
            "what the program says is no verdict ({error}); it is to print \
             {{\"holds\": true, \"reason\": \"…\"}} and nothing else"
        )),
    }
}

fn input(subject: &Subject<'_>) -> Value {
    let exchanges = subject.trace.attempts().iter();
    let exchanges = exchanges.map(|attempt| exchange(subject.trace.exchange(attempt)));
    json!({
        "prompt": subject.prompt.turns(),
        "answer": answer(subject.answer),
        "baseline": subject.baseline.map(|clean| answer(clean.answer)),
        "chaos": {
            "network_faults": subject.active.network,
            "tool_faults": subject.active.tool,
            "llm_faults": subject.active.llm,
            "context_attacks": subject.active.context,
            "conversation_faults": subject.active.conversation,
        },
        "exchanges": exchanges.collect::<Vec<_>>(),
        "lost": subject.trace.lost(),
    })
}

fn answer(answer: &AgentAnswer) -> Value {
    json!({
        "text": answer.text,
        "error": answer.error,
        "latency_ms": answer.latency.as_secs_f64() * 1000.0,
    })
}

fn exchange(seen: &SeenExchange) -> Value {
    json!({
        "record": seen.record,
        "request": seen.request.as_ref().map(message),
        "response": seen.response.as_ref().map(message),
    })
}

fn message(message: &SeenMessage) -> Value {
    let body = message.body.as_ref().map(|body| {
        let kept = &body.bytes[..body.bytes.len().min(BODY)];
        json!({
            "text": String::from_utf8_lossy(kept),
            "whole": body.whole && kept.len() == body.bytes.len(),
        })
    });
    json!({ "headers": message.headers, "body": body })
}

#[cfg(test)]
mod tests {
    use crate::invariants::testing::{Outcome, Outcome::*, asked_outside, errors_of};

    async fn judged(script: &str) -> (Outcome, String) {
        let script = serde_json::json!(script);
        let written = format!("{{type: command, timeout_ms: 20000, command: [sh, -c, {script}]}}");
        asked_outside("", &written, "the answer").await
    }

    #[tokio::test]
    #[rustfmt::skip]
    async fn its_word_is_the_verdict() {
        for (script, expected, reason) in [
            (r#"echo '{"holds": true, "reason": "fine"}'"#, Holds, "fine"),
            (r#"echo '{"holds": false, "reason": "rude"}'"#, Fails, "rude"),
            (r#"echo '{"holds": null, "reason": "who knows"}'"#, Unproven, "who knows"),
            (r#"echo '{"holds": true}'"#, Errs, "no verdict"),
            (r#"echo '{"reason": "fine"}'"#, Errs, "no verdict"),
            (r#"echo '{"holds": true, "reason": "x", "score": 1}'"#, Errs, "no verdict"),
            ("echo yes", Errs, "no verdict"),
            ("true", Errs, "no verdict"),
            ("echo broken >&2; exit 3", Errs, "exit status: 3: broken"),
        ] {
            let (found, told) = judged(script).await;
            assert_eq!(found, expected, "{script}: {told}");
            assert!(told.contains(reason), "{script}: {told}");
        }
    }

    #[tokio::test]
    async fn it_reads_what_was_asked_and_answered() {
        let script = r#"grep -q '"prompt":\["hello"\],"answer":{"text":"the answer","error":null' &&
                        echo '{"holds": true, "reason": "seen"}'"#;
        assert_eq!(judged(script).await.0, Holds);
    }

    #[tokio::test]
    async fn one_that_hangs_is_ended_and_one_that_is_not_there_is_told() {
        let hangs = "{type: command, timeout_ms: 100, command: [sh, -c, 'sleep 600 & sleep 600']}";
        let (found, told) = asked_outside("", hangs, "x").await;
        assert_eq!(found, Errs);
        assert!(told.contains("within 100 ms, and was ended"), "{told}");
        let gone = "{type: command, command: [/no/such/program]}";
        let (found, told) = asked_outside("", gone, "x").await;
        assert_eq!(found, Errs);
        assert!(
            told.contains("`/no/such/program` could not be started"),
            "{told}"
        );
    }

    #[test]
    fn a_program_is_named() {
        for (written, said) in [
            ("{type: command}", "`command` is missing"),
            ("{type: command, command: []}", "the list is empty"),
            (
                "{type: command, command: [x], timeout_ms: 1}",
                "100 to 300000",
            ),
        ] {
            let errors = errors_of(written);
            assert!(errors[0].contains(said), "{errors:?}");
        }
    }
}
