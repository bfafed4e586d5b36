//! Scenarios whose rules match no call: the run says by what.

use serde_json::json;

use super::{Agent, cell, run, stage, suite};

#[test]
fn a_cell_names_the_rule_that_came_nearest_when_the_run_is_over() {
    let (stage, _tool) = stage();
    let agent = Agent::of(&stage, "baggage");
    let mut suite = suite(&agent);
    suite["contract"]["chaos_matrix"] = json!([
        { "name": "host", "tool_faults": [
            { "id": "far", "mode": "error", "match_url": "https://elsewhere.example/v1/*" },
            { "id": "near", "mode": "error", "match_url": "http://toll.test/*" },
        ] },
        { "name": "kind", "llm_faults": [{ "id": "model", "mode": "timeout" }] },
        { "name": "both", "llm_faults": [{ "id": "model", "mode": "timeout", "match_url": "http://toll.test/*" }] },
    ]);
    let run = run(&stage.daemon, "contract", &suite, &json!({}));
    assert_eq!(run["state"], "inconclusive", "{run:#}");
    for (scenario, expected) in [
        (
            "host",
            "no rule matched one: rule `near` missed: its `match_url` is `http://toll.test/*`; the URL is \
             http://tool.test/json",
        ),
        (
            "kind",
            "rule `model` missed: `llm_faults` touch model calls",
        ),
        ("both", "each missed by more than one condition"),
    ] {
        let cell = cell(&run, "completes", scenario);
        assert_eq!(cell["state"], "not_exercised", "{scenario}: {cell:#}");
        let reason = cell["reason"].as_str().unwrap();
        assert!(reason.contains(expected), "{scenario}: {reason}");
    }
}
