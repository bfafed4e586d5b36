//! What is in force where a run has a scope for itself.

use super::*;

/// Chaos of somebody in a scope, then a run that has it for itself and is between two invocations.
fn taken(bench: &Bench, scope: &str, request: ChaosRequest) -> (ActivationRecord, Arc<RunMark>) {
    let before = bench.chaos.put(scope, request).expect("valid");
    let run = RunMark::new("r");
    for _ in 0..2 {
        let own = for_run(&bench.chaos, scope, &run);
        assert_eq!(bench.rules(scope), 0);
        bench.chaos.close_for_run(&own);
    }
    assert_eq!(bench.rules(scope), 0);
    let suspended = bench.chaos.look(scope).suspended.expect("it is said");
    assert_eq!(
        (suspended.profile, &*suspended.run),
        (before.profile.clone(), "r")
    );
    (before, run)
}

#[test]
fn what_a_run_suspends_is_in_force_again_as_it_was() {
    for scope in [DEFAULT_SCOPE, "w"] {
        for one in [Some(scope), None] {
            let bench = bench();
            let (before, run) = taken(&bench, scope, inline(TWO_RULES));
            let counted = bench.chaos.end_for_run(one, &run);
            assert_eq!((counted, run.why()), (1, None), "{scope}");
            assert_eq!(bench.chaos.look(scope), before, "{scope}");
            let ended = bench.chaos.scope(Some(scope)).ended().is_cancelled();
            assert!(!ended, "{scope}");
            assert!(bench.chaos.end(scope), "{scope}");
            assert_eq!(bench.rules(scope), 0, "{scope}");
        }
    }
}

#[test]
fn nothing_comes_back_that_was_ended_or_replaced_meanwhile() {
    for scope in [DEFAULT_SCOPE, "w"] {
        for (what, rules) in [("end", 0), ("all", 0), ("put", 1)] {
            let bench = bench();
            let (_, run) = taken(&bench, scope, inline(TWO_RULES));
            match what {
                "end" => assert!(bench.chaos.end(scope), "{scope}"),
                "all" => assert_eq!(bench.chaos.end_all(None), 1, "{scope}"),
                _ => drop(bench.put(scope, "tool_faults: [{ mode: empty }]")),
            }
            assert!(run.why().is_some(), "{scope} {what}");
            bench.chaos.end_for_run(None, &run);
            assert_eq!(bench.rules(scope), rules, "{scope} {what}");
        }
    }
}

#[test]
fn what_is_suspended_takes_over_edits() {
    let bench = bench();
    let edit = |text: &str| bench.chaos.edit(put_profile("mine", text)).expect("valid");
    edit("name: mine\ntool_faults: [{ mode: empty }]");
    let (_, run) = taken(&bench, DEFAULT_SCOPE, ChaosRequest::profile("mine"));
    edit("name: mine\ntool_faults: [{ mode: empty }, { mode: error }]");
    assert_eq!(bench.rules(DEFAULT_SCOPE), 0);
    bench.chaos.end_for_run(None, &run);
    assert_eq!(bench.rules(DEFAULT_SCOPE), 2);
}
