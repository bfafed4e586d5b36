//! Invariants over turns and conversations, and faults of conversations, with an agent that has sessions
//! (`tests/agents/sessions.py`) and its buggy twins.

use std::net::TcpListener;

use serde_json::{Value, json};
use squall_tests::program::{python, script};

use crate::desk::{CommandResult, Desk};

/// A suite for the agent with this bug.
fn suite(desk: &Desk, bug: &str, invariants: &Value, scenarios: &Value, turns: &[&str]) -> Value {
    let port = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = port.local_addr().unwrap().port();
    let tool = format!("http://{}/json", desk.tool.address);
    let agent = script("../agents/sessions.py");
    let prompt = if turns.len() == 1 {
        json!(turns[0])
    } else {
        json!(turns)
    };
    json!({
        "name": "sessions",
        "agent": {
            "endpoint": format!("http://127.0.0.1:{port}/chat"),
            "start": {
                "command": [python(), agent, port.to_string(), tool, bug],
                "ready_url": format!("http://127.0.0.1:{port}/ready"),
            },
            "reset_endpoint": format!("http://127.0.0.1:{port}/reset"),
        },
        "golden_prompts": [prompt],
        "contract": { "name": "sessions", "invariants": invariants, "chaos_matrix": scenarios },
        "output": { "format": "terminal" },
    })
}

/// The run of a suite.
fn run(desk: &Desk, suite: &Value) -> Value {
    let printed = desk.run(&["contract", "run", "--json"], &desk.write(suite));
    serde_json::from_str(&printed.out).unwrap_or_else(|error| panic!("{error}: {printed:#?}"))
}

/// State and reason of the cell in a scenario.
fn cell<'r>(run: &'r Value, scenario: &str) -> (&'r str, &'r str) {
    let mut cells = run["cells"]
        .as_array()
        .unwrap_or_else(|| panic!("{run:#}"))
        .iter();
    let cell = cells.find(|cell| cell["scenario"] == scenario);
    let cell = cell.unwrap_or_else(|| panic!("{scenario}: {run:#}"));
    let text = |name: &str| cell[name].as_str().unwrap_or_default();
    (text("state"), text("reason"))
}

#[test]
fn each_invariant_fails_the_agent_with_its_bug_and_no_other() {
    let name = ["My name is Ada.", "What is my name?"];
    let reference = ["Add a pen.", "Add a book.", "What is my reference?"];
    let remembers = json!({ "type": "remembers", "value": "Ada" });
    let consistent = json!({ "type": "consistent", "repeat": 3 });
    let crossing = json!({ "type": "no_cross_session" });
    for (bug, invariant, turns, state, why) in [
        (
            "none",
            &remembers,
            &name[..],
            "passed",
            "the answer to turn 2 has",
        ),
        (
            "forgets",
            &remembers,
            &name,
            "failed",
            "neither the answer to a later turn",
        ),
        (
            "none",
            &consistent,
            &["What is the capital of Norway?"],
            "passed",
            "of 3: similarity 1.00",
        ),
        (
            "moody",
            &consistent,
            &["What is the capital of Norway?"],
            "failed",
            "conversation 2 of 3",
        ),
        (
            "none",
            &crossing,
            &reference,
            "passed",
            "in 6 answers and 4 calls",
        ),
        (
            "shared",
            &crossing,
            &reference,
            "failed",
            "the answer to turn 3 of conversation 1 has sq-",
        ),
        (
            "leaks",
            &crossing,
            &reference,
            "failed",
            "/json of conversation 1 carries sq-",
        ),
        // Calls without a scope are those of any conversation: only answers are judged.
        (
            "unscoped-leaks",
            &crossing,
            &reference,
            "passed",
            "calls were not judged",
        ),
    ] {
        let desk = Desk::new();
        let mut invariant = invariant.clone();
        invariant["id"] = json!("it");
        let run = run(
            &desk,
            &suite(
                &desk,
                bug,
                &json!([invariant]),
                &json!([{ "name": "clean" }]),
                turns,
            ),
        );
        let (found, reason) = cell(&run, "clean");
        assert!(
            found == state && reason.contains(why),
            "{bug} {invariant}: {found}: {reason}\n{run:#}"
        );
    }
}

#[test]
fn each_fault_fails_the_agent_with_its_bug_which_passes_without_the_fault() {
    let name = ["My name is Ada.", "What is my name?"];
    let orders = ["Add a pen.", "Add a book.", "How many?"];
    let honest = json!({ "type": "contains_any", "values": ["Ada", "do not know"] });
    let remembers = json!({ "type": "remembers", "value": "Ada" });
    let count = json!({ "type": "contains", "value": "2 in the cart" });
    let fill = json!({ "mode": "fill_context", "context_tokens": 9000 });
    for (fault, bug, invariant, turns) in [
        (json!({ "mode": "reset" }), "invents", honest, &name[..]),
        (
            json!({ "mode": "repeat_turn" }),
            "doubles",
            count.clone(),
            &orders,
        ),
        (
            json!({ "mode": "concurrent_turns" }),
            "races",
            count,
            &orders,
        ),
        (fill, "short", remembers, &name),
    ] {
        for bug in ["none", bug] {
            let desk = Desk::new();
            let mut invariant = invariant.clone();
            invariant["id"] = json!("it");
            let scenarios = json!([
                { "name": "clean" },
                { "name": "faulted", "conversation_faults": [fault] },
            ]);
            let run = run(
                &desk,
                &suite(&desk, bug, &json!([invariant]), &scenarios, turns),
            );
            let expected = if bug == "none" { "passed" } else { "failed" };
            assert_eq!(cell(&run, "clean").0, "passed", "{bug} {fault}: {run:#}");
            assert_eq!(cell(&run, "faulted").0, expected, "{bug} {fault}: {run:#}");
            let scenario = &run["scenarios"][1];
            let rule = format!("conversation_faults: {}", fault["mode"].as_str().unwrap());
            assert!(
                scenario["rules"][0].as_str().unwrap().starts_with(&rule),
                "{scenario:#}"
            );
            assert_eq!(
                (&scenario["under_chaos"], &scenario["rules_applied"]),
                (&json!(true), &json!(1))
            );
        }
    }
}

#[test]
fn a_fault_that_cannot_be_applied_says_what_to_write() {
    let completes = json!([{ "id": "it", "type": "completes" }]);
    for (mode, more, turns, has_reset, wanted) in [
        (
            "reset",
            Value::Null,
            2,
            false,
            "write `agent.reset_endpoint`",
        ),
        (
            "reset",
            Value::Null,
            1,
            true,
            "write `golden_prompts: [[first turn, second turn]]`",
        ),
        (
            "concurrent_turns",
            Value::Null,
            1,
            true,
            "write `golden_prompts: [[first turn, second turn]]`",
        ),
        (
            "repeat_turn",
            json!({ "turn": 3 }),
            2,
            true,
            "the prompt has 2 turns, needed are 3",
        ),
        (
            "fill_context",
            json!({ "context_tokens": 2 }),
            2,
            true,
            "write a greater `context_tokens` than 2",
        ),
    ] {
        let desk = Desk::new();
        let mut fault = json!({ "mode": mode });
        for (name, value) in more.as_object().into_iter().flatten() {
            fault[name] = value.clone();
        }
        let scenarios = json!([{ "name": "faulted", "conversation_faults": [fault] }]);
        let turns = &["My name is Ada.", "What is my name?"][..turns];
        let mut suite = suite(&desk, "none", &completes, &scenarios, turns);
        if !has_reset {
            suite["agent"]
                .as_object_mut()
                .unwrap()
                .remove("reset_endpoint");
        }
        let run = run(&desk, &suite);
        let (state, reason) = cell(&run, "faulted");
        assert!(
            state == "not_exercised" && reason.contains(wanted),
            "{mode}: {state}: {reason}"
        );
    }
}

/// The example of the page on the agent with this bug.
fn example(bug: &str) -> CommandResult {
    let desk = Desk::new();
    let page = include_str!("../../../docs/conversations.md");
    let (_, rest) = page.split_once("```yaml\n").expect("an example");
    let (example, _) = rest.split_once("```").expect("its end");
    let port = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = port.local_addr().unwrap().port().to_string();
    let tool = format!("http://{}/json", desk.tool.address);
    let command = json!([python(), script("../agents/sessions.py"), port, tool, bug]);
    let example = example
        .replace("[python, agent.py]", &command.to_string())
        .replace("8000", &port);
    let file = desk.directory.path().join("suite.yaml");
    std::fs::write(&file, example).unwrap();
    desk.run(&["contract", "run"], &file)
}

#[test]
fn the_example_of_the_page_runs() {
    example("none").ended(0);
    for bug in ["forgets", "shared", "invents"] {
        example(bug).ended(1);
    }
}
