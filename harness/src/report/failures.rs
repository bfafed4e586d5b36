//! The failed invocations of a run: each once, and in groups that have one cause.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{severity_rank, telling};
use crate::run::{CellRecord, CellState, EvidenceRecord, RunRecord};

/// Failed invocations with the same invariant, mutation, fault and call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FailureGroup {
    /// Id or type of the invariant.
    pub invariant: String,
    /// `critical`, `high`, `medium` or `low`.
    pub severity: String,
    /// The type of mutation; `null` if the prompts are not mutated.
    pub mutation: Option<String>,
    /// The mode of the fault; `null` if there was none, or if the invariant also fails without chaos.
    pub fault: Option<String>,
    /// The call with the fault: a tool, a model, or a host with a path; `null` if it is unknown.
    pub call: Option<String>,
    /// Whether the invariant also fails without chaos.
    pub baseline_failed: bool,
    /// Number of failed invocations.
    pub invocations: u64,
    /// Their scenarios; the example's is the first.
    pub scenarios: Vec<String>,
    /// Index of the example's cell in the run's `cells`.
    pub cell: usize,
    /// The first of them.
    pub example: EvidenceRecord,
}

impl FailureGroup {
    /// The cause in words, as `error on search`.
    pub fn cause(&self) -> String {
        if self.baseline_failed {
            return "fails without chaos too".to_owned();
        }
        let what: Vec<_> = self.mutation.iter().chain(&self.fault).cloned().collect();
        let what = match &*what {
            // In runs recorded before evidence named the fault.
            [] if self.example.faults_applied > 0 => "a fault that is not recorded".to_owned(),
            [] => "no fault".to_owned(),
            what => what.join(", "),
        };
        match &self.call {
            Some(call) => format!("{what} on {call}"),
            None => what,
        }
    }

    /// Why the example failed.
    pub fn reason(&self) -> &str {
        self.example.reason.as_deref().unwrap_or_default()
    }
}

/// The failed invocations of a run in groups, the largest first. Groups that also fail without chaos come last.
pub fn failure_groups(run: &RunRecord) -> Vec<FailureGroup> {
    let mut groups: Vec<FailureGroup> = Vec::new();
    let mut places = BTreeMap::new();
    for (number, cell) in run.cells.iter().enumerate() {
        let failed = telling(cell).filter(|_| cell.state == CellState::Failed);
        for evidence in failed {
            let chaos = Some(evidence).filter(|_| !cell.baseline_failed);
            let fault = chaos.and_then(|one| one.fault.clone());
            let call = chaos.and_then(|one| one.call.clone());
            let key = (
                &cell.invariant,
                cell.baseline_failed,
                &cell.mutation,
                fault,
                call,
            );
            let (fault, call) = (key.3.clone(), key.4.clone());
            let place = *places.entry(key).or_insert(groups.len());
            if place == groups.len() {
                let reason = evidence.reason.as_ref().or(cell.reason.as_ref());
                groups.push(FailureGroup {
                    invariant: cell.invariant.clone(),
                    severity: cell.severity.clone(),
                    mutation: cell.mutation.clone(),
                    fault,
                    call,
                    baseline_failed: cell.baseline_failed,
                    invocations: 0,
                    scenarios: Vec::new(),
                    cell: number,
                    example: EvidenceRecord {
                        reason: reason.cloned(),
                        ..evidence.clone()
                    },
                });
            }
            let group = &mut groups[place];
            group.invocations += 1;
            if group.scenarios.last() != Some(&cell.scenario) {
                group.scenarios.push(cell.scenario.clone());
            }
        }
    }
    groups.sort_by_key(|group| {
        let severity = severity_rank(&group.severity).unwrap_or(usize::MAX);
        (group.baseline_failed, Reverse(group.invocations), severity)
    });
    groups
}

/// A failed invocation, and the cells that it failed in.
#[derive(Debug)]
pub struct FailedInvocation<'r> {
    /// The invocation.
    pub evidence: &'r EvidenceRecord,
    /// Each cell, with what it records of the invocation; at least one.
    pub failed: Vec<(&'r CellRecord, &'r EvidenceRecord)>,
}

/// Every failed invocation of a run once, in the order of its cells.
pub fn failed_invocations(run: &RunRecord) -> Vec<FailedInvocation<'_>> {
    let mut invocations: Vec<FailedInvocation<'_>> = Vec::new();
    let mut places = BTreeMap::new();
    for cell in &run.cells {
        let failed = cell.evidence.iter();
        for evidence in failed.filter(|invocation| invocation.state == Some(CellState::Failed)) {
            // Two invocations with the same texts differ in their exchanges, or at least in their duration.
            let same = (
                &cell.scenario,
                &evidence.prompt,
                &evidence.exchanges,
                evidence.latency_ms.to_bits(),
            );
            let place = *places.entry(same).or_insert_with(|| {
                invocations.push(FailedInvocation {
                    evidence,
                    failed: Vec::new(),
                });
                invocations.len() - 1
            });
            invocations[place].failed.push((cell, evidence));
        }
    }
    invocations
}

impl<'r> FailedInvocation<'r> {
    /// Its scenario.
    pub fn scenario(&self) -> &'r str {
        self.failed.first().map_or("", |(cell, _)| &cell.scenario)
    }

    /// Whether the request was changed, not the prompt.
    pub fn has_changed_request(&self) -> bool {
        let mutant = self.evidence.mutant.as_ref();
        mutant.is_some_and(|mutant| mutant.request.is_some())
    }

    /// The violated invariants.
    pub fn invariants(&self) -> Vec<&'r str> {
        let cells = self.failed.iter();
        cells.map(|(cell, _)| &*cell.invariant).collect()
    }

    /// The violated invariants, with reasons.
    pub fn reason(&self) -> String {
        let failures = self.failed.iter().map(|(cell, evidence)| {
            let reason = evidence.reason.as_ref().or(cell.reason.as_ref());
            match reason {
                Some(reason) => format!("{}: {reason}", cell.invariant),
                None => cell.invariant.clone(),
            }
        });
        failures.collect::<Vec<_>>().join("; ")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::report::testing::run;

    #[test]
    #[rustfmt::skip]
    fn failures_with_one_cause_are_one_group_and_the_largest_is_first() {
        let mut run = run();
        let cell = |number: usize, scenario: &str, baseline_failed: bool, hits: &[(&str, &str, &str)]| {
            let evidence = hits.iter().map(|(fault, call, state)| {
                json!({ "prompt": format!("{number}"), "answer": null, "latency_ms": 1.0, "exchanges": [],
                        "state": state, "reason": null, "fault": fault, "call": call })
            });
            let evidence: Vec<_> = evidence.collect();
            serde_json::from_value(json!({
                "invariant": "honest", "scenario": scenario, "severity": "high", "state": "failed", "reason": "a lie",
                "faults_applied": 1, "mutation": null, "baseline_failed": baseline_failed, "evidence": evidence,
            })).expect("a cell")
        };
        run.cells = vec![
            cell(0, "always", true, &[("error", "search", "failed"); 3]),
            cell(1, "slow", false, &[("latency", "search", "failed"), ("error", "search", "passed")]),
            cell(2, "outage", false, &[("error", "search", "failed"), ("error", "pay", "failed")]),
            cell(3, "storm", false, &[("error", "search", "failed")]),
        ];
        let groups = failure_groups(&run);
        let groups: Vec<_> = groups.iter().map(|one| {
            (one.cause(), one.invocations, one.scenarios.join("+"), one.cell, one.reason())
        }).collect();
        let text = str::to_owned;
        assert_eq!(groups, [
            (text("error on search"), 2, text("outage+storm"), 2, "a lie"),
            (text("latency on search"), 1, text("slow"), 1, "a lie"),
            (text("error on pay"), 1, text("outage"), 2, "a lie"),
            (text("fails without chaos too"), 3, text("always"), 0, "a lie"),
        ]);
    }
}
