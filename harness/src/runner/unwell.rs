//! Agents that fail without chaos already: no chaos is to blame for what they do.

use super::Tried;

/// A sentence about an agent that fails where nothing is wrong; `None`: it does not.
pub(super) fn fails_without_chaos(clean: &[Tried<'_>]) -> Option<String> {
    let failed = clean.iter().filter_map(|(job, asked)| {
        let why = asked.wrong.as_ref().or(asked.answer.error.as_ref())?;
        Some((job, why))
    });
    let failed: Vec<_> = failed.collect();
    let (job, why) = failed.first()?;
    let prompt: String = job.prompt.text().chars().take(60).collect();
    Some(format!(
        "without chaos {} of {} prompts fail already, so that chaos proves little of them: `{prompt}`: {why}",
        failed.len(),
        clean.len()
    ))
}

/// Whether nothing was answered without chaos.
pub(super) fn fails_always(clean: &[Tried<'_>]) -> bool {
    let fails = |(_, asked): &Tried<'_>| asked.wrong.is_some() || asked.answer.error.is_some();
    !clean.is_empty() && clean.iter().all(fails)
}
