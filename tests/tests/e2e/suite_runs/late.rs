//! Calls that an agent makes when it has answered: they are of the invocation that they belong to, and of no other.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use squall_tests::Daemon;

use super::{Agent, TOOL, judged, run, stage};

/// A tool that may be called once in an invocation, and fails at the first call.
fn suite(agent: &Value) -> Value {
    json!({
        "name": "late",
        "agent": agent,
        "golden_prompts": ["Paris", "Rome", "Oslo"],
        "tools": { "weather": { "match_url": format!("http://{TOOL}/json*") } },
        "contract": {
            "name": "once",
            "invariants": [
                { "id": "once", "type": "max_calls", "tool": "weather", "max": 1, "severity": "critical" },
                { "id": "honest", "type": "contains", "value": "unavailable", "when": "tool_faults_active" },
            ],
            "chaos_matrix": [
                { "name": "clean" },
                { "name": "first-call-fails", "tool_faults": [{ "tool": "weather", "mode": "error", "calls": [1] }] },
            ],
        },
    })
}

fn late(daemon: &Daemon) -> Vec<Value> {
    let mut all = daemon.api.exchanges();
    all.retain(|one| one["url"].as_str().is_some_and(|url| url.contains("LATE")));
    all
}

#[test]
fn a_call_for_an_invocation_that_is_over_belongs_to_it_at_any_concurrency() {
    let mut all = Vec::new();
    for (carries, concurrency) in [("baggage", 8), ("traceparent", 1)] {
        let told = format!("{carries} at {concurrency}");
        let (stage, _tool) = stage();
        let agent = Agent::serve("late_server.py", &stage, carries);
        let suite = suite(&json!({ "endpoint": agent.endpoint }));
        let options = json!({ "seed": 7, "concurrency": concurrency });
        let run = run(&stage.daemon, "contract", &suite, &options);
        assert_eq!(run["state"], "passed", "{told}: {run:#}");
        let warning = run["warnings"][0].as_str().unwrap_or_default();
        assert!(
            warning.starts_with(
                "3 calls came when the invocation was over, GET http://tool.test/json?q=LATE-OF-"
            ),
            "{told}: {run:#}"
        );
        let late = late(&stage.daemon);
        assert_eq!(late.len(), 3, "{told}: {late:#?}");
        let scopes: BTreeSet<_> = late.iter().map(|one| one["scope"].as_str()).collect();
        assert_eq!(
            scopes.len(),
            3,
            "{told}: one of each prompt's first invocation: {scopes:?}"
        );
        for one in &late {
            assert_eq!(
                (&one["run"], &one["rules"]),
                (&run["id"], &json!([])),
                "{told}: {one:#}"
            );
        }
        all.push(judged(&run));
    }
    for other in &all[1..] {
        assert_eq!(other, &all[0]);
    }
}
