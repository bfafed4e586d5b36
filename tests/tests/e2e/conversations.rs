//! Invariants over turns and conversations, and faults of conversations, with an agent that has sessions
//! (`tests/agents/sessions.py`) and its buggy twins.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};

use serde_json::{Value, json};
use squall_tests::Daemon;
use squall_tests::program::client;

use crate::desk::{CommandResult, Desk};

/// A daemon, and where commands are run.
struct Sessions {
    desk: Desk,
    daemon: Daemon,
}

/// An agent with one bug, or none. It ends with the test.
struct Agent {
    child: Child,
    url: String,
}

impl Drop for Agent {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Sessions {
    fn new() -> Self {
        Self {
            desk: Desk::new(),
            daemon: Daemon::start(&json!({})),
        }
    }

    fn agent(&self, bug: &str) -> Agent {
        let mut command = client("../agents/sessions.py");
        command
            .arg(format!("http://{}/json", self.desk.tool.address))
            .arg(bug)
            .env("HTTP_PROXY", format!("http://{}", self.daemon.proxy))
            .stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut port = String::new();
        let mut printed = BufReader::new(child.stdout.take().unwrap());
        printed.read_line(&mut port).unwrap();
        Agent {
            child,
            url: format!("http://127.0.0.1:{}", port.trim()),
        }
    }

    fn contract(&self, suite: &Path, more: &[&str]) -> CommandResult {
        let server = format!("http://{}", self.daemon.api.address);
        let arguments = [&["contract", "run", "--server", &server], more].concat();
        self.desk.run(&arguments, suite)
    }

    /// The run of a suite.
    fn run(&self, suite: &Value) -> Value {
        let printed = self.contract(&self.desk.write(suite), &["--json"]);
        serde_json::from_str(&printed.out).unwrap_or_else(|error| panic!("{error}: {printed:#?}"))
    }
}

/// A suite for an agent.
fn suite(agent: &Agent, invariants: &Value, scenarios: &Value, turns: &[&str]) -> Value {
    let prompt = match turns {
        [one] => json!(one),
        several => json!(several),
    };
    json!({
        "name": "sessions",
        "agent": {
            "endpoint": format!("{}/chat", agent.url),
            "reset_endpoint": format!("{}/reset", agent.url),
        },
        "golden_prompts": [prompt],
        "contract": { "name": "sessions", "invariants": invariants, "chaos_matrix": scenarios },
        "output": { "format": "terminal" },
    })
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
#[rustfmt::skip]
fn each_invariant_fails_the_agent_with_its_bug_and_no_other() {
    let sessions = Sessions::new();
    let name = &["My name is Ada.", "What is my name?"][..];
    let capital = &["What is the capital of Norway?"][..];
    let reference = &["Add a pen.", "Add a book.", "What is my reference?"][..];
    let remembers = json!({ "id": "it", "type": "remembers", "value": "Ada" });
    let consistent = json!({ "id": "it", "type": "consistent", "repeat": 3 });
    let crossing = json!({ "id": "it", "type": "no_cross_session" });
    for (bug, invariant, turns, state, why) in [
        ("none", &remembers, name, "passed", "the answer to turn 2 has"),
        ("forgets", &remembers, name, "failed", "neither the answer to a later turn"),
        ("none", &consistent, capital, "passed", "of 3: similarity 1.00"),
        ("moody", &consistent, capital, "failed", "conversation 2 of 3"),
        ("none", &crossing, reference, "passed", "in 6 answers and 4 calls"),
        ("shared", &crossing, reference, "failed", "the answer to turn 3 of conversation 1 has sq-"),
        ("leaks", &crossing, reference, "failed", "of conversation 1 carries sq-"),
        // Calls without a scope may be those of either conversation: only answers are judged.
        ("unscoped-leaks", &crossing, reference, "passed", "calls were not judged"),
    ] {
        let agent = sessions.agent(bug);
        let clean = json!([{ "name": "clean" }]);
        let run = sessions.run(&suite(&agent, &json!([invariant]), &clean, turns));
        let (found, reason) = cell(&run, "clean");
        let is_expected = found == state && reason.contains(why);
        assert!(is_expected, "{bug} {invariant}: {found}: {reason}\n{run:#}");
    }
}

#[test]
#[rustfmt::skip]
fn each_fault_fails_the_agent_with_its_bug_which_passes_without_the_fault() {
    let sessions = Sessions::new();
    let name = &["My name is Ada.", "What is my name?"][..];
    let orders = &["Add a pen.", "Add a book.", "How many?"][..];
    let honest = json!({ "id": "it", "type": "contains_any", "values": ["Ada", "do not know"] });
    let remembers = json!({ "id": "it", "type": "remembers", "value": "Ada" });
    let count = json!({ "id": "it", "type": "contains", "value": "2 in the cart" });
    for (fault, bug, invariant, turns) in [
        (json!({ "mode": "reset" }), "invents", &honest, name),
        (json!({ "mode": "repeat_turn" }), "doubles", &count, orders),
        (json!({ "mode": "concurrent_turns" }), "races", &count, orders),
        (json!({ "mode": "fill_context", "context_tokens": 9000 }), "short", &remembers, name),
    ] {
        let scenarios = json!([{ "name": "clean" }, { "name": "faulted", "conversation_faults": [fault] }]);
        for (bug, expected) in [("none", "passed"), (bug, "failed")] {
            let agent = sessions.agent(bug);
            let run = sessions.run(&suite(&agent, &json!([invariant]), &scenarios, turns));
            let states = (cell(&run, "clean").0, cell(&run, "faulted").0);
            assert_eq!(states, ("passed", expected), "{bug} {fault}: {run:#}");
            let scenario = &run["scenarios"][1];
            let rule = format!("conversation_faults: {}", fault["mode"].as_str().unwrap());
            assert!(scenario["rules"][0].as_str().unwrap().starts_with(&rule), "{scenario:#}");
            assert_eq!(scenario["rules_applied"], 1, "{scenario:#}");
            let cells = run["cells"].as_array().unwrap();
            let evidence = &cells[1]["evidence"][0];
            assert_eq!((&evidence["fault"], &evidence["call"]), (&fault["mode"], &json!("the conversation")));
        }
    }
}

#[test]
#[rustfmt::skip]
fn a_fault_that_cannot_be_applied_says_what_to_write() {
    let sessions = Sessions::new();
    let agent = sessions.agent("none");
    let completes = json!([{ "id": "it", "type": "completes" }]);
    let turns = "write `golden_prompts: [[first turn, second turn]]`";
    let again = json!({ "mode": "repeat_turn" });
    for (fault, number, has_reset, wanted) in [
        (json!({ "mode": "reset" }), 2, false, "write `agent.reset_endpoint`"),
        (json!({ "mode": "reset" }), 1, true, turns),
        (json!({ "mode": "concurrent_turns" }), 1, true, turns),
        (json!({ "mode": "repeat_turn", "turn": 3 }), 2, true, "the prompt has 2 turns, needed are 3"),
        (json!({ "mode": "fill_context", "context_tokens": 2 }), 2, true, "write a greater `context_tokens` than 2"),
    ] {
        // A fault that is applied does not stand for one that is not.
        let scenarios = json!([
            { "name": "faulted", "conversation_faults": [fault] },
            { "name": "both", "conversation_faults": [again, fault] },
        ]);
        let turns = &["My name is Ada.", "What is my name?"][..number];
        let mut suite = suite(&agent, &completes, &scenarios, turns);
        if !has_reset {
            suite["agent"].as_object_mut().unwrap().remove("reset_endpoint");
        }
        let run = sessions.run(&suite);
        for scenario in ["faulted", "both"] {
            let (state, reason) = cell(&run, scenario);
            let is_expected = state == "not_exercised" && reason.contains(wanted);
            assert!(is_expected, "{scenario} {fault}: {state}: {reason}");
        }
    }
    let twice = json!([{ "name": "twice", "conversation_faults": [again, again] }]);
    let suite = suite(&agent, &completes, &twice, &["My name is Ada."]);
    let rejected = sessions.contract(&sessions.desk.write(&suite), &[]);
    rejected.ended(2);
    rejected.err_has("`conversation_faults: repeat_turn turn: 1` is there twice");
}

/// One process answers both conversations, so its calls in the slot's scope may be those of either.
#[test]
fn calls_of_a_python_agent_are_not_those_of_a_conversation() {
    let sessions = Sessions::new();
    let module = format!(
        "import urllib.request\n\
         turns = []\n\
         def chat(prompt):\n    \
             turns.append(prompt)\n    \
             tool = 'http://{}/json'\n    \
             urllib.request.urlopen(tool, '|'.join(turns).encode(), 60).read()\n    \
             return 'Noted.'\n",
        sessions.desk.tool.address
    );
    std::fs::write(sessions.desk.directory.path().join("notes.py"), module).unwrap();
    let agent = sessions.agent("none");
    let invariants = json!([{ "id": "it", "type": "no_cross_session" }]);
    let clean = json!([{ "name": "clean" }]);
    let mut suite = suite(&agent, &invariants, &clean, &["Add a pen.", "Add a book."]);
    suite["agent"] = json!({ "type": "python", "endpoint": "notes:chat" });
    let printed = sessions
        .desk
        .run(&["contract", "run", "--json"], &sessions.desk.write(&suite));
    let run =
        serde_json::from_str(&printed.out).unwrap_or_else(|error| panic!("{error}: {printed:#?}"));
    let (state, reason) = cell(&run, "clean");
    let is_expected = state == "passed" && reason.contains("calls were not judged");
    assert!(is_expected, "{state}: {reason}\n{run:#}");
    assert_ne!(
        run["cells"][0]["evidence"][0]["exchanges"],
        json!([]),
        "{run:#}"
    );
}

#[test]
fn the_example_of_the_page_runs() {
    let sessions = Sessions::new();
    let page = include_str!("../../../docs/conversations.md");
    let (_, rest) = page.split_once("```yaml\n").expect("an example");
    let (example, _) = rest.split_once("```").expect("its end");
    for (bug, code) in [("none", 0), ("forgets", 1), ("shared", 1), ("invents", 1)] {
        let agent = sessions.agent(bug);
        let file = sessions.desk.directory.path().join("suite.yaml");
        std::fs::write(&file, example.replace("http://127.0.0.1:8000", &agent.url)).unwrap();
        let printed = sessions.contract(&file, &["--min-score", "100"]);
        printed.ended(code);
        if bug == "invents" {
            printed
                .out_has("1 × admits-loss (medium): reset on the conversation, under session-lost");
        }
    }
}
