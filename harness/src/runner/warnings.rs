//! Warnings that limit what a run proves, one sentence each; `None` if a warning does not apply.

use std::collections::BTreeMap;

use super::JobResult;
use crate::count::count;
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

/// The agent keeps state between invocations, or is nondeterministic: a prompt that was sent twice without chaos got
/// different answers. `clean` are those invocations, in order.
pub(super) fn stateful<'r>(clean: impl Iterator<Item = &'r JobResult<'r>>) -> Option<String> {
    let mut first = BTreeMap::new();
    let mut answered = clean.filter(|(_, result)| result.answer.error.is_none());
    let (job, _) = answered.find(|(job, result)| {
        let text = &result.answer.text;
        *first.entry(job.prompt).or_insert(text) != text
    })?;
    Some(format!(
        "the agent is stateful or nondeterministic: prompt `{}`: two invocations without chaos gave different answers; if \
         it keeps state, configure `agent.reset_endpoint`, `reset_function` or `reset_command`, or invocations depend on \
         each other",
        job.prompt.beginning()
    ))
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
    use crate::prompt::Prompt;

    #[test]
    fn g26_state_shows_where_a_prompt_is_sent_twice() {
        let (one, other) = (Prompt::single("Weather?"), Prompt::single("Time?"));
        for (second, is_stateful) in [
            ((&one, "It is sunny."), false),
            ((&one, "It is late."), true),
            ((&other, "It is late."), false),
        ] {
            let results = [(&one, "It is sunny."), second].map(|(prompt, answer)| {
                let result = InvocationResult {
                    answer: AgentAnswer::of(answer),
                    ..InvocationResult::default()
                };
                (InvocationJob::clean(0, prompt), result.into())
            });
            assert_eq!(
                stateful(results.iter()).is_some(),
                is_stateful,
                "{second:?}"
            );
        }
    }
}
