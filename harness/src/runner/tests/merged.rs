//! Results of spread runs.

use super::super::outcome::RunResult;
use super::super::spec::tests::spec;
use super::*;
use crate::run::{CrewEdge, PartOf, RunRecord, RunState};
use crate::runner::merged;

/// A contract with repeats, with or without a scenario in which no fault is applied.
fn contract(idle: &str) -> RunSpec {
    RunSpec {
        kind: crate::run::RunKind::Contract,
        suite: Arc::new(suite_of(&format!("{SUITE}{idle}"))),
        repeat: 2,
        ..spec("")
    }
}

const IDLE: &str = "    - {name: idle, tool_faults: [{tool: nothing, mode: error}]}\n";

/// Executes a run; its result and cells.
async fn executed(spec: &RunSpec) -> (RunResult, Vec<CellRecord>, CoverageRecord) {
    let world = World::default();
    let plan = spec.plan("run-1", Dialler::default(), &<_>::default());
    let alone = tokio::sync::Mutex::default();
    let plan = plan.expect("valid");
    let ran = run(&plan, &world, &world, &scopes(2, &alone), &Silent).await;
    let ran = ran.expect("a run");
    let (cells, coverage) = (ran.parts[0].matrix.cells.clone(), ran.coverage.clone());
    (super::super::outcome::result(spec, ran), cells, coverage)
}

/// The runs that execute the scenarios of a run.
async fn parts(spec: &RunSpec) -> Vec<RunRecord> {
    let mut parts = Vec::new();
    for scenario in spec.scenarios() {
        let part = spec.part("whole", &scenario);
        let (result, cells, coverage) = executed(&part).await;
        assert_eq!(coverage.agent_invocations, part.planned_invocations());
        let mut record = RunRecord {
            state: match result.passed {
                Some(true) => RunState::Passed,
                Some(false) => RunState::Failed,
                None => RunState::Inconclusive,
            },
            reason: result.reason.clone(),
            cells,
            coverage,
            ..part.record("part")
        };
        assert_eq!(
            record.part_of.as_ref().map(|of| &*of.scenario),
            Some(&*scenario)
        );
        result.write_into(&mut record);
        parts.push(record);
    }
    parts
}

#[tokio::test]
async fn the_merged_parts_of_a_run_give_its_result() {
    for idle in ["", IDLE] {
        let spec = contract(idle);
        let (whole, cells, _) = executed(&spec).await;
        let parts = parts(&spec).await;
        let mut found = merged(&spec, &parts);
        for scenario in &mut found.scenarios {
            assert_eq!(scenario.daemon.take().as_deref(), Some(""));
        }
        assert!(found.stability.is_some() && !found.recoveries.is_empty());
        assert_eq!(found, whole);
        let judged = |cell: &CellRecord| {
            (
                cell.invariant.clone(),
                cell.scenario.clone(),
                cell.state,
                cell.reason.clone(),
            )
        };
        let of_parts: Vec<_> = parts
            .iter()
            .flat_map(|part| &part.cells)
            .map(judged)
            .collect();
        let cells: Vec<_> = cells.iter().map(judged).collect();
        assert_eq!(of_parts, cells);
    }
}

#[tokio::test]
async fn a_part_that_proves_nothing_makes_the_run_inconclusive() {
    let spec = contract("");
    let mut parts = parts(&spec).await;
    assert_eq!(merged(&spec, &parts).passed, Some(true));
    parts[1].state = RunState::Inconclusive;
    parts[1].reason = Some("2 of its exchanges were lost".into());
    let found = merged(&spec, &parts);
    assert_eq!(
        (found.passed, found.reason),
        (None, parts[1].reason.clone())
    );
}

#[test]
fn counts_of_parts_are_summed_and_texts_are_kept_once() {
    let spec = contract("");
    let edge = |to: &str, calls| CrewEdge {
        to: to.into(),
        calls,
        failed: 1,
        ..CrewEdge::default()
    };
    let part = |crew: Vec<CrewEdge>| RunRecord {
        part_of: Some(PartOf {
            run: "whole".into(),
            scenario: "clean".into(),
        }),
        warnings: vec!["the agent is stateful".into()],
        crew,
        ..RunRecord::default()
    };
    let found = merged(
        &spec,
        &[
            part(vec![edge("worker", 2), edge("writer", 1)]),
            part(vec![edge("worker", 3)]),
        ],
    );
    assert_eq!(found.warnings, ["the agent is stateful"]);
    let crew = found
        .crew
        .iter()
        .map(|one| (&*one.to, one.calls, one.failed));
    assert_eq!(
        crew.collect::<Vec<_>>(),
        [("worker", 5, 2), ("writer", 1, 1)]
    );
}
