//! Rules that wait for the upstream's status.

use std::time::Duration;

use squall_profiles::plan::Substitute;

use crate::scope::*;

#[test]
fn a_rule_with_a_status_is_decided_once_the_answer_is_there() {
    for (set, status, expected) in [
        ("200", 200, true),
        ("200", 201, false),
        ("2xx", 204, true),
        ("[500, 4xx]", 404, true),
        ("[500, 4xx]", 502, false),
    ] {
        let scope = scope(&format!(
            "tool_faults: [{{ id: a, mode: truncated, status: {set} }}]"
        ));
        let snapshot = scope.snapshot();
        let mut decision = send_at(&snapshot, &get("http://x/"), Duration::ZERO);
        assert!(decision.awaits_response() && decision.plan.is_empty());
        snapshot.on_response(&mut decision, status, Duration::ZERO);
        assert_eq!(!fired(&decision).is_empty(), expected, "{set} on {status}");
        assert_eq!(decision.plan.edits.len(), usize::from(expected));
    }
}

#[test]
fn only_answers_of_that_status_count_as_calls() {
    let scope = scope("tool_faults: [{ id: a, mode: truncated, status: 200, after_calls: 1 }]");
    let found = [500, 200, 500, 200].map(|status| {
        let snapshot = scope.snapshot();
        let mut decision = send_at(&snapshot, &get("http://x/"), Duration::ZERO);
        snapshot.on_response(&mut decision, status, Duration::ZERO);
        fired(&decision).join(" ")
    });
    assert_eq!(found, ["", "", "", "a"]);
}

#[test]
fn a_later_decision_gives_way_to_the_earlier_one() {
    let scope = scope(
        "tool_faults:
           - { id: cut, mode: truncated }
           - { id: stale, mode: commit_then_fail, reset: true, status: 200 }
           - { id: fail, mode: commit_then_fail, status: 200 }",
    );
    let snapshot = scope.snapshot();
    let mut decision = send_at(&snapshot, &get("http://x/"), Duration::ZERO);
    snapshot.on_response(&mut decision, 200, Duration::ZERO);
    assert_eq!(
        outcomes(&decision),
        [
            "cut: bypassed, rule `stale` decides the answer, so there is nothing to change",
            "stale: chosen",
            "fail: bypassed, rule `stale` already decides the answer",
        ]
    );
    assert_eq!(decision.plan.afterwards, Some((1, Substitute::Reset)));
}

#[test]
fn a_draw_for_a_status_takes_its_attempt_when_the_request_arrives() {
    let scope = scope("tool_faults: [{ mode: truncated, status: 200, probability: 0.5 }]");
    let attempts = [1, 2].map(|_| send(&scope, &get("http://x/")).attempt);
    assert_eq!(attempts, [Some(1), Some(2)]);
}
