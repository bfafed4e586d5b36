//! Incidents as tests: what was recorded is replayed without its upstreams, and judged.

use std::fs;
use std::process::Output;

use serde_json::{Value, json};

use crate::desk::{CommandResult, Desk};

/// A suite whose agent must say this.
fn suite(agent: &Value, said: &str) -> Value {
    json!({
        "agent": agent,
        "invariants": [{ "id": "says-so", "type": "contains", "value": said }],
        "golden_prompts": ["Weather?"],
        "output": { "format": "terminal" },
    })
}

/// Records one call of the agent's tool, and adds the prompt; the session.
fn recorded(desk: &Desk, agent: &Value, id: &str) -> String {
    let command = agent["command"].as_array().unwrap().iter();
    let command: Vec<_> = command.map(|word| word.as_str().unwrap()).collect();
    let file = format!("{id}.yaml");
    let record = ["run", "--quiet", "--record", &file, "--"];
    let output: Output = desk.squall(&record).args(command).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let path = desk.directory.path().join(&file);
    let text = fs::read_to_string(&path).unwrap();
    // The program got its prompt on stdin, so no model call shows it.
    fs::write(
        &path,
        format!("input: Weather?\nexpected_failure: it was cloudy\n{text}"),
    )
    .unwrap();
    file
}

fn replay(desk: &Desk, suite: &Value, more: &[&str]) -> CommandResult {
    let file = desk.write(suite);
    desk.run(&[&["replay", "run"][..], more].concat(), &file)
}

/// The run that a command printed.
fn run_of(result: &CommandResult) -> Value {
    serde_json::from_str(&result.out).unwrap_or_else(|error| panic!("{error}: {result:#?}"))
}

#[test]
fn what_was_recorded_is_replayed_without_its_upstreams() {
    let desk = Desk::new();
    let agent = desk.agent("/json", &[]);
    let session = recorded(&desk, &agent, "incident");
    let opened = desk.tool.opened();
    let suite = suite(&agent, "sunny");
    let passed = replay(&desk, &suite, &[&session, "--json"]);
    passed.ended(0);
    let run = run_of(&passed);
    assert_eq!(run["kind"], "replay");
    assert_eq!(run["scores"]["replay_regression"], 100.0, "{run:#}");
    let [replayed] = &run["replays"].as_array().unwrap()[..] else {
        panic!("{run:#}");
    };
    for (count, expected) in [("served", 1), ("missed", 0), ("dialled", 0)] {
        assert_eq!(replayed[count], expected, "{count}: {run:#}");
    }
    assert_eq!(replayed["calls"][0]["state"], "same", "{run:#}");
    assert_eq!(desk.tool.opened(), opened);
}
