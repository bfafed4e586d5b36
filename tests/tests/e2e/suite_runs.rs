//! Runs of whole suites: a real agent in Python, asked under chaos by a real daemon.

mod kept;
mod late;
mod shrunk;
mod suspended;

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use squall_tests::daemon::squall;
use squall_tests::program::client;
use squall_tests::upstream::standard;
use squall_tests::{Daemon, Stage, Upstream, Wire};

/// An agent that runs, and ends with the test.
struct Agent {
    child: Child,
    endpoint: String,
}

impl Agent {
    /// `carries`: `baggage`, `traceparent` or `none`.
    fn serve(program: &str, stage: &Stage, carries: &str) -> Self {
        let (proxy, tool) = (stage.daemon.proxy, format!("http://{TOOL}/json"));
        let mut command = client(program);
        command.args([&proxy.to_string(), &tool, carries]);
        Self::spawn(command)
    }

    fn spawn(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut port = String::new();
        let mut said = BufReader::new(child.stdout.take().unwrap());
        said.read_line(&mut port).unwrap();
        Self {
            child,
            endpoint: format!("http://127.0.0.1:{}/ask", port.trim()),
        }
    }

    fn of(stage: &Stage, carries: &str) -> Self {
        Self::serve("agent_server.py", stage, carries)
    }
}

/// What the tool is called, the same in every run of these tests: draws hang on URLs.
const TOOL: &str = "tool.test";

/// A daemon, and the tool behind it.
fn stage() -> (Stage, Upstream) {
    let tool = Upstream::start(None, standard::serve);
    let connect_to = json!({ "tool.test:80": tool.address.to_string() });
    let config = json!({ "proxy": { "connect_to": connect_to } });
    (Stage::with(&config, standard::serve), tool)
}

impl Drop for Agent {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// 6 invariants, 5 scenarios, 3 prompts.
fn suite(agent: &Agent) -> Value {
    json!({
        "name": "weather",
        "agent": { "endpoint": agent.endpoint },
        "golden_prompts": ["Paris", "Rome", "Oslo"],
        "invariants": [{ "type": "contains", "value": "unavailable" }],
        "chaos": { "tool_faults": [{ "tool": "*", "match_url": "*/json*", "mode": "error", "error_code": 503 }] },
        "contract": {
            "name": "honest",
            "invariants": [
                { "id": "completes", "type": "completes", "severity": "critical" },
                { "id": "honest", "type": "contains", "value": "unavailable", "when": "tool_faults_active" },
                { "id": "sunny", "type": "contains", "value": "sunny", "when": "no_chaos" },
                { "id": "bounded", "type": "max_calls", "host": "tool.test", "max": 3 },
                { "id": "same", "type": "behavior_unchanged", "when": "no_chaos" },
                { "id": "short", "type": "max_length", "max": 200, "severity": "low" },
            ],
            "chaos_matrix": [
                { "name": "clean" },
                { "name": "down", "tool_faults": [{ "tool": "*", "mode": "error", "error_code": 503 }] },
                { "name": "at times", "tool_faults": [{ "tool": "*", "mode": "error", "error_code": 500, "probability": 0.5 }] },
                { "name": "reset", "network_faults": [{ "mode": "reset_peer" }] },
                { "name": "slow", "network_faults": [{ "mode": "latency", "delay_ms": 20 }] },
            ],
        },
    })
}

/// Asks for a run and waits for its end.
fn run(daemon: &Daemon, kind: &str, suite: &Value, options: &Value) -> Value {
    let wish = json!({ "kind": kind, "suite": suite, "options": options });
    daemon.api.ended_run(&daemon.api.ask_for_run(&wish))
}

/// What is judged, without what differs between two runs of one seed: ids and times.
fn judged(run: &Value) -> Value {
    let mut cells = run["cells"].clone();
    for cell in cells.as_array_mut().unwrap() {
        for evidence in cell["evidence"].as_array_mut().unwrap() {
            let evidence = evidence.as_object_mut().unwrap();
            evidence.shift_remove("exchanges");
            evidence.shift_remove("telling");
            evidence.shift_remove("latency_ms");
        }
    }
    cells
}

fn cell<'r>(run: &'r Value, invariant: &str, scenario: &str) -> &'r Value {
    let mut cells = run["cells"].as_array().unwrap().iter();
    let found = cells.find(|cell| cell["invariant"] == invariant && cell["scenario"] == scenario);
    found.unwrap_or_else(|| panic!("{invariant} in {scenario}: {run:#}"))
}

#[test]
fn one_seed_gives_the_same_cells_at_any_concurrency_however_the_agent_tells_its_calls_apart() {
    let (stage, _tool) = stage();
    let mut all = Vec::new();
    for carries in ["baggage", "traceparent"] {
        let agent = Agent::of(&stage, carries);
        for concurrency in [1, 8] {
            let options = json!({ "seed": 7, "concurrency": concurrency });
            let run = run(&stage.daemon, "contract", &suite(&agent), &options);
            assert_eq!(run["state"], "passed", "{carries}: {run:#}");
            // Three of them without chaos, which are the clean baseline.
            assert_eq!(run["coverage"]["agent_invocations"], 15, "{run:#}");
            assert_eq!(run["coverage"]["cells"], 30, "{run:#}");
            assert_eq!(run["warnings"], json!([]), "{carries}: {run:#}");
            let id = run["id"].as_str().unwrap();
            let seen = &cell(&run, "completes", "down")["evidence"][0]["exchanges"][0];
            let seen = seen.as_str().unwrap();
            let exchange = stage.daemon.api.get(&format!("/v1/exchanges/{seen}"));
            assert_eq!(exchange["run"], id, "{carries}: {exchange:#}");
            let scope = exchange["scope"].as_str().unwrap();
            assert!(
                scope.starts_with(&format!("run-{id}-")),
                "{carries}: {scope}"
            );
            all.push(judged(&run));
        }
    }
    for other in &all[1..] {
        assert_eq!(other, &all[0]);
    }
    let drawn = all[0].as_array().unwrap().iter();
    let mut drawn = drawn.filter(|cell| cell["scenario"] == "at times");
    let faults = drawn.next().unwrap()["faults_applied"].as_u64().unwrap();
    assert!(
        (1..3).contains(&faults),
        "a seed for which not all calls fail"
    );
    // The default scope is nobody's in the end.
    assert_eq!(stage.daemon.api.get("/v1/chaos")["profile"], "none");
}

#[test]
fn a_suite_of_flakestorm_v2_runs_unchanged() {
    let (stage, _tool) = stage();
    let agent = Agent::of(&stage, "baggage");
    let text = format!(
        "version: \"2.0\"\nname: Shop & co\nagent:\n  endpoint: \"{}\"\n  type: http\ngolden_prompts: [Rome]\n\
         invariants:\n  - type: output_not_empty\n\
         chaos:\n  tool_faults:\n    - tool: \"*\"\n      mode: error\n      error_code: 503\n      probability: 1.0\n\
         contract:\n  name: \"Weather contract\"\n  description: \"It stays honest.\"\n  invariants:\n    - id: not-empty\n      type: output_not_empty\n      severity: critical\n      when: always\n\
         \x20 chaos_matrix:\n    - name: no-chaos\n      tool_faults: []\n      llm_faults: []\n    - name: tools-down\n      tool_faults:\n        - tool: \"*\"\n          mode: error\n          error_code: 503\n\
         scoring:\n  mutation: 0.20\n  chaos: 0.35\n  contract: 0.35\n  replay: 0.10\n",
        agent.endpoint
    );
    let mut wire = Wire::connect(stage.daemon.api.address);
    let headers = [("Content-Type", "application/yaml")];
    wire.request("PUT", "/v1/suites/two", &headers, text.as_bytes());
    let put = wire.response();
    assert_eq!(put.status, 201, "{}", put.text());
    let wish = json!({ "kind": "ci", "suite_name": "two" });
    let path = stage.daemon.api.ask_for_run(&wish);
    let run = stage.daemon.api.ended_run(&path);
    assert_eq!(run["state"], "passed", "{run:#}");
    assert_eq!(run["score"], 100.0, "{run:#}");
    let names = (&run["name"], &run["documents"][0]["name"]);
    assert_eq!(names, (&json!("Shop & co"), &json!("two")));
}

#[test]
fn a_cancelled_run_ends_its_chaos_first_and_counts_the_invocation_under_way() {
    let (stage, _tool) = stage();
    let agent = Agent::of(&stage, "baggage");
    let mut suite = suite(&agent);
    // Long enough to be under way whenever it is cancelled.
    let latency = json!([{ "mode": "latency", "delay_ms": 15000 }]);
    suite["contract"]["chaos_matrix"] = json!([{ "name": "slow", "network_faults": latency }]);
    let wish = json!({ "kind": "contract", "suite": suite, "options": { "concurrency": 1 } });
    let path = stage.daemon.api.ask_for_run(&wish);
    // Three without chaos, and the first under it.
    stage.daemon.api.wait("the fourth invocation", || {
        let run = stage.daemon.api.get(&path);
        let scopes = stage.daemon.api.get("/v1/scopes").to_string();
        let begun = run["coverage"]["agent_invocations"] == 4 && scopes.contains("slow/prompt");
        begun.then_some(())
    });
    let cancel = format!("{path}/cancel");
    let cancelled = stage.daemon.api.call("POST", &cancel, None);
    assert_eq!(cancelled.status, 200, "{}", cancelled.text());
    let scopes = stage.daemon.api.get("/v1/scopes").to_string();
    assert!(!scopes.contains("slow/prompt"), "{scopes}");
    let run = stage.daemon.api.ended_run(&path);
    assert_eq!(run["state"], "cancelled");
    assert_eq!(run["coverage"]["agent_invocations"], 4, "{run:#}");
}

#[test]
fn what_failed_in_a_run_is_given_out_as_sessions_that_play_it_again() {
    let (stage, _tool) = stage();
    let agent = Agent::of(&stage, "baggage");
    let mut suite = suite(&agent);
    let invariants = &mut suite["contract"]["invariants"];
    invariants[1]["value"] = json!("I do not know");
    invariants[5]["max"] = json!(1);
    suite["contract"]["chaos_matrix"] = json!([suite["contract"]["chaos_matrix"][1]]);
    let failed = run(&stage.daemon, "contract", &suite, &json!({}));
    let dir = stage.daemon.home.join("incidents");
    let id = failed["id"].as_str().unwrap();
    let export = |more: &[&str]| {
        let mut command = squall(&stage.daemon.home);
        command.args(["replay", "export", "--run", id, "--output"]);
        command.arg(&dir).args(more);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let server = format!("--server=http://{}", stage.daemon.api.address);
    let said = export(&[&server]);
    assert_eq!(
        said.matches("honest, short under down").count(),
        3,
        "{said}"
    );
    let listed: Value = serde_json::from_str(&export(&[&server, "--json"])).unwrap();
    let mut command = squall(&stage.daemon.home);
    let output = command.args(["runs", "export", id, &server]).output();
    let lines = String::from_utf8(output.unwrap().stdout).unwrap();
    let lines: Vec<Value> = (lines.lines())
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 3, "{lines:#?}");
    for line in lines {
        assert_eq!(line["run"], failed["id"]);
        assert_eq!(line["invariants"], json!(["honest", "short"]), "{line:#}");
        assert_eq!(line["faults"][0]["mode"], "error", "{line:#}");
    }
    let path = format!("/v1/runs/{id}/report?format=json");
    let groups = &stage.daemon.api.get(&path)["failure_groups"];
    let group = |place: usize| {
        let group = &groups[place];
        json!([
            group["invariant"],
            group["invocations"],
            group["fault"],
            group["scenarios"]
        ])
    };
    // One of them fails without chaos too.
    let expected = [("honest", json!("error")), ("short", Value::Null)];
    for (place, (invariant, fault)) in expected.into_iter().enumerate() {
        assert_eq!(
            group(place),
            json!([invariant, 3, fault, ["down"]]),
            "{groups:#}"
        );
    }
    let files: Vec<_> = listed["items"].as_array().unwrap().iter().collect();
    assert_eq!(files.len(), 3, "one for each prompt: {listed:#}");
    for file in files {
        assert_eq!(file["missing"], 0, "{listed:#}");
        let text = std::fs::read_to_string(file["file"].as_str().unwrap()).unwrap();
        assert!(
            text.contains("honest: ") && text.contains("short: "),
            "{text}"
        );
        let mut prompts = ["Paris", "Rome", "Oslo"].into_iter();
        let prompt = prompts.find(|prompt| text.contains(&format!("input: {prompt:?}")));
        let prompt = prompt.unwrap_or_else(|| panic!("{text}"));
        // What the agent was told there, it is told again, without the fault and without the tool.
        let path = format!("/v1/replays/{}", file["id"].as_str().unwrap());
        let mut api = Wire::connect(stage.daemon.api.address);
        let yaml = [("content-type", "application/yaml")];
        api.request("PUT", &path, &yaml, text.as_bytes());
        assert_eq!(api.response().status, 201, "{text}");
        let tape = json!({ "replay": file["id"] });
        let put = stage
            .daemon
            .api
            .call("PUT", "/v1/scopes/again/tape", Some(&tape));
        assert!(put.status < 300, "{}", put.text());
        let mut wire = Wire::connect(stage.daemon.proxy);
        wire.prefix = format!("http://{TOOL}");
        TOOL.clone_into(&mut wire.host);
        wire.request(
            "GET",
            &format!("/json?q={prompt}"),
            &[("x-squall-scope", "again")],
            b"",
        );
        assert_eq!(wire.response().status, 503);
        let played = stage.daemon.api.get("/v1/scopes/again/tape");
        assert_eq!(
            (&played["served"], &played["dialled"]),
            (&json!(1), &json!(0)),
            "{played:#}"
        );
    }
}
