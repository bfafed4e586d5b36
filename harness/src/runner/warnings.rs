//! Warnings that limit what a run proves, one sentence each; `None` if a warning does not apply.

use std::collections::BTreeMap;

use serde_json::Value;

use super::JobResult;
use crate::count::count;
use crate::reach::Late;
use crate::trace::Trace;

/// The agent fails without chaos.
pub(super) fn fails_without_chaos(clean: &[JobResult<'_>]) -> Option<String> {
    let clean: Vec<_> = clean.iter().filter(|(job, _)| job.own.is_none()).collect();
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

/// Calls arrived after their invocation had ended.
pub(super) fn calls_late<'r>(
    late: &Late,
    mut results: impl Iterator<Item = &'r JobResult<'r>>,
) -> Option<String> {
    if late.count == 0 {
        return None;
    }
    let calls = count(late.count, "call");
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

/// The agent keeps state between invocations, or is nondeterministic. This shows where a prompt was sent twice without
/// chaos. `clean` are those invocations, in order.
pub(super) fn stateful<'r>(clean: impl Iterator<Item = &'r JobResult<'r>>) -> Option<String> {
    let mut first = BTreeMap::new();
    let mut answered = clean.filter(|(_, result)| result.answer.error.is_none());
    let (prompt, why) = answered.find_map(|(job, second)| {
        let first = *first.entry(job.prompt).or_insert(second);
        let answer = &first.answer.text;
        let mut texts = job.prompt.turns().iter().chain([answer]);
        let why = if second.answer.text != *answer {
            "two invocations without chaos gave different answers"
        } else if texts.any(|text| most_often(&second.trace, text) > most_often(&first.trace, text))
        {
            "a model request holds the text of an earlier invocation"
        } else if second.trace.continues(&first.trace) {
            "a model request continues a response of an earlier invocation"
        } else {
            return None;
        };
        Some((job.prompt.beginning(), why))
    })?;
    Some(format!(
        "the agent is stateful or nondeterministic: prompt `{prompt}`: {why}; if it keeps state, configure \
         `agent.reset_endpoint`, `reset_function` or `reset_command`, or invocations depend on each other"
    ))
}

/// Shortest text that is searched for in model requests, in characters.
const SHORTEST: usize = 8;

/// How often one model request holds a text, at most.
fn most_often(trace: &Trace, text: &str) -> usize {
    let text = text.trim();
    if text.chars().count() < SHORTEST {
        return 0;
    }
    let quoted = Value::from(text).to_string();
    let escaped = &quoted[1..quoted.len() - 1];
    let bodies = trace.model_requests().map(|body| body.to_string());
    let counts = bodies.map(|body| body.matches(escaped).count());
    counts.max().unwrap_or_default()
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
    use serde_json::json;

    use super::super::jobs::InvocationJob;
    use super::super::result::InvocationResult;
    use super::*;
    use crate::answer::AgentAnswer;
    use crate::prompt::Prompt;
    use crate::trace::testing::{Sent, trace};

    #[test]
    fn g26_state_shows_where_a_prompt_is_sent_twice() {
        let asks = |contents: &[&str]| {
            let messages = contents
                .iter()
                .map(|text| json!({"role": "user", "content": text}));
            Sent::model(&messages.collect::<Value>().to_string())
        };
        let (one, other) = (Prompt::single("Weather?"), Prompt::single("Time?"));
        let sunny = "It is \"sunny\".";
        let kept = |fields: &str, id: &str| Sent::responses(fields, id, "");
        let new = kept(r#""input":"Weather?""#, "resp_2");
        let continued = kept(
            r#""input":"Weather?","previous_response_id":"resp_1""#,
            "resp_2",
        );
        // A stateless agent that has its draft checked.
        let first = (
            &one,
            vec![
                asks(&["Weather?"]),
                asks(&["Check:", sunny]),
                kept(r#""input":"Weather?""#, "resp_1"),
            ],
            sunny,
        );
        for (second, expected) in [
            (first.clone(), None),
            ((&one, vec![new], sunny), None),
            ((&one, vec![continued], sunny), Some("continues a response")),
            (
                (&one, vec![asks(&["Weather?"])], "It is late."),
                Some("different answers"),
            ),
            (
                (&one, vec![asks(&["Weather?", "Weather?"])], sunny),
                Some("earlier invocation"),
            ),
            (
                (
                    &one,
                    vec![asks(&[sunny, "Weather?"]), asks(&[sunny, "Check:", sunny])],
                    sunny,
                ),
                Some("earlier invocation"),
            ),
            (
                (
                    &other,
                    vec![asks(&["Weather?", sunny, "Time?"])],
                    "It is late.",
                ),
                None,
            ),
        ] {
            let results = [first.clone(), second].map(|(prompt, sent, answer)| {
                let result = InvocationResult {
                    trace: trace(&sent),
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
