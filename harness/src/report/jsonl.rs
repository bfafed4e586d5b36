//! Failed invocations as JSON Lines, for triage and for data sets.

use std::collections::HashMap;

use serde::Serialize;

use super::Report;
use super::failures::failed_invocations;
use super::json::escaped;
use crate::run::MutantRecord;

/// A line.
#[derive(Serialize)]
struct FailureLine<'r> {
    run: &'r str,
    scenario: &'r str,
    invariants: Vec<&'r str>,
    mutation: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mutant: Option<&'r MutantRecord>,
    repeat: Option<u64>,
    prompt: &'r str,
    answer: Option<&'r str>,
    faults: Vec<AppliedFault<'r>>,
    reason: String,
}

/// A fault that was applied to an exchange of the invocation.
#[derive(Serialize)]
struct AppliedFault<'r> {
    rule: &'r str,
    mode: &'r str,
    exchange: &'r str,
}

/// Every failed invocation of the run, a line each.
pub(super) fn document(report: &Report) -> String {
    let exchanges = report.exchanges.iter();
    let exchanges: HashMap<_, _> = exchanges.map(|one| (&*one.id, one)).collect();
    let mut lines = String::new();
    for invocation in failed_invocations(&report.run) {
        let evidence = invocation.evidence;
        let hit = evidence.exchanges.iter();
        let hit = hit.filter_map(|id| exchanges.get(&**id));
        let faults = hit.flat_map(|exchange| {
            exchange.applied().map(|rule| AppliedFault {
                rule: &rule.rule,
                mode: &rule.mode,
                exchange: &exchange.id,
            })
        });
        let cell = invocation.failed.first().map(|(cell, _)| cell);
        let line = FailureLine {
            run: &report.run.id,
            scenario: invocation.scenario(),
            invariants: invocation.invariants(),
            mutation: cell.and_then(|cell| cell.mutation.as_deref()),
            mutant: evidence.mutant.as_ref(),
            repeat: evidence.repeat,
            prompt: &evidence.prompt,
            answer: evidence.answer.as_deref(),
            faults: faults.collect(),
            reason: invocation.reason(),
        };
        // Texts and numbers only, so serialisation cannot fail.
        lines += &escaped(&serde_json::to_string(&line).expect("a line is JSON"));
        lines.push('\n');
    }
    lines
}
