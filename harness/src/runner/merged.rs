//! The result of a spread run, from the runs that executed its scenarios.

use std::collections::{BTreeMap, BTreeSet};

use super::outcome::{self, RunResult};
use super::plan::Component;
use super::spec::RunSpec;
use super::{Ran, RanPart};
use crate::run::{CrewEdge, RecoveryRecord, RunRecord, RunState, StabilityRecord};
use crate::scores::{Column, Matrix, recovery, score_of, unexercised};

/// Merges the finished runs of all scenarios, in the contract's order, and judges them as one run.
pub fn merged(spec: &RunSpec, parts: &[RunRecord]) -> RunResult {
    let doubt = parts.iter().find_map(|part| doubt(spec, part));
    let mut ran = ran(parts);
    ran.proves_nothing = doubt;
    let mut result = outcome::result(spec, ran);
    // Most warnings are about the suite or the agent, and each part has them.
    let mut known = BTreeSet::new();
    result.warnings.retain(|one| known.insert(one.clone()));
    for file in parts.iter().flat_map(|part| &part.documents) {
        if file.kind == "agent" && !result.documents.contains(file) {
            result.documents.push(file.clone());
        }
    }
    result
}

/// Why a part is inconclusive although its cells are not.
fn doubt(spec: &RunSpec, part: &RunRecord) -> Option<String> {
    let scenario = &part.part_of.as_ref()?.scenario;
    let alone = outcome::result(&spec.part("", scenario), ran([part]));
    let doubted = part.state == RunState::Inconclusive && alone.passed == Some(true);
    part.reason.clone().filter(|_| doubted)
}

/// What the parts executed, as if one run had executed all of it.
fn ran<'r>(parts: impl IntoIterator<Item = &'r RunRecord>) -> Ran {
    let mut ran = Ran::default();
    let (mut matrix, mut demands) = (Matrix::default(), Vec::new());
    let mut recoveries: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    let mut edges: BTreeMap<(Option<&str>, &str), CrewEdge> = BTreeMap::new();
    for part in parts {
        matrix.cells.extend(part.cells.iter().cloned());
        for scenario in &part.scenarios {
            let mut scenario = scenario.clone();
            scenario.daemon = Some(part.daemon.clone());
            let idle = part.reason.as_deref();
            let idle = idle.and_then(|why| why.strip_prefix(&*unexercised(&scenario.name)));
            let idle = idle.map(str::to_owned);
            matrix.columns.push(Column { scenario, idle });
        }
        demands.extend(part.demands.iter().cloned());
        for one in &part.recoveries {
            let (passed, judged) = recoveries.entry(&one.family).or_default();
            *passed += one.passed;
            *judged += one.judged;
        }
        for one in &part.crew {
            let edge = edges.entry((one.from.as_deref(), &one.to));
            let edge = edge.or_insert_with(|| CrewEdge {
                from: one.from.clone(),
                to: one.to.clone(),
                ..CrewEdge::default()
            });
            edge.calls += one.calls;
            edge.failed += one.failed;
            edge.faults += one.faults;
        }
        ran.stability = both(ran.stability.take(), part.stability.as_ref());
        ran.distributions.extend(part.distributions.iter().cloned());
        ran.coverage.add(&part.coverage);
        ran.warnings.extend(part.warnings.iter().cloned());
    }
    let recoveries = recoveries.into_iter();
    let recoveries =
        recoveries.filter_map(|(family, (passed, judged))| recovery(family, passed, judged));
    ran.recoveries = recoveries.collect::<Vec<RecoveryRecord>>();
    ran.crew = edges.into_values().collect();
    ran.parts.push(RanPart {
        component: Component::Contract,
        matrix,
        demands,
        chaos_resilience: None,
        robustness: None,
    });
    ran
}

/// The stability of the invocations of two parts.
fn both(one: Option<StabilityRecord>, other: Option<&StabilityRecord>) -> Option<StabilityRecord> {
    let (Some(mut sum), Some(other)) = (one.clone(), other) else {
        return one.or_else(|| other.cloned());
    };
    sum.judged += other.judged;
    sum.always_passed += other.always_passed;
    sum.flaky += other.flaky;
    sum.pass_k = score_of(sum.always_passed, sum.judged);
    Some(sum)
}
