//! The failed invocations of a run as replay sessions: the prompt, the recorded responses, and the violated
//! invariants.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use squall_harness::report::{FailedInvocation, failed_invocations};
use squall_harness::run::RunRecord;
use squall_journal::tape::{Recorded, Session};

/// A failed invocation, as a replay session.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Incident {
    /// The session's id: the run's id and the number of the incident, from 1.
    id: String,
    /// Its scenario.
    scenario: String,
    /// The violated invariants.
    invariants: Vec<String>,
    /// Number of its exchanges that are missing in the session: without a stored body, or other than a request with
    /// a response.
    missing: u64,
    /// The replay session.
    #[schemars(extend("$ref" = "#/components/schemas/Replay"))]
    session: Value,
}

/// The failed invocations of a run, in the order of its cells, without those with changed requests: a replay would
/// send the unchanged request. `recorded`: the stored exchanges.
pub(crate) fn of(run: &RunRecord, recorded: &[Recorded]) -> Vec<Incident> {
    let recorded: BTreeMap<&str, &Recorded> = recorded.iter().map(|one| (&*one.id, one)).collect();
    let invocations = failed_invocations(run).into_iter().zip(1..);
    let invocations = invocations.filter(|(invocation, _)| !invocation.has_changed_request());
    let incident = |(invocation, number): (FailedInvocation<'_>, usize)| {
        let session = session(run, &invocation, number, &recorded);
        let exchanges = invocation.evidence.exchanges.len();
        Incident {
            id: session.id.clone(),
            scenario: invocation.scenario().to_owned(),
            invariants: (invocation.invariants().into_iter())
                .map(str::to_owned)
                .collect(),
            missing: exchanges.saturating_sub(session.exchanges.len()) as u64,
            session: session.to_value(),
        }
    };
    invocations.map(incident).collect()
}

fn session(
    run: &RunRecord,
    invocation: &FailedInvocation<'_>,
    number: usize,
    recorded: &BTreeMap<&str, &Recorded>,
) -> Session {
    let mut ids: Vec<_> = invocation.evidence.exchanges.iter().collect();
    ids.sort_unstable();
    let stored = ids.into_iter().filter_map(|id| recorded.get(&**id));
    let (mut first, mut exchanges) = (None, Vec::new());
    for one in stored {
        first = first.or(Some(one.started_ms));
        exchanges.extend(one.to_exchange());
    }
    // The name of a contract that came with the suite is unknown elsewhere.
    let contract = run.documents.iter();
    let contract = contract.filter(|one| one.kind == "contract" && one.version.is_some());
    Session {
        id: format!("{}-{number:03}", run.id),
        name: Some(format!("{}: {}", run.name, invocation.scenario())),
        source: Some(format!("run {}", run.id)),
        captured_at: first.map(squall_journal::timestamp::rfc3339),
        input: invocation.evidence.turns(),
        exchanges,
        expected_failure: Some(invocation.reason()),
        contract: contract.map(|one| one.name.clone()).next(),
        ..Session::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn invocation(prompt: &str, latency_ms: f64, exchanges: &[&str], state: &str) -> Value {
        json!({ "prompt": prompt, "answer": "no", "latency_ms": latency_ms, "exchanges": exchanges,
            "state": state, "reason": format!("{prompt} is wrong"), "faults_applied": 1 })
    }

    fn cell(invariant: &str, evidence: &[Value]) -> Value {
        json!({ "invariant": invariant, "scenario": "outage", "severity": "high", "state": "failed",
            "reason": null, "faults_applied": 1, "mutation": null, "evidence": evidence })
    }

    fn run(cells: &[Value]) -> RunRecord {
        let run = json!({
            "id": "r1", "kind": "contract", "name": "weather", "state": "failed", "score": 0.0, "passed": false,
            "coverage": { "cells": 2, "chaos_cells": 2, "exercised": 2, "rules_applied": 1, "agent_invocations": 2 },
            "scores": {}, "seed": 7, "created_at": "", "started_at": null, "finished_at": null, "error": null,
            "reason": null, "daemon": "d", "cells": cells,
            "documents": [{ "kind": "contract", "name": "honest", "version": 3, "digest": "" }],
        });
        serde_json::from_value(run).expect("a run")
    }

    fn recorded(id: &str, kind: &str) -> Recorded {
        let entry = json!({
            "id": id, "scope": "s", "started_ms": 1_000, "kind": kind, "dialect": null, "outcome": "injected",
            "fingerprint": 1, "input": null, "answer": { "status": 503, "headers": [], "latency_ms": 1,
                "content": { "body": "" } },
            "request": { "method": "GET", "url": "http://h/", "headers": [], "body": "", "bytes": 0,
                "over_limit": false },
            "version": "HTTP/1.1", "response_bytes": 0, "duration_ms": 3, "faults": [],
        });
        serde_json::from_value(entry).expect("an exchange")
    }

    #[test]
    #[rustfmt::skip]
    fn g36_an_invocation_that_failed_is_one_session_whatever_it_failed() {
        let rome = |state| invocation("Rome", 1.0, &["b", "a", "tunnel", "gone"], state);
        let again = invocation("Rome", 2.0, &["c"], "failed");
        let mut changed = invocation("Rome", 3.0, &[], "failed");
        changed["mutant"] = json!({ "kind": "request_method_attack", "original": ["Rome"], "lineage": ["template put"],
            "request": "{\"method\":\"PUT\"}" });
        let run = run(&[
            cell(
                "honest",
                &[rome("failed"), invocation("Oslo", 1.0, &[], "passed")],
            ),
            cell("short", &[rome("failed"), changed, again]),
            cell(
                "completes",
                &[rome("passed"), invocation("Oslo", 1.0, &[], "failed")],
            ),
        ]);
        let stored = [
            recorded("a", "tool"),
            recorded("b", "tool"),
            recorded("tunnel", "other"),
        ];
        let found: Vec<_> = of(&run, &stored)
            .into_iter()
            .map(|one| {
                let session = &one.session;
                let exchanges = session["exchanges"].as_array().map_or(0, Vec::len);
                let texts = [
                    &session["input"],
                    &session["expected_failure"],
                    &session["contract"],
                ];
                let texts = texts.map(|text| text.as_str().unwrap_or_default().to_owned());
                (one.id, one.invariants, exchanges, one.missing, texts.join("|"))
            })
            .collect();
        let names = |names: &[&str]| {
            names
                .iter()
                .map(|&name| name.to_owned())
                .collect::<Vec<_>>()
        };
        let expected = [
            (
                "r1-001",
                names(&["honest", "short"]),
                2,
                2,
                "Rome|honest: Rome is wrong; short: Rome is wrong|honest",
            ),
            ("r1-003", names(&["short"]), 0, 1, "Rome|short: Rome is wrong|honest"),
            ("r1-004", names(&["completes"]), 0, 0, "Oslo|completes: Oslo is wrong|honest"),
        ];
        let expected = expected.map(|(id, names, exchanges, missing, texts)| {
            (id.to_owned(), names, exchanges, missing, texts.to_owned())
        });
        assert_eq!(found, expected);
    }
}
