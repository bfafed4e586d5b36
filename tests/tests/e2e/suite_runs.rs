//! Runs of whole suites: a real agent in Python, asked under chaos by a real daemon.

mod kept;
mod late;
mod missed;
mod suspended;
mod wired;

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
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
    /// `carries`: `baggage`, `traceparent` or `none`; without a proxy it ignores it.
    fn start(proxy: Option<SocketAddr>, tool: &str, carries: &str) -> Self {
        Self::serve("agent_server.py", proxy, tool, carries)
    }

    fn serve(program: &str, proxy: Option<SocketAddr>, tool: &str, carries: &str) -> Self {
        let proxy = proxy.map_or_else(|| "none".to_owned(), |proxy| proxy.to_string());
        let mut command = client(program);
        command.args([proxy, format!("http://{tool}/json"), carries.to_owned()]);
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
        Self::start(Some(stage.daemon.proxy), TOOL, carries)
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
    let answer = daemon.api.call("POST", "/v1/runs", Some(&wish));
    assert_eq!(answer.status, 201, "{}", answer.text());
    over(daemon, answer.header("location").unwrap())
}

fn over(daemon: &Daemon, path: &str) -> Value {
    daemon.api.wait("the run's end", || {
        let run = daemon.api.get(path);
        run["finished_at"].is_string().then_some(run)
    })
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
fn g17_one_seed_gives_the_same_cells_at_any_concurrency_however_the_agent_tells_its_calls_apart() {
    let (stage, _tool) = stage();
    let mut all = Vec::new();
    for carries in ["baggage", "traceparent"] {
        let agent = Agent::of(&stage, carries);
        for concurrency in [1, 8, 32] {
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
fn an_agent_that_carries_nothing_is_asked_one_at_a_time_in_the_default_scope() {
    let (stage, _tool) = stage();
    let agent = Agent::of(&stage, "none");
    let one = run(
        &stage.daemon,
        "contract",
        &suite(&agent),
        &json!({ "seed": 7, "concurrency": 8 }),
    );
    assert_eq!(one["state"], "passed", "{one:#}");
    let carrying = Agent::of(&stage, "baggage");
    let other = run(
        &stage.daemon,
        "contract",
        &suite(&carrying),
        &json!({ "seed": 7 }),
    );
    assert_eq!(judged(&one), judged(&other));
}

#[test]
fn an_agent_that_ignores_the_proxy_proves_nothing() {
    let (stage, _tool) = stage();
    let agent = Agent::start(None, &stage.plain.address.to_string(), "none");
    for kind in ["chaos", "contract", "ci"] {
        let run = run(&stage.daemon, kind, &suite(&agent), &json!({}));
        assert_eq!(run["state"], "inconclusive", "{kind}: {run:#}");
        let warning = run["warnings"][0].as_str().unwrap();
        assert!(warning.contains("no call of the agent"), "{warning}");
    }
    let mut calm = suite(&agent);
    calm["contract"]["chaos_matrix"] = json!([{ "name": "clean" }]);
    let run = run(&stage.daemon, "contract", &calm, &json!({}));
    assert_eq!(run["state"], "inconclusive", "{run:#}");
    assert_eq!(cell(&run, "bounded", "clean")["state"], "not_exercised");
    let reason = run["reason"].as_str().unwrap();
    assert!(
        reason.contains("nothing is known of what it does on the wire"),
        "{reason}"
    );
}

#[test]
fn a_critical_failure_fails_the_contract_whatever_its_score() {
    let (stage, _tool) = stage();
    let agent = Agent::of(&stage, "baggage");
    let mut suite = suite(&agent);
    suite["contract"]["invariants"][1]["value"] = json!("I do not know");
    suite["contract"]["invariants"][1]["severity"] = json!("critical");
    let failed = run(&stage.daemon, "contract", &suite, &json!({}));
    assert_eq!(failed["state"], "failed", "{failed:#}");
    assert!(failed["score"].as_f64().unwrap() > 50.0, "{failed:#}");
    let reason = failed["reason"].as_str().unwrap();
    assert!(reason.contains("critical invariant `honest`"), "{reason}");
    assert_eq!(cell(&failed, "honest", "down")["state"], "failed");
    assert_eq!(cell(&failed, "honest", "clean")["state"], "not_applicable");
    suite["contract"]["invariants"][1]["value"] = json!("unavailable");
    let options = json!({ "baseline": failed["id"], "repeat": 3 });
    let mended = run(&stage.daemon, "contract", &suite, &options);
    assert_eq!(mended["state"], "passed", "{mended:#}");
    let fixed = mended["comparison"]["fixed"].as_array().unwrap();
    assert!(
        fixed.iter().any(|change| change["scenario"] == "down"),
        "{mended:#}"
    );
    let stability = &mended["stability"];
    assert_eq!(
        (&stability["repeats"], &stability["flaky"]),
        (&json!(3), &json!(0)),
        "{mended:#}"
    );
    assert_eq!(mended["coverage"]["agent_invocations"], 3 * 15);
    let evidence = cell(&mended, "honest", "down")["evidence"]
        .as_array()
        .unwrap();
    let mut repeats: Vec<_> = evidence.iter().map(|one| one["repeat"].as_u64()).collect();
    repeats.sort_unstable();
    let thrice = [1, 2, 3].map(|repeat| [Some(repeat); 3]);
    assert_eq!(repeats, thrice.concat());
    for (options, pointer) in [
        (json!({ "baseline": "000000" }), "/options/baseline"),
        // Beside nothing it would change nothing.
        (json!({ "fail_on": "regression" }), "/options/fail_on"),
    ] {
        let wish = json!({ "kind": "contract", "suite": suite, "options": options });
        let refused = stage.daemon.api.call("POST", "/v1/runs", Some(&wish));
        assert_eq!(refused.status, 422, "{}", refused.text());
        assert!(refused.text().contains(pointer), "{}", refused.text());
    }
}

#[test]
fn g51_ci_is_everything_that_the_suite_configures_and_asks_once() {
    let (stage, _tool) = stage();
    let agent = Agent::of(&stage, "baggage");
    let mut suite = suite(&agent);
    suite["mutations"] = json!({ "count": 2 });
    let run = run(&stage.daemon, "ci", &suite, &json!({}));
    assert_eq!(run["state"], "passed", "{run:#}");
    let scores = &run["scores"];
    assert_eq!(
        (
            &scores["chaos_resilience"],
            &scores["contract_compliance"],
            &run["score"]
        ),
        (&json!(100.0), &json!(100.0), &json!(100.0)),
        "{run:#}"
    );
    assert_eq!(run["scenarios"].as_array().unwrap().len(), 6, "{run:#}");
    // The clean answers are asked for once.
    assert_eq!(run["coverage"]["agent_invocations"], 3 + 15, "{run:#}");
    let warning = run["warnings"][0].as_str().unwrap();
    assert!(warning.contains("`mutations`"), "{warning}");
    let verified = self::run(&stage.daemon, "verify", &suite, &json!({}));
    assert_eq!(verified["state"], "passed", "{verified:#}");
    let names: Vec<_> = verified["checks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|check| &check["name"])
        .collect();
    assert!(names.contains(&&json!("proxy")), "{verified:#}");
}

#[test]
fn suites_as_flakestorm_writes_them_run_unchanged() {
    let (stage, _tool) = stage();
    let agent = Agent::of(&stage, "baggage");
    let first = format!(
        "version: \"1.0\"\nagent:\n  endpoint: \"{}\"\n  type: \"http\"\n  timeout: 30000\n\
         model:\n  provider: \"ollama\"\n  name: \"qwen3:8b\"\n\
         mutations:\n  count: 5\n  types: [paraphrase, noise]\n\
         golden_prompts:\n  - \"Paris\"\ninvariants:\n  - type: \"latency\"\n    max_ms: 20000\n  - type: \"contains\"\n    value: \"weather\"\n\
         output:\n  format: \"html\"\n  path: \"./reports\"\nadvanced:\n  concurrency: 2\n  retries: 2\n",
        agent.endpoint
    );
    let second = format!(
        "version: \"2.0\"\nname: Shop & co\nagent:\n  endpoint: \"{}\"\n  type: http\ngolden_prompts: [Rome]\n\
         invariants:\n  - type: output_not_empty\n\
         chaos:\n  tool_faults:\n    - tool: \"*\"\n      mode: error\n      error_code: 503\n      probability: 1.0\n\
         contract:\n  name: \"Weather contract\"\n  description: \"It stays honest.\"\n  invariants:\n    - id: not-empty\n      type: output_not_empty\n      severity: critical\n      when: always\n\
         \x20 chaos_matrix:\n    - name: no-chaos\n      tool_faults: []\n      llm_faults: []\n    - name: tools-down\n      tool_faults:\n        - tool: \"*\"\n          mode: error\n          error_code: 503\n\
         scoring:\n  mutation: 0.20\n  chaos: 0.35\n  contract: 0.35\n  replay: 0.10\n",
        agent.endpoint
    );
    for (name, title, text, kind, options) in [
        (
            "one",
            "one",
            &first,
            "chaos",
            json!({ "profile": "api_outage", "seed": 3 }),
        ),
        ("two", "Shop & co", &second, "ci", json!({})),
    ] {
        let mut wire = Wire::connect(stage.daemon.api.address);
        let headers = [("Content-Type", "application/yaml")];
        wire.request(
            "PUT",
            &format!("/v1/suites/{name}"),
            &headers,
            text.as_bytes(),
        );
        let put = wire.response();
        assert_eq!(put.status, 201, "{}", put.text());
        let wish = json!({ "kind": kind, "suite_name": name, "options": options });
        let answer = stage.daemon.api.call("POST", "/v1/runs", Some(&wish));
        assert_eq!(answer.status, 201, "{}", answer.text());
        let run = over(&stage.daemon, answer.header("location").unwrap());
        assert!(
            run["state"] == "passed" || run["state"] == "failed",
            "{run:#}"
        );
        assert!(run["score"].is_number(), "{run:#}");
        assert_eq!(
            (&run["name"], &run["documents"][0]["name"]),
            (&json!(title), &json!(name))
        );
    }
}

#[test]
fn g10_cancelling_in_the_middle_ends_chaos_first() {
    let (stage, _tool) = stage();
    let agent = Agent::of(&stage, "baggage");
    let mut suite = suite(&agent);
    // Long enough to be in the middle of whenever it is cancelled.
    let latency = json!([{ "mode": "latency", "delay_ms": 15000 }]);
    suite["contract"]["chaos_matrix"][4]["network_faults"] = latency;
    let wish = json!({ "kind": "contract", "suite": suite });
    let answer = stage.daemon.api.call("POST", "/v1/runs", Some(&wish));
    let path = answer.header("location").unwrap().to_owned();
    stage.daemon.api.wait("chaos", || {
        let scopes = stage.daemon.api.get("/v1/scopes").to_string();
        scopes.contains("slow/prompt").then_some(())
    });
    let cancelled = stage
        .daemon
        .api
        .call("POST", &format!("{path}/cancel"), None);
    assert_eq!(cancelled.status, 200, "{}", cancelled.text());
    let scopes = stage.daemon.api.get("/v1/scopes");
    assert!(!scopes.to_string().contains("slow/prompt"), "{scopes}");
    assert_eq!(over(&stage.daemon, &path)["state"], "cancelled");
}

#[test]
fn askings_of_a_run_that_is_cancelled_are_counted_while_they_go_on_too() {
    let (stage, _tool) = stage();
    let agent = Agent::of(&stage, "baggage");
    let mut suite = suite(&agent);
    // Long enough to be in the middle of whenever it is cancelled.
    let latency = json!([{ "mode": "latency", "delay_ms": 15000 }]);
    suite["contract"]["chaos_matrix"] = json!([{ "name": "slow", "network_faults": latency }]);
    let wish = json!({ "kind": "contract", "suite": suite, "options": { "concurrency": 1 } });
    let answer = stage.daemon.api.call("POST", "/v1/runs", Some(&wish));
    let path = answer.header("location").unwrap().to_owned();
    // Three without chaos, and the first under it.
    stage.daemon.api.wait("the fourth asking", || {
        let run = stage.daemon.api.get(&path);
        (run["coverage"]["agent_invocations"] == 4).then_some(())
    });
    let cancel = format!("{path}/cancel");
    let cancelled = stage.daemon.api.call("POST", &cancel, None);
    assert_eq!(cancelled.status, 200, "{}", cancelled.text());
    let run = over(&stage.daemon, &path);
    assert_eq!(run["state"], "cancelled");
    assert_eq!(run["coverage"]["agent_invocations"], 4, "{run:#}");
}

#[test]
fn g7_a_profile_stands_in_the_place_of_the_suites_chaos() {
    let (stage, _tool) = stage();
    let agent = Agent::of(&stage, "baggage");
    let profile = json!({ "chaos": { "network_faults": [{ "mode": "latency", "delay_ms": 1 }] } });
    let put = stage
        .daemon
        .api
        .call("PUT", "/v1/profiles/late", Some(&profile));
    assert_eq!(put.status, 201, "{}", put.text());
    let run = run(
        &stage.daemon,
        "chaos",
        &suite(&agent),
        &json!({ "profile": "late" }),
    );
    // The suite's own chaos takes the tool down, and the agent would say so.
    let cell = &run["cells"][0];
    assert_eq!(
        (&cell["scenario"], &cell["state"]),
        (&json!("late"), &json!("failed")),
        "{run:#}"
    );
    let answer = cell["evidence"][0]["answer"].as_str().unwrap();
    assert!(answer.contains("sunny"), "{run:#}");
}

#[test]
fn a_scenario_that_extends_what_is_not_there_is_refused_before_anybody_is_asked() {
    let (stage, _tool) = stage();
    let agent = Agent::of(&stage, "baggage");
    let mut suite = suite(&agent);
    suite["contract"]["chaos_matrix"][1] = json!({ "name": "down", "extends": ["api_outag"] });
    let wish = json!({ "kind": "contract", "suite": suite });
    let refused = stage.daemon.api.call("POST", "/v1/runs", Some(&wish));
    assert_eq!(refused.status, 422, "{}", refused.text());
    let told = refused.json()["errors"][0].clone();
    let pointer = told["pointer"].as_str().unwrap();
    assert!(
        pointer.starts_with("/suite/contract/chaos_matrix/1"),
        "{told}"
    );
    assert!(told.to_string().contains("api_outage"), "{told}");
}

#[test]
fn what_a_suite_calls_its_tools_holds_for_its_rules_and_its_invariants() {
    let (stage, _tool) = stage();
    let agent = Agent::of(&stage, "baggage");
    let suite = |url: &str| {
        json!({
            "name": "named",
            "agent": { "endpoint": agent.endpoint },
            "golden_prompts": ["Paris"],
            "tools": { "weather": { "match_url": url } },
            "contract": {
                "name": "calls",
                "invariants": [{ "id": "calls", "type": "tool_called", "tool": "weather" }],
                "chaos_matrix": [
                    { "name": "clean" },
                    { "name": "down", "tool_faults": [{ "tool": "weather", "mode": "error", "error_code": 503 }] },
                ],
            },
        })
    };
    let named = run(
        &stage.daemon,
        "contract",
        &suite("http://tool.test/*"),
        &json!({}),
    );
    for scenario in ["clean", "down"] {
        let cell = cell(&named, "calls", scenario);
        assert_eq!(cell["state"], "passed", "{named:#}");
    }
    assert_eq!(cell(&named, "calls", "down")["faults_applied"], 1);
    // The names are the run's own: nobody else's rules know them, nor does the same run under another URL.
    let elsewhere = run(
        &stage.daemon,
        "contract",
        &suite("http://other.test/*"),
        &json!({}),
    );
    assert_eq!(
        cell(&elsewhere, "calls", "clean")["state"],
        "failed",
        "{elsewhere:#}"
    );
    assert_eq!(cell(&elsewhere, "calls", "down")["state"], "not_exercised");
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
