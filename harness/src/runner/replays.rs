//! Replay sessions in a run: the invariants that judge each, and its result.

use std::borrow::Cow;

use http::Method;
use squall_journal::record::Kind;
use squall_journal::tape::{Matching, Session, TapeQuestion};

use super::RanPart;
use super::plan::{Component, RunPart};
use super::result::InvocationResult;
use crate::count::count;
use crate::divergence::{self, SessionCall};
use crate::invariants::Invariant;
use crate::reach::TapeCounts;
use crate::run::{CallDivergence, CellRecord, CellState, ReplayRecord};
use crate::scores::{Matrix, RunOutcome, score_of};
use crate::suite::{Contract, ContractPart, ReplaySession, Suite, SuiteSession};
use crate::trace::{Attempt, Trace};

/// The name that flakestorm gives the suite's own contract.
const DEFAULT: &str = "default";

/// A part for each session of the suite; or a pointer into the request, and what is wrong there.
pub(super) fn parts(suite: &Suite) -> Result<Vec<RunPart<'_>>, (String, String)> {
    let sessions = suite.replays.sessions.iter().enumerate();
    let parts = sessions.map(|(place, session)| {
        let at = |field: &str| format!("/suite/replays/sessions/{place}{field}");
        let SuiteSession::Inline(replay) = session else {
            return Err((
                at("/file"),
                "the file of the session was not read".to_owned(),
            ));
        };
        let judging = judging(suite, replay).map_err(|why| (at("/contract"), why))?;
        let part = RunPart::replay(&replay.session, judging);
        part.ok_or_else(|| (at(""), "the session has no `input`".to_owned()))
    });
    parts.collect()
}

/// The invariants that judge a session. Those with `probes` ask prompts of their own, and are left out.
fn judging<'s>(
    suite: &'s Suite,
    replay: &'s ReplaySession,
) -> Result<Cow<'s, [Invariant]>, String> {
    let id = &replay.session.id;
    let own = suite.written_contract();
    let invariants = match &replay.contract {
        Some(ContractPart::Written(contract)) => Cow::Borrowed(&contract.invariants[..]),
        Some(ContractPart::Named(name)) => match own.filter(|own| own.name == *name) {
            Some(own) => Cow::Borrowed(&own.invariants[..]),
            None if name == DEFAULT => of_the_suite(suite, own),
            None => {
                let file = if name.contains('/') {
                    "names of files end with .yaml, .yml or .json".to_owned()
                } else {
                    format!("name a file, as in `./{name}.yaml`")
                };
                return Err(format!(
                    "session `{id}` names contract `{name}`, and there is none: the suite has no contract of this name, \
                     and none is stored; {file}, or leave it out to judge by the suite"
                ));
            }
        },
        None => of_the_suite(suite, own),
    };
    let probes = |one: &Invariant| !one.probes.is_empty();
    let invariants = if invariants.iter().any(probes) {
        let without = invariants.iter().filter(|one| !probes(one));
        Cow::Owned(without.cloned().collect())
    } else {
        invariants
    };
    if invariants.is_empty() {
        return Err(format!(
            "nothing judges session `{id}`: neither it nor the suite has invariants without `probes`; name a contract"
        ));
    }
    Ok(invariants)
}

/// All that a suite demands: its invariants and those of its contract. Ids that both have become unique.
fn of_the_suite<'s>(suite: &'s Suite, contract: Option<&'s Contract>) -> Cow<'s, [Invariant]> {
    let of_contract = contract.map_or(&[][..], |contract| &contract.invariants);
    match (&suite.invariants[..], of_contract) {
        (own, []) => Cow::Borrowed(own),
        ([], of_contract) => Cow::Borrowed(of_contract),
        (own, of_contract) => {
            let mut all = of_contract.to_vec();
            for mut invariant in own.iter().cloned() {
                while all.iter().any(|other| other.id == invariant.id) {
                    invariant.id.push_str(" (prompts)");
                }
                all.push(invariant);
            }
            Cow::Owned(all)
        }
    }
}

/// The record of a session. `first` is its first repeat.
pub(super) fn record(
    session: &Session,
    first: &InvocationResult,
    cells: &[CellRecord],
) -> ReplayRecord {
    let of_state = |state| cells.iter().any(|cell| cell.state == state);
    let states = [CellState::Failed, CellState::Passed, CellState::Error];
    let state = states.into_iter().find(|state| of_state(*state));
    // Without a tape all calls go upstream.
    let tape = first.tape.clone().unwrap_or_else(|| TapeCounts {
        dialled: first.trace.attempts().len() as u64,
        ..TapeCounts::default()
    });
    ReplayRecord {
        session: session.id.clone(),
        name: session.name.clone(),
        state: state.unwrap_or(CellState::NotExercised),
        expected_failure: session.expected_failure.clone(),
        contract: session.contract.clone(),
        served: tape.served,
        missed: tape.missed,
        dialled: tape.dialled,
        calls: calls(session, &first.trace),
    }
}

/// The recorded calls beside those that the agent made. The lists of a session have no order among each other, so
/// each is compared with the calls that belong to it.
fn calls(session: &Session, trace: &Trace) -> Vec<CallDivergence> {
    let live = session.has_live_models();
    let is_left_out = |is_model: bool| is_model && live;
    let attempts = trace.attempts().iter();
    let attempts = attempts.filter(|attempt| !is_left_out(attempt.kind == Kind::Llm));
    let made: Vec<_> = attempts
        .map(|attempt| (attempt, made_call(trace, attempt)))
        .collect();
    // A pattern gets the name of the first call that it matches.
    let matched = |matching: &Matching, of_model: bool| {
        let mut made = made.iter();
        made.find(|(attempt, _)| {
            (!of_model || attempt.kind == Kind::Llm) && is_of(matching, attempt)
        })
    };
    let unknown = |name: String| SessionCall {
        name,
        arguments: None,
    };
    let (exchanges, tools) = (session.exchanges.len(), session.tool_responses.len());
    let numbers = |before: usize| (before as u64 + 1)..;
    let of_exchanges = session.exchanges.iter().map(|exchange| {
        let matching = &exchange.matching;
        let body = matching.body.as_ref().map(|body| &body.0[..]);
        // As on a tape.
        let is_exact = body.is_some() || matching.fingerprint.is_some();
        let method = matching.method.as_ref().map(Method::as_str);
        let method = method.unwrap_or(if body.is_some() { "POST" } else { "GET" });
        let url = matching.url.as_deref().unwrap_or_default();
        let call = divergence::request(method, url, body);
        match matched(matching, false) {
            _ if is_exact => call,
            Some((_, made)) => unknown(made.name.clone()),
            None => unknown(call.name),
        }
    });
    let of_exchanges = numbers(0).zip(of_exchanges).zip(&session.exchanges);
    let of_exchanges = of_exchanges.filter(|(_, one)| !is_left_out(one.dialect.is_some()));
    let of_tools = session.tool_responses.iter();
    let of_tools = of_tools.map(|response| unknown(response.tool.clone()));
    let of_models = session
        .llm_responses
        .iter()
        .filter(|_| !live)
        .map(|response| {
            let matching = &response.matching;
            let name = match matched(matching, true) {
                Some((attempt, _)) => model_name(attempt.model.as_deref()),
                None => model_name(matching.model.as_deref()),
            };
            unknown(name)
        });
    let lists = [
        of_exchanges.map(|(numbered, _)| numbered).collect(),
        numbers(exchanges).zip(of_tools).collect(),
        numbers(exchanges + tools)
            .zip(of_models)
            .collect::<Vec<_>>(),
    ];
    let has = |list: usize, name: &str| lists[list].iter().any(|(_, call)| call.name == name);
    let mut of_lists: [Vec<(String, SessionCall)>; 3] = Default::default();
    for (attempt, call) in &made {
        let tool = attempt.tools.iter().find(|tool| has(1, tool));
        let model = model_name(attempt.model.as_deref());
        let (list, call) = match tool {
            _ if has(0, &call.name) => (0, call.clone()),
            Some(tool) => (1, unknown(tool.clone())),
            None if attempt.kind == Kind::Llm && !lists[2].is_empty() => (2, unknown(model)),
            None => (0, call.clone()),
        };
        of_lists[list].push((attempt.id.clone(), call));
    }
    let mut calls = Vec::new();
    for (recorded, own) in lists.iter().zip(&of_lists) {
        // A missing call follows the one before it in its list.
        let mut place = 0;
        for call in divergence::divergence(recorded, own) {
            let at = made
                .iter()
                .position(|(attempt, _)| Some(&attempt.id) == call.made.as_ref());
            place = at.map_or(place, |at| at + 1);
            calls.push((place, at.is_none(), call));
        }
    }
    calls.sort_by_key(|(place, is_missing, _)| (*place, *is_missing));
    calls.into_iter().map(|(_, _, call)| call).collect()
}

fn model_name(model: Option<&str>) -> String {
    format!("model {}", model.unwrap_or("*"))
}

fn made_call(trace: &Trace, attempt: &Attempt) -> SessionCall {
    let request = trace.exchange(attempt).request.as_ref();
    let body = request.and_then(|request| request.body.as_ref());
    let call = |body| divergence::request(&attempt.method, &attempt.url, body);
    match body {
        Some(body) => call(Some(&body.bytes[..])),
        None => SessionCall {
            arguments: None,
            ..call(None)
        },
    }
}

fn is_of(matching: &Matching, attempt: &Attempt) -> bool {
    let Ok(method) = Method::from_bytes(attempt.method.as_bytes()) else {
        return false;
    };
    matching.is_of(&TapeQuestion {
        method: &method,
        url: &attempt.url,
        fingerprint: 0,
        tools: &[],
        dialect: None,
        model: attempt.model.as_deref(),
    })
}

/// Sessions as expected among those that could be judged; `None`: none could be judged.
pub(super) fn score<'r>(
    expects_failure: bool,
    parts: impl IntoIterator<Item = &'r RanPart>,
) -> Option<f64> {
    let sessions = sessions(parts).filter_map(Matrix::holds);
    let sessions: Vec<_> = sessions.map(|holds| holds != expects_failure).collect();
    let passed = sessions.iter().filter(|passed| **passed).count();
    score_of(passed as u64, sessions.len() as u64)
}

/// What the sessions alone make of a run; `None`: the scores decide. `decides`: one session fails the run.
pub(super) fn outcome(
    expects_failure: bool,
    decides: bool,
    parts: &[RanPart],
) -> Option<RunOutcome> {
    let name = |matrix: &Matrix| {
        let column = matrix.columns.first();
        let name = column.map_or("", |column| &column.scenario.name);
        format!("`{name}`")
    };
    let unexpected = sessions(parts).filter(|one| one.holds() == Some(expects_failure));
    let unexpected: Vec<_> = unexpected.map(name).collect();
    if decides && !unexpected.is_empty() {
        let sessions = count(sessions(parts).count() as u64, "session");
        let what = if expects_failure {
            "passed, and were expected to fail"
        } else {
            "failed"
        };
        let which = unexpected.join(", ");
        let reason = format!("{} of {sessions} {what}: {which}", unexpected.len());
        return Some(RunOutcome::Failed(reason));
    }
    let is_unjudged = |one: &&Matrix| one.holds().is_none();
    let unjudged = sessions(parts).find(is_unjudged)?;
    let number = sessions(parts).filter(is_unjudged).count();
    let sessions = count(sessions(parts).count() as u64, "session");
    let cell = unjudged
        .cells
        .iter()
        .max_by_key(|cell| cell.state == CellState::NotExercised);
    let why = cell.and_then(|cell| cell.reason.as_deref());
    Some(RunOutcome::Inconclusive(format!(
        "{number} of {sessions} could not be judged, {} the first: {}",
        name(unjudged),
        why.unwrap_or("the agent was not called")
    )))
}

fn sessions<'r>(parts: impl IntoIterator<Item = &'r RanPart>) -> impl Iterator<Item = &'r Matrix> {
    let parts = parts.into_iter();
    let parts = parts.filter(|part| part.component == Component::Replay);
    parts.map(|part| &part.matrix)
}

#[cfg(test)]
mod tests {
    use squall_journal::tape::RecordedExchange;

    use super::*;
    use crate::run::DivergenceState;
    use crate::trace::testing::{Sent, trace};

    #[test]
    fn arguments_that_are_not_recorded_are_the_same() {
        let mut exchange = RecordedExchange::default();
        exchange.matching.url = Some("https://t.test/s?q=1".into());
        let session = Session {
            exchanges: vec![exchange],
            ..Session::default()
        };
        let made = trace(&[Sent::post("https://t.test/s?q=1", "{\"seats\": 2}")]);
        let calls = calls(&session, &made);
        let states: Vec<_> = calls.iter().map(|call| call.state).collect();
        assert_eq!(states, [DivergenceState::Same], "{calls:?}");
    }
}
