//! Warnings that limit what a run proves, one sentence each; `None` if a warning does not apply.

use std::borrow::Cow;

use super::JobResult;
use crate::prompt::Prompt;
use crate::reach::Late;

/// The agent fails without chaos.
pub(super) fn fails_without_chaos(clean: &[JobResult<'_>]) -> Option<String> {
    let failed = clean
        .iter()
        .filter_map(|(job, result)| Some((job.prompt.beginning(), result.failure()?)));
    let failed: Vec<_> = failed.collect();
    let (prompt, why) = failed.first()?;
    Some(format!(
        "{} of {} prompts fail without chaos, so results under chaos say little about them: `{prompt}`: {why}",
        failed.len(),
        clean.len()
    ))
}

/// Whether every clean invocation failed.
pub(super) fn fails_always(clean: &[JobResult<'_>]) -> bool {
    let fails = |(_, result): &JobResult<'_>| result.failure().is_some();
    !clean.is_empty() && clean.iter().all(fails)
}

/// Invocations were retried because the answer broke off.
pub(super) fn breaks_off<'r>(results: impl Iterator<Item = &'r JobResult<'r>>) -> Option<String> {
    let (mut invocations, mut again) = (0, Vec::new());
    for (job, result) in results {
        invocations += 1;
        again.extend((result.tries > 1).then_some(job));
    }
    let prompt = again.first()?.prompt.beginning();
    Some(format!(
        "{} of {invocations} invocations were done again, since their answer broke off and no fault had been applied, \
         `{prompt}` the first; `advanced.retries: 0` judges the first answer",
        again.len()
    ))
}

/// Calls arrived after their invocation had ended.
pub(super) fn calls_late<'r>(
    late: &Late,
    mut results: impl Iterator<Item = &'r JobResult<'r>>,
) -> Option<String> {
    let calls = match late.count {
        0 => return None,
        1 => "1 call".to_owned(),
        more => format!("{more} calls"),
    };
    let first = late.first.as_ref().map(|first| {
        let of = results.find(|(_, result)| result.place.scope == first.scope);
        let of = of.map(|(job, _)| format!(" of `{}`", job.prompt.beginning()));
        let (method, url, exchange) = (&first.method, &first.url, &first.exchange);
        format!(
            ", {method} {url}{} the first (exchange {exchange})",
            of.unwrap_or_default()
        )
    });
    Some(format!(
        "{calls} came when the invocation was over{}: what comes so late meets no chaos and is not judged",
        first.unwrap_or_default()
    ))
}

/// Shortest answer that is searched for in later model requests, in characters.
const SHORTEST: usize = 8;

/// The agent keeps state between invocations. This is detected where the same prompt was sent twice without chaos.
/// `clean` are those invocations, in order.
pub(super) fn stateful<'r>(clean: impl Iterator<Item = &'r JobResult<'r>>) -> Option<String> {
    let answered = clean.filter(|(_, result)| result.answer.error.is_none());
    let mut first: Vec<&JobResult<'_>> = Vec::new();
    for second in answered {
        let (job, result) = second;
        let earlier = first
            .iter()
            .find(|(earlier, _)| earlier.prompt == job.prompt);
        let Some((_, before)) = earlier else {
            first.push(second);
            continue;
        };
        let answer = before.answer.text.trim();
        let holds_answer = |request: Cow<'_, str>| {
            answer.chars().count() >= SHORTEST && request.contains(&json_text(answer))
        };
        if result.trace.sent_to_models().any(holds_answer) {
            let why = "a model request holds the agent's answer to an earlier invocation";
            return Some(not_reset(job.prompt, why));
        }
        if result.answer.text != before.answer.text {
            let why = "two invocations without chaos gave different answers";
            return Some(not_reset(job.prompt, why));
        }
    }
    None
}

/// A text as it is escaped inside a JSON string.
fn json_text(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted.trim_matches('"').to_owned()
}

fn not_reset(prompt: &Prompt, why: &str) -> String {
    let prompt = prompt.beginning();
    format!(
        "the agent is stateful or nondeterministic: prompt `{prompt}`: {why}; if it keeps state, configure \
         `agent.reset_endpoint`, `reset_function` or `reset_command`, or invocations depend on each other"
    )
}

/// The error of the first prompt, if every prompt got a connection but not one byte of an answer. `None`: the agent
/// answers in some way, or makes calls.
pub(super) fn never_answers(clean: &[JobResult<'_>]) -> Option<String> {
    let is_silent = |(_, result): &JobResult<'_>| result.answer.is_silent() && !result.was_seen();
    let (_, first) = clean.first()?;
    let why = first.answer.error.clone()?;
    clean.iter().all(is_silent).then_some(why)
}

/// Why a run that would have passed is inconclusive.
pub(super) fn proves_nothing<'r>(
    results: impl Iterator<Item = &'r JobResult<'r>>,
) -> Option<String> {
    let (mut invocations, mut incomplete, mut gone) = (0, 0, Vec::new());
    for (job, result) in results {
        invocations += 1;
        incomplete += usize::from(!result.is_complete);
        gone.extend(result.unreachable.as_ref().map(|why| (job, why)));
    }
    if let Some((job, why)) = gone.first() {
        let prompt = job.prompt.beginning();
        return Some(format!(
            "the agent was gone in {} of {invocations} invocations, `{prompt}` the first: {why}",
            gone.len()
        ));
    }
    (incomplete > 0).then(|| {
        format!(
            "in {incomplete} of {invocations} invocations exchanges were still open at the end, or were lost"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::jobs::InvocationJob;
    use super::super::result::InvocationResult;
    use super::*;
    use crate::answer::AgentAnswer;
    use crate::trace::testing::{Sent, trace};

    #[test]
    fn g26_state_shows_where_a_prompt_is_sent_twice() {
        let asks = |content: &str| {
            Sent::model(&format!(r#"[{{"role": "user", "content": "{content}"}}]"#))
        };
        let (one, other) = (Prompt::single("Weather?"), Prompt::single("Time?"));
        let first = (&one, asks("Weather?"), "It is \"sunny\".");
        for (second, expected) in [
            ((&one, asks("Weather?"), "It is \"sunny\"."), None),
            (
                (&one, asks("Weather?"), "It is late."),
                Some("different answers"),
            ),
            (
                (&one, asks(r#"It is \"sunny\"."#), "It is \"sunny\"."),
                Some("earlier invocation"),
            ),
            ((&other, asks("Time?"), "It is late."), None),
        ] {
            let results = [first.clone(), second].map(|(prompt, sent, answer)| {
                let result = InvocationResult {
                    trace: trace(&[sent]),
                    answer: AgentAnswer::of(answer),
                    ..InvocationResult::default()
                };
                (InvocationJob::clean(0, prompt), result.into())
            });
            let found = stateful(results.iter());
            let fits = |why: &str| found.as_ref().is_some_and(|found| found.contains(why));
            assert!(expected.map_or(found.is_none(), fits), "{found:?}");
        }
    }
}
