//! Agents that fail without chaos already: no chaos is to blame for what they do.

use super::Tried;

/// A sentence about an agent that fails where nothing is wrong; `None`: it does not.
pub(super) fn fails_without_chaos(clean: &[Tried<'_>]) -> Option<String> {
    let failed = clean.iter().filter_map(|(job, asked)| {
        let why = asked.failure()?;
        Some((job, why))
    });
    let failed: Vec<_> = failed.collect();
    let (job, why) = failed.first()?;
    let prompt = job.prompt.beginning();
    Some(format!(
        "without chaos {} of {} prompts fail already, so that chaos proves little of them: `{prompt}`: {why}",
        failed.len(),
        clean.len()
    ))
}

/// A sentence about invocations that were done again because the answer broke off; `None`: there was none.
pub(super) fn breaks_off<'r>(tried: impl Iterator<Item = &'r Tried<'r>>) -> Option<String> {
    let (mut invocations, mut again) = (0, Vec::new());
    for (job, asked) in tried {
        invocations += 1;
        again.extend((asked.tries > 1).then_some(job));
    }
    let prompt = again.first()?.prompt.beginning();
    Some(format!(
        "{} of {invocations} invocations were done again, since their answer broke off and no fault had been applied, \
         `{prompt}` the first; `advanced.retries: 0` judges what comes at first",
        again.len()
    ))
}

/// What happened to the first prompt, where connections were taken, and not a byte of an answer came to any: what
/// stands before an agent that is not there does so. `None`: it answers, or calls somebody.
pub(super) fn never_answers(clean: &[Tried<'_>]) -> Option<String> {
    let is_silent = |(_, asked): &Tried<'_>| asked.answer.is_silent && !asked.was_seen();
    let (_, first) = clean.first()?;
    let why = first.answer.error.clone()?;
    clean.iter().all(is_silent).then_some(why)
}

/// Why a run that would have passed proves nothing; `None`: nothing speaks against it.
pub(super) fn proves_nothing<'r>(tried: impl Iterator<Item = &'r Tried<'r>>) -> Option<String> {
    let (mut invocations, mut incomplete, mut gone) = (0, 0, Vec::new());
    for (job, asked) in tried {
        invocations += 1;
        incomplete += usize::from(!asked.is_complete);
        gone.extend(asked.unreachable.as_ref().map(|why| (job, why)));
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

/// Whether nothing was answered without chaos.
pub(super) fn fails_always(clean: &[Tried<'_>]) -> bool {
    let fails = |(_, asked): &Tried<'_>| asked.failure().is_some();
    !clean.is_empty() && clean.iter().all(fails)
}
