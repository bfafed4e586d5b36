//! Agents that keep state between invocations, seen where the same prompt was asked twice without chaos.

use super::Tried;
use crate::suite::Prompt;

/// Shortest answer that is looked for in a later request to a model, characters.
const SHORTEST: usize = 8;

/// A warning about an agent without a reset; `None`: nothing was asked twice, or both invocations were alike. `clean`:
/// the invocations without chaos, in order.
pub(super) fn warning<'r>(clean: impl Iterator<Item = &'r Tried<'r>>) -> Option<String> {
    let answered = clean.filter(|(_, asked)| asked.answer.error.is_none());
    let mut first: Vec<&Tried<'_>> = Vec::new();
    for second in answered {
        let (job, asked) = second;
        let Some((_, before)) = first
            .iter()
            .find(|(earlier, _)| earlier.prompt == job.prompt)
        else {
            first.push(second);
            continue;
        };
        let answer = before.answer.text.trim();
        let is_told = |request: std::borrow::Cow<'_, str>| {
            answer.chars().count() >= SHORTEST && request.contains(&json_text(answer))
        };
        if asked.trace.sent_to_models().any(is_told) {
            return Some(told(
                job.prompt,
                "a model request holds the agent's answer to an earlier invocation",
            ));
        }
        if asked.answer.text != before.answer.text {
            return Some(told(
                job.prompt,
                "two invocations without chaos gave different answers",
            ));
        }
    }
    None
}

/// A text as it stands in a JSON string.
fn json_text(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted.trim_matches('"').to_owned()
}

fn told(prompt: &Prompt, why: &str) -> String {
    let prompt = prompt.beginning();
    format!(
        "the agent is stateful or nondeterministic: prompt `{prompt}`: {why}; if it keeps state, configure \
         `agent.reset_endpoint`, `reset_function` or `reset_command`, or invocations depend on each other"
    )
}

#[cfg(test)]
mod tests {
    use super::super::Asked;
    use super::super::jobs::Job;
    use super::*;
    use crate::answer::Answer;
    use crate::trace::testing::{Sent, trace};

    #[test]
    fn g26_state_shows_where_a_prompt_is_asked_twice() {
        let asks = |content: &str| {
            Sent::model(&format!(r#"[{{"role": "user", "content": "{content}"}}]"#))
        };
        let fresh = || asks("Weather?");
        for (second, answer, expected) in [
            (fresh(), "It is \"sunny\".", None),
            (
                fresh(),
                "It is sunny, as I said.",
                Some("different answers"),
            ),
            (
                asks(r#"It is \"sunny\"."#),
                "It is \"sunny\".",
                Some("earlier invocation"),
            ),
        ] {
            let prompt = Prompt::single("Weather?");
            let tried = [(fresh(), "It is \"sunny\"."), (second, answer)].map(|(sent, answer)| {
                let asked = Asked {
                    trace: trace(&[sent]),
                    answer: Answer::of(answer),
                    ..Asked::default()
                };
                (Job::clean(0, &prompt), asked.into())
            });
            let found = warning(tried.iter());
            let fits =
                |expected: &str| found.as_ref().is_some_and(|found| found.contains(expected));
            assert!(expected.map_or(found.is_none(), fits), "{found:?}");
        }
        let (one, other) = (Prompt::single("Weather?"), Prompt::single("Time?"));
        let tried = [(&one, "sunny"), (&other, "late")].map(|(prompt, answer)| {
            let asked = Asked {
                answer: Answer::of(answer),
                ..Asked::default()
            };
            (Job::clean(0, prompt), asked.into())
        });
        assert_eq!(warning(tried.iter()), None);
    }
}
