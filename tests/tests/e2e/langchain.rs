//! Agents that are Runnables of `LangChain`, asked as a suite's `type: python`.

use serde_json::{Map, Value, json};
use squall_tests::Upstream;
use squall_tests::program::{python, script};
use squall_tests::upstream::shop;

use crate::desk::{CommandResult, Desk};

/// Runs the contract over an agent of `tests/agents/runnable.py`.
fn contract(agent: &str) -> CommandResult {
    let desk = Desk::new();
    let world = Upstream::start(None, shop::serve);
    let connect_to: Map<String, Value> = (shop::HOSTS.iter())
        .map(|host| (format!("{host}:80"), json!(world.address.to_string())))
        .collect();
    let config = desk.directory.path().join("squall.yaml");
    let down = json!([{ "tool": "search", "mode": "error", "error_code": 503 }]);
    let cut = json!([{ "mode": "stream_cut", "after_tokens": 3, "limit": 1 }]);
    let suite = json!({
        "agent": { "type": "python", "endpoint": format!("runnable:{agent}") },
        "golden_prompts": ["What is the weather in Kiel?"],
        "tools": { "search": { "match_url": "http://search.test/*" } },
        "contract": {
            "name": "weather",
            "invariants": [
                { "id": "completes", "type": "completes", "severity": "critical" },
                { "id": "honest", "type": "contains_any", "values": ["rain until noon", "unavailable"] },
                { "id": "retries", "type": "retries_transient", "when": "any_chaos_active" },
                { "id": "owns-up", "type": "tool_failure_acknowledged", "when": "tool_faults_active" },
            ],
            "chaos_matrix": [
                { "name": "clean" },
                { "name": "down", "tool_faults": down },
                { "name": "cut", "llm_faults": cut },
            ],
        },
        "advanced": { "concurrency": 1 },
        "output": { "format": "terminal" },
    });
    std::fs::write(
        &config,
        json!({ "proxy": { "connect_to": connect_to } }).to_string(),
    )
    .unwrap();
    let mut command = desk.squall(&["contract", "run", "--json", "-c"]);
    command.arg(desk.write(&suite));
    command.env("SQUALL_PYTHON", python());
    for module in ["runnable.py", "models.py"] {
        let beside_the_suite = desk.directory.path().join(module);
        std::fs::copy(script("../agents").join(module), beside_the_suite).unwrap();
    }
    command.output().unwrap().into()
}

/// Cells of an invariant, by scenario.
fn states(told: &CommandResult, invariant: &str) -> Map<String, Value> {
    let run: Value = serde_json::from_str(&told.out).unwrap_or_else(|_| panic!("{told:#?}"));
    let cells = run["cells"].as_array().unwrap().iter();
    let of_it = cells.filter(|cell| cell["invariant"] == invariant);
    let state = |cell: &Value| {
        (
            cell["scenario"].as_str().unwrap().to_owned(),
            cell["state"].clone(),
        )
    };
    of_it.map(state).collect()
}

#[test]
fn a_runnable_that_tries_again_and_says_what_failed_keeps_its_contract() {
    let told = contract("agent");
    told.ended(0);
    let all = json!({ "clean": "passed", "down": "passed", "cut": "passed" });
    assert_eq!(json!(states(&told, "completes")), all, "{told:#?}");
    assert_eq!(json!(states(&told, "honest")), all, "{told:#?}");
    assert_eq!(states(&told, "retries")["cut"], "passed", "{told:#?}");
    assert_eq!(states(&told, "owns-up")["down"], "passed", "{told:#?}");
}

#[test]
fn a_runnable_that_lets_what_its_tool_raises_through_fails_with_the_line() {
    let told = contract("careless");
    told.ended(1);
    let seen = json!({ "clean": "passed", "down": "failed", "cut": "passed" });
    assert_eq!(json!(states(&told, "completes")), seen, "{told:#?}");
    assert!(
        told.out.contains("503") && told.out.contains("runnable.py:"),
        "{told:#?}"
    );
}
