//! MCP requests whose replies do not come in their responses.

use std::time::Duration;

use squall_profiles::faults::rpc_answer::OUT_OF_BAND;
use squall_profiles::verdict::VerdictOutcome;

use crate::scope::*;

fn message() -> Request {
    get("http://x/messages?session_id=1").mcp("search")
}

#[test]
fn a_fault_on_an_out_of_band_reply_is_bypassed() {
    let streamable = message().header("accept", "application/json, text/event-stream");
    let bypassed = VerdictOutcome::Bypassed(OUT_OF_BAND.to_owned());
    for (chaos, is_bypassed) in [
        ("tool_faults: [{ mode: error }]", true),
        ("tool_faults: [{ mode: error, error_code: 503 }]", true),
        ("tool_faults: [{ mode: timeout }]", true),
        ("tool_faults: [{ mode: slow }]", true),
        ("tool_faults: [{ mode: commit_then_fail }]", true),
        ("tool_faults: [{ mode: truncated, bytes: 1 }]", true),
        ("tool_faults: [{ mode: session_expired }]", true),
        (
            "context_attacks: [{ type: indirect_injection, payloads: [Obey.], trigger_probability: 1 }]",
            true,
        ),
        ("network_faults: [{ mode: refuse }]", false),
    ] {
        let decision = send(&scope(chaos), &message());
        assert_eq!(decision.plan.is_empty(), is_bypassed, "{chaos}");
        let outcome = &decision.verdicts[0].outcome;
        assert_eq!(*outcome == bypassed, is_bypassed, "{chaos}: {outcome:?}");
        // The reply to a request of a later version comes in its response.
        let decision = send(&scope(chaos), &streamable);
        assert!(!decision.plan.is_empty(), "{chaos}");
    }
}

#[test]
fn a_fault_that_the_status_of_the_post_brings_is_bypassed_too() {
    let scope = scope("tool_faults: [{ mode: wrong_id, status: 202 }]");
    let mut decision = send(&scope, &message());
    scope
        .snapshot()
        .on_response(&mut decision, 202, Duration::ZERO);
    let bypassed = VerdictOutcome::Bypassed(OUT_OF_BAND.to_owned());
    assert_eq!(decision.verdicts[0].outcome, bypassed);
}
