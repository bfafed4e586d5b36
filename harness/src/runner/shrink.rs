//! Shrinks failures: finds the smallest set of faults with which an invariant still fails, by repeated invocations.
//!
//! The faults of an invocation are the firings of rules that were applied to it. In a replay, they are the failed
//! responses of the session; a response that is left out comes from its upstream.

use std::collections::BTreeMap;
use std::sync::Arc;

use squall_journal::record::{ExchangeRecord, RuleOutcome};
use squall_journal::tape::{Otherwise, RecordedExchange, Session};

use super::RunError;
use super::invoker::{Invoker, Slot};
use super::jobs::InvocationJob;
use super::plan::Trial;
use super::probe::{Probed, RunScopes};
use super::result::InvocationResult;
use super::scenarios::{FailedCase, Scenarios};
use crate::count::nth;
use crate::ddmin::Ddmin;
use crate::invariants::Active;
use crate::reach::Rules;
use crate::report::{call_name, place};
use crate::run::ShrunkRecord;

/// Most failures of a run that are shrunk.
const MOST_FAILURES: usize = 5;

/// Most invocations for each of them.
const MOST_INVOCATIONS: u64 = 64;

/// The faults of a failed invocation, each with its description.
enum FaultSet {
    /// Firings of the scenario's rules: each a rule's id and the number of one of its matching calls.
    Firings(Rules, Vec<((String, u64), String)>),
    /// Failed responses of a session, by their number in it.
    Responses(Arc<Session>, Vec<(usize, String)>),
}

/// Shrinks the first failures of the judged scenarios. Returns a warning if some were left out,
/// or if an upstream was unreachable.
pub(super) async fn shrink<'p>(
    invoker: &Invoker<'_, '_>,
    scenarios: &mut Scenarios<'p, '_>,
    probed: &Probed<'_, 'p>,
    scopes: &RunScopes<'_>,
) -> Result<(Vec<ShrunkRecord>, Option<String>), RunError> {
    let failures = scenarios.failures().into_iter().map(|failure| {
        let faults = FaultSet::of(failure.trial, &failure.job, &failure.result);
        (failure, faults)
    });
    let failures: Vec<_> = failures.filter(|(_, faults)| faults.len() > 0).collect();
    let left_out = failures.len().saturating_sub(MOST_FAILURES);
    let mut warning = (left_out > 0).then(|| {
        format!("the first {MOST_FAILURES} failures were shrunk, and {left_out} more were not")
    });
    let mut shrunk = Vec::new();
    for (failure, faults) in failures.into_iter().take(MOST_FAILURES) {
        let is_shared = probed.names_scopes && invoker.plan().needs_shared_scope(failure.job.trial);
        let held = if is_shared {
            Some(scopes.exclusive.lock().await)
        } else {
            None
        };
        let shared = Slot::Shared(scopes.shared.to_owned());
        let slot = probed
            .slots
            .first()
            .filter(|_| !is_shared)
            .unwrap_or(&shared);
        let result = one(invoker, scenarios, slot, &failure, &faults).await?;
        if held.is_some() {
            invoker.leave(scopes.shared).await?;
        }
        match result {
            Ok(record) => shrunk.push(record),
            Err(why) => {
                warning = Some(format!("{why}; shrink needs the upstreams"));
                break;
            }
        }
    }
    Ok((shrunk, warning))
}

/// Shrinks one failure; or why a failure proves nothing.
async fn one<'p>(
    invoker: &Invoker<'_, '_>,
    scenarios: &mut Scenarios<'p, '_>,
    slot: &Slot,
    failure: &FailedCase<'p>,
    faults: &FaultSet,
) -> Result<Result<ShrunkRecord, String>, RunError> {
    let mut record = ShrunkRecord {
        invariant: failure.invariant.clone(),
        scenario: failure.trial.name.clone(),
        of: faults.len() as u64,
        needed: Vec::new(),
        invocations: 0,
        is_minimal: true,
        fails_without: false,
    };
    let mut ddmin = Ddmin::new(faults.len());
    // All of them first, then none: does the failure reproduce at all, and do the faults cause it?
    let mut next = Some((0..faults.len()).collect::<Vec<_>>());
    while let Some(set) = next {
        if record.invocations == MOST_INVOCATIONS {
            record.is_minimal = false;
            break;
        }
        let job = faults.limited(&failure.job, &set);
        let (result, _) = invoker.invoke_once(slot, &job, &mut None, None).await?;
        let unreachable = result.upstream_unreachable();
        let trial = trial(failure.trial, &set);
        let fails = scenarios.fails(failure, &trial, job, result).await;
        if let Some(why) = unreachable.filter(|_| fails && faults.is_replay()) {
            return Ok(Err(why));
        }
        record.invocations += 1;
        next = match (record.invocations, fails) {
            (1, true) => Some(Vec::new()),
            (1, false) => return Ok(Ok(record)),
            (2, true) => {
                record.fails_without = true;
                return Ok(Ok(record));
            }
            (2, false) => ddmin.next(),
            _ => {
                ddmin.report(fails);
                ddmin.next()
            }
        };
    }
    let needed = ddmin.kept().iter();
    record.needed = needed.map(|number| faults.description(*number)).collect();
    Ok(Ok(record))
}

/// The scenario as it is judged with only these faults: a clean one without any. A replay is judged although the
/// session may have no response left that the agent requests.
fn trial(trial: &Trial, set: &[usize]) -> Trial {
    let mut trial = trial.clone();
    match &mut trial.tape {
        Some(session) => *session = Arc::default(),
        None if set.is_empty() => trial.active = Active::default(),
        None => {}
    }
    trial
}

impl FaultSet {
    fn of(trial: &Trial, job: &InvocationJob<'_>, result: &InvocationResult) -> Self {
        match &trial.tape {
            Some(session) => {
                let used = result.tape.as_ref().map_or(&[][..], |tape| &tape.used);
                Self::Responses(Arc::clone(session), failed_responses(session, used))
            }
            None => Self::Firings(trial.rules.clone(), firings(job, result)),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Firings(_, firings) => firings.len(),
            Self::Responses(_, responses) => responses.len(),
        }
    }

    fn is_replay(&self) -> bool {
        matches!(self, Self::Responses(..))
    }

    fn description(&self, number: usize) -> String {
        match self {
            Self::Firings(_, firings) => firings[number].1.clone(),
            Self::Responses(_, responses) => responses[number].1.clone(),
        }
    }

    /// The invocation again, with only these faults.
    fn limited<'p>(&self, job: &InvocationJob<'p>, set: &[usize]) -> InvocationJob<'p> {
        let mut job = job.clone();
        job.goes_on = false;
        match self {
            Self::Firings(rules, firings) => {
                let firings = set.iter().map(|number| firings[*number].0.clone());
                job.rules = Some(Rules::Limited {
                    rules: Box::new(rules.clone()),
                    firings: firings.collect(),
                });
            }
            Self::Responses(session, failed) => {
                let left_out = (0..failed.len()).filter(|number| !set.contains(number));
                let left_out: Vec<_> = left_out.map(|number| failed[number].0).collect();
                job.tape = Some(Arc::new(without(session, &left_out)));
            }
        }
        job
    }
}

/// The applied firings of an invocation, in order.
fn firings(job: &InvocationJob<'_>, result: &InvocationResult) -> Vec<((String, u64), String)> {
    let mut firings = Vec::new();
    let mut calls: BTreeMap<String, usize> = BTreeMap::new();
    // Counters of an earlier invocation go on in this one, and start at zero when it is repeated.
    let mut before: BTreeMap<&str, u64> = BTreeMap::new();
    for record in result.records() {
        let call = call_name(record);
        let number = calls.entry(call.clone()).or_default();
        *number += 1;
        for rule in &record.rules {
            let earlier = *before
                .entry(&rule.rule)
                .or_insert(rule.ordinal.saturating_sub(1));
            let earlier = if job.goes_on { earlier } else { 0 };
            if rule.outcome == RuleOutcome::Applied {
                let what = effect(record, &rule.mode);
                let text = format!("{what} on the {} call of {call}", nth(*number));
                firings.push((
                    (rule.rule.clone(), rule.ordinal.saturating_sub(earlier)),
                    text,
                ));
            }
        }
    }
    firings
}

/// What the agent got: the status of an error if it is the only fault of the exchange, otherwise the mode.
fn effect(record: &ExchangeRecord, mode: &str) -> String {
    match record.status.filter(|status| *status >= 400) {
        Some(status) if record.applied().count() == 1 => status.to_string(),
        _ => mode.to_owned(),
    }
}

/// The failed responses of a session, by their number in it: of `exchanges`, then of tools, then of models.
fn failed_responses(session: &Session, used: &[usize]) -> Vec<(usize, String)> {
    let recorded = |one: &RecordedExchange| {
        let url = one.matching.url.as_deref().map(place);
        let call = url.or_else(|| one.dialect.clone());
        let call = call.unwrap_or_else(|| "the model".to_owned());
        (call, one.answer.status, one.answer.broken_off)
    };
    let tools = session.tool_responses.iter();
    let tools = tools.map(|one| (one.tool.clone(), one.status, false));
    let responses = session.exchanges.iter().map(recorded).chain(tools);
    let responses = responses.chain(session.llm_responses.iter().map(recorded));
    let mut calls: BTreeMap<String, usize> = BTreeMap::new();
    let mut failed = Vec::new();
    for (number, (call, status, broken_off)) in responses.enumerate() {
        let place = calls.entry(call.clone()).or_default();
        *place += 1;
        let what = match status {
            _ if !used.contains(&number) => continue,
            0 => "no response".to_owned(),
            400.. => status.to_string(),
            _ if broken_off => "an aborted response".to_owned(),
            _ => continue,
        };
        failed.push((
            number,
            format!("{what} on the {} call of {call}", nth(*place)),
        ));
    }
    failed
}

/// The session without these responses: the requests that they answer are sent to their upstream.
fn without(session: &Session, left_out: &[usize]) -> Session {
    let mut session = session.clone();
    if left_out.is_empty() {
        return session;
    }
    let (exchanges, tools) = (session.exchanges.len(), session.tool_responses.len());
    let is_left_out = |number: usize| left_out.contains(&number);
    // A tape has no response to play then, but keeps its place among those to equal requests.
    for (number, one) in session.exchanges.iter_mut().enumerate() {
        one.answer.over_limit |= is_left_out(number);
    }
    for (number, one) in (exchanges + tools..).zip(&mut session.llm_responses) {
        one.answer.over_limit |= is_left_out(number);
    }
    let mut numbers = exchanges..;
    let mut stays = || numbers.next().is_none_or(|number| !is_left_out(number));
    session.tool_responses.retain(|_| stays());
    session.on_miss = Some(Otherwise::Passthrough);
    session.on_exhausted = Some(Otherwise::Passthrough);
    session
}
