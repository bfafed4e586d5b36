//! Connections that an agent keeps from one invocation to the next: none is closed that it may be about to use, and
//! none keeps a fault of connections away.

use serde_json::{Value, json};
use squall_tests::Stage;
use squall_tests::program::client;
use squall_tests::upstream::standard;

use super::{Agent, cell, run};

/// An agent with one connection, kept as long as nobody says that it ends.
fn agent(stage: &Stage, tool: &str) -> Agent {
    let mut command = client("kept_server.py");
    command
        .args([&*stage.daemon.proxy.to_string(), tool, "baggage"])
        .env("SSL_CERT_FILE", &stage.daemon.ca);
    Agent::spawn(command)
}

fn contract(stage: &Stage, agent: &Agent, scenarios: &Value) -> Value {
    let suite = json!({
        "name": "kept",
        "agent": { "endpoint": agent.endpoint },
        "golden_prompts": ["Paris", "Rome", "Oslo"],
        "tools": { "weather": { "match_url": ["http://*", "https://*"] } },
        "contract": {
            "name": "kept",
            "invariants": [
                { "id": "not_cut", "type": "not_contains", "value": "closed unasked" },
                { "id": "called", "type": "tool_called", "tool": "weather" },
                { "id": "once", "type": "max_calls", "tool": "weather", "max": 1 },
            ],
            "chaos_matrix": scenarios,
        },
    });
    run(
        &stage.daemon,
        "contract",
        &suite,
        &json!({ "seed": 7, "concurrency": 1 }),
    )
}

fn answers(run: &Value) -> Vec<String> {
    let cells = run["cells"].as_array().unwrap().iter();
    let evidence = cells
        .filter(|cell| cell["invariant"] == "not_cut")
        .flat_map(|cell| cell["evidence"].as_array().unwrap());
    let answers = evidence.map(|one| one["answer"].as_str().unwrap_or_default().to_owned());
    answers.collect()
}

#[test]
fn a_connection_outlives_the_invocation_that_opened_it() {
    let stage = Stage::with(&json!({}), standard::serve);
    for (tool, scheme) in [
        (format!("http://{}/json", stage.plain.address), "http"),
        (
            format!("https://{}/json", stage.secure_authority()),
            "https",
        ),
    ] {
        let agent = agent(&stage, &tool);
        let scenarios = json!([
            { "name": "clean" },
            { "name": "down", "tool_faults": [{ "tool": "*", "mode": "error", "error_code": 503 }] },
        ]);
        let run = contract(&stage, &agent, &scenarios);
        assert_eq!(run["state"], "passed", "{scheme}: {run:#}");
        let answers = answers(&run);
        assert_eq!(answers.len(), 6, "{scheme}: {answers:#?}");
        for answer in &answers {
            assert!(
                answer.ends_with("over connection 1"),
                "{scheme}: {answers:#?}"
            );
        }
        let faulted = answers
            .iter()
            .filter(|answer| answer.contains("status 503"));
        assert_eq!(faulted.count(), 3, "{scheme}: {answers:#?}");
    }
}

#[test]
fn faults_of_connections_are_met_in_each_invocation_by_an_agent_that_keeps_them() {
    for fault in [
        json!({ "mode": "tls_failure", "kind": "untrusted" }),
        json!({ "mode": "refuse" }),
    ] {
        let stage = Stage::with(&json!({}), standard::serve);
        let agent = agent(
            &stage,
            &format!("https://{}/json", stage.secure_authority()),
        );
        let scenarios = json!([
            { "name": "clean" },
            { "name": "broken", "network_faults": [fault] },
            { "name": "at first", "network_faults": [{ "mode": "refuse", "calls": [1] }] },
            { "name": "slow", "network_faults": [{ "mode": "latency", "delay_ms": 1 }] },
            { "name": "clean again" },
        ]);
        let run = contract(&stage, &agent, &scenarios);
        assert_eq!(run["state"], "passed", "{fault}: {run:#}");
        let answers = answers(&run);
        let faulted = answers
            .iter()
            .filter(|answer| answer.contains("unavailable"));
        assert_eq!(
            (answers.len(), faulted.count()),
            (15, 6),
            "{fault}: {answers:#?}"
        );
    }
}

#[test]
fn over_http2_a_goaway_says_that_a_connection_ends_and_what_was_begun_is_answered() {
    let stage = Stage::with(&json!({ "safety": { "commands": true } }), standard::serve);
    // Three requests at once over one connection, in the scope that the proxy's variables name.
    let ask = format!(
        "scope=$${{HTTP_PROXY#http://}}; nghttp -nv -m 3 -H \"x-squall-scope: $${{scope%%:*}}\" http://{}/up/json",
        stage.daemon.proxy
    );
    for (fault, expected) in [("refuse", "passed"), ("reset_peer", "failed")] {
        let suite = json!({
            "name": "h2",
            "agent": { "type": "command", "command": ["sh", "-c", ask] },
            "golden_prompts": ["one"],
            "contract": {
                "name": "h2",
                "invariants": [
                    { "id": "all", "type": "regex", "pattern": "(?s)(:status: 200.*){3}" },
                    { "id": "told", "type": "regex", "pattern": "recv GOAWAY frame" },
                ],
                "chaos_matrix": [{ "name": "elsewhere", "network_faults": [
                    { "mode": fault, "match_url": "https://elsewhere.test/*" },
                    { "mode": "latency", "delay_ms": 1 },
                ] }],
            },
        });
        let run = run(&stage.daemon, "contract", &suite, &json!({ "seed": 7 }));
        let judged = |id| &cell(&run, id, "elsewhere")["state"];
        assert_eq!(judged("all"), "passed", "{fault}: {run:#}");
        assert_eq!(judged("told"), expected, "{fault}: {run:#}");
    }
}
