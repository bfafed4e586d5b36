//! Runs under rising concurrency.

use std::time::Duration;

use super::super::loading::{self, Loading};
use super::super::spec::tests::spec;
use super::*;
use crate::mutations::Mutants;
use crate::run::{LoadFailures, LoadRecord, RunKind};

const COMPLETES: &str = "{type: completes}";

/// Measures an agent at 1, 2 and 4 invocations at once, judged by these invariants while its tool fails.
async fn measured(world: &World, invariants: &str, within: Option<Duration>) -> LoadRecord {
    let suite = suite_of(&format!(
        "agent: {{endpoint: 'http://agent.test/'}}\ngolden_prompts: [hello]\ninvariants: [{invariants}]\n\
         chaos: {{tool_faults: [{{tool: '*', mode: error}}]}}"
    ));
    let spec = RunSpec {
        kind: RunKind::Load,
        concurrency: "1..4".parse().expect("a range"),
        chaos: suite.chaos.as_ref().map(|chaos| Trial::of("chaos", chaos)),
        suite: Arc::new(suite),
        ..spec("")
    };
    assert_eq!(spec.errors(), []);
    let mutants = Mutants::default();
    let plan = spec
        .plan("r", Dialler::default(), &mutants)
        .expect("a plan");
    let alone = tokio::sync::Mutex::default();
    let mut loading = Loading::new(&spec, &Silent);
    loading.within = within.unwrap_or(loading.within);
    let scopes = scopes(spec.at_once().get(), &alone);
    let ran = super::super::run(&plan, &mut loading, world, world, &scopes, &Silent).await;
    ran.expect("a run");
    loading.into_record()
}

#[tokio::test]
async fn each_level_runs_as_many_invocations_at_once_under_one_activation() {
    for is_plain in [false, true] {
        let world = World {
            is_plain,
            ..World::default()
        };
        let load = measured(&world, COMPLETES, None).await;
        assert_eq!(load.calls_by_level, is_plain);
        assert_eq!(load.breaks_at, None, "{load:#?}");
        for (level, concurrency) in load.levels.iter().zip([1, 2, 4]) {
            assert_eq!(level.concurrency, concurrency);
            let counts = [
                level.invocations,
                level.succeeded,
                level.calls,
                level.calls_needed,
            ];
            assert_eq!(counts, [10; 4], "{level:#?}");
            assert_eq!(level.amplification, Some(1.0));
        }
        assert_eq!(load.levels.len(), 3);
        world.state(|state| {
            assert_eq!(state.most_in_flight, 4);
            let continued = state
                .begun
                .iter()
                .filter(|(_, wanted)| wanted.after.is_some());
            let continued: Vec<_> = continued.map(|(_, wanted)| wanted.after.clone()).collect();
            let mut levels = continued.clone();
            levels.dedup();
            let expected = if is_plain { (0, 0) } else { (30, 3) };
            assert_eq!((continued.len(), levels.len()), expected);
        });
    }
}

#[tokio::test]
async fn failures_are_counted_by_their_cause() {
    let failures = |errors, wrong_answers| LoadFailures {
        errors,
        wrong_answers,
        ..LoadFailures::default()
    };
    let well = "{type: contains, value: well}";
    for (fails_at, invariants, expected) in [
        (None, COMPLETES, failures(0, 0)),
        (None, well, failures(0, 10)),
        (Some("hello"), COMPLETES, failures(10, 0)),
        // The first cause counts.
        (Some("hello"), well, failures(10, 0)),
    ] {
        let world = World {
            fails_at,
            ..World::default()
        };
        let load = measured(&world, invariants, None).await;
        for level in &load.levels {
            assert_eq!(level.failures, expected, "{invariants}: {level:#?}");
        }
        let breaks = (expected.sum() > 0).then_some(1);
        assert_eq!(load.breaks_at, breaks);
        let is_failed =
            |has_minimum| matches!(loading::outcome(&load, has_minimum), RunOutcome::Failed(_));
        assert_eq!(
            (is_failed(true), is_failed(false)),
            (breaks.is_some(), false)
        );
    }
}

#[tokio::test]
async fn invocations_that_do_not_begin_in_time_are_left_out() {
    let world = World::default();
    let load = measured(&world, COMPLETES, Some(Duration::ZERO)).await;
    for level in &load.levels {
        assert_eq!(
            (level.left_out, level.invocations, level.success),
            (10, 0, None)
        );
    }
    // Only the clean baseline.
    assert_eq!(world.state(|state| state.asked), 1);
    let outcome = loading::outcome(&load, false);
    assert!(
        matches!(outcome, RunOutcome::Inconclusive(_)),
        "{outcome:?}"
    );
}

#[test]
fn a_run_that_cannot_be_measured_is_rejected() {
    for (kind, concurrency, agent, expected) in [
        (RunKind::Load, "1..64", "", None),
        (RunKind::Load, "8", "", None),
        (RunKind::Load, "1..65", "", Some("/options/concurrency")),
        (
            RunKind::Load,
            "1..2",
            "reset_endpoint: 'http://agent.test/reset'",
            Some("/suite/agent"),
        ),
        (
            RunKind::Load,
            "1..2",
            "reset_endpoint: 'http://agent.test/reset', reset: {isolated: true}",
            None,
        ),
        (RunKind::Chaos, "1..2", "", Some("/options/concurrency")),
        (RunKind::Chaos, "2", "", None),
    ] {
        let text = format!(
            "agent: {{endpoint: 'http://agent.test/', {agent}}}\ngolden_prompts: [hello]\ninvariants: [{{type: completes}}]\n\
             chaos: {{tool_faults: [{{tool: '*', mode: error}}]}}"
        );
        let suite = Arc::new(suite_of(&text));
        let chaos = Trial::of("chaos", suite.chaos.as_ref().expect("chaos"));
        let spec = RunSpec {
            kind,
            suite,
            chaos: Some(chaos),
            concurrency: concurrency.parse().expect("a range"),
            ..spec("")
        };
        let errors = spec.errors();
        let found = errors.first().map(|error| &*error.pointer);
        assert_eq!(found, expected, "{concurrency} {agent}: {errors:?}");
    }
}
