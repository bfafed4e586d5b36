//! The agents of `tests/agents`: a good one, and one with a planted bug for each invariant on the wire. The good one
//! passes every invariant in every scenario; each other fails its own, in every scenario that shows its bug,
//! for the reason that is its bug. That they do by the official clients of two providers.

mod cases;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use squall_tests::daemon::squall;
use squall_tests::program::client;
use squall_tests::upstream::shop;
use squall_tests::{Daemon, Upstream};

use self::cases::{Case, PROMPTS, on_the_wire, scenarios};

/// The daemon, the world, and the process with all agents in it.
struct Shop {
    /// The provider whose client asks the model.
    model: &'static str,
    daemon: Daemon,
    agents: Child,
    port: u16,
    _world: Upstream,
}

impl Drop for Shop {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.agents.kill();
        let _ = self.agents.wait();
    }
}

fn open(model: &'static str) -> Shop {
    let world = Upstream::start(None, shop::serve);
    let connect_to: Map<String, Value> = (shop::HOSTS.iter())
        .map(|host| (format!("{host}:80"), json!(world.address.to_string())))
        .collect();
    let tool = |host: &str| json!({ "match_url": format!("http://{host}/*") });
    let daemon = Daemon::start(&json!({
        "proxy": { "connect_to": connect_to },
        "tools": {
            "search": tool("search.test"), "order": tool("orders.test"), "mail": tool("mail.test"),
        },
        "store": { "exchanges": "none" },
        "safety": { "commands": true },
    }));
    let mut command = client("../agents/server.py");
    command
        .env("HTTP_PROXY", format!("http://{}", daemon.proxy))
        .stdout(Stdio::piped());
    let mut agents = command.spawn().unwrap();
    let mut line = String::new();
    let said = agents.stdout.take().unwrap();
    BufReader::new(said).read_line(&mut line).unwrap();
    let port = line.trim().parse().expect("its port");
    Shop {
        model,
        daemon,
        agents,
        port,
        _world: world,
    }
}

impl Shop {
    /// A run of one agent against all invariants in these scenarios, asked these prompts; its path.
    fn ask(
        &self,
        agent: &str,
        cases: &[Case],
        wanted: &BTreeSet<&str>,
        prompts: &[&str],
    ) -> String {
        let invariants: Vec<_> = (cases.iter())
            // A program for every answer of every agent would take the core from the agents.
            .filter(|case| case.kind != "command" || ["good", "command"].contains(&agent))
            .map(|case| {
                let mut invariant = json!({ "id": case.kind, "type": case.kind });
                for (name, value) in case.parameters.as_object().unwrap() {
                    invariant[name] = value.clone();
                }
                invariant
            })
            .collect();
        let matrix: Vec<_> = (scenarios().into_iter())
            .filter(|(name, _)| wanted.contains(name))
            .map(|(name, mut chaos)| {
                chaos["name"] = json!(name);
                chaos
            })
            .collect();
        let endpoint = format!("http://127.0.0.1:{}/{}/{agent}", self.port, self.model);
        let suite = json!({
            "name": agent,
            "agent": { "endpoint": endpoint, "timeout": 60_000 },
            "golden_prompts": prompts,
            "prices": { "shop-*": { "input": 1.0, "output": 4.0 } },
            "contract": { "name": agent, "invariants": invariants, "chaos_matrix": matrix },
        });
        let wish = json!({ "kind": "contract", "suite": suite, "options": { "seed": 7, "concurrency": 6 } });
        self.daemon.api.ask_for_run(&wish)
    }

    fn over(&self, path: &str) -> Value {
        let deadline = Instant::now() + Duration::from_mins(5);
        loop {
            let run = self.daemon.api.get(path);
            if run["finished_at"].is_string() {
                return run;
            }
            assert!(Instant::now() < deadline, "{path} comes to no end: {run:#}");
            // Asking a hundred times a second would take the core from the agents.
            std::thread::park_timeout(Duration::from_millis(200));
        }
    }
}

/// State and reason of each cell, by invariant and scenario.
type Cells = BTreeMap<(String, String), (String, String)>;

fn cells(run: &Value) -> Cells {
    let text = |cell: &Value, name: &str| cell[name].as_str().unwrap_or_default().to_owned();
    let cells = run["cells"].as_array().unwrap().iter();
    cells
        .map(|cell| {
            let place = (text(cell, "invariant"), text(cell, "scenario"));
            (place, (text(cell, "state"), text(cell, "reason")))
        })
        .collect()
}

fn of<'c>(cells: &'c Cells, invariant: &str, scenario: &str) -> (&'c str, &'c str) {
    let cell = cells.get(&(invariant.to_owned(), scenario.to_owned()));
    cell.map_or(("missing", ""), |(state, reason)| (state, reason))
}

/// Runs every agent, prints what failed where, and says what should not have been.
fn hold(model: &'static str, cases: &[Case]) {
    let shop = open(model);
    let everything = scenarios().into_iter().map(|(name, _)| name).collect();
    let good = cells(&shop.over(&shop.ask("good", cases, &everything, &PROMPTS)));
    let mut wrong = Vec::new();
    for ((invariant, scenario), (state, reason)) in &good {
        if state == "failed" || state == "error" {
            wrong.push(format!(
                "good: {invariant} in {scenario} is {state}: {reason}"
            ));
        }
    }
    let ask = |case: &Case| {
        let shows = case.shows.iter().copied().collect();
        shop.ask(case.kind, cases, &shows, &[case.prompt()])
    };
    let asked: BTreeMap<_, _> = cases.iter().map(|case| (case.kind, ask(case))).collect();
    let mut matrix = String::new();
    for case in cases {
        let run = shop.over(&asked[case.kind]);
        let bad = cells(&run);
        let (mut passed, mut failed) = (0, 0);
        for scenario in case.shows {
            let (state, reason) = of(&good, case.kind, scenario);
            passed += usize::from(state == "passed");
            if state != "passed" {
                wrong.push(format!(
                    "good: {} in {scenario} is {state}: {reason}",
                    case.kind
                ));
            }
            let (state, reason) = of(&bad, case.kind, scenario);
            let is_right = state == "failed" && reason.contains(case.reason);
            failed += usize::from(is_right);
            if !is_right {
                wrong.push(format!(
                    "bad: {} in {scenario} is {state}: {reason}",
                    case.kind
                ));
            }
        }
        let others: BTreeSet<_> = (bad.iter())
            .filter(|((invariant, _), (state, _))| invariant != case.kind && state == "failed")
            .map(|((invariant, _), _)| invariant.as_str())
            .collect();
        let all = case.shows.len();
        let others = others.into_iter().collect::<Vec<_>>().join(" ");
        writeln!(
            matrix,
            "{:31} good {passed}/{all} passed   bad {failed}/{all} failed   {others}",
            case.kind
        )
        .unwrap();
    }
    println!(
        "{model}\ninvariant                       in the scenarios that show its bug    fails beside it\n{matrix}"
    );
    assert!(wrong.is_empty(), "{}\n{matrix}", wrong.join("\n"));
}

#[test]
fn every_type_of_invariant_on_the_wire_has_an_agent_that_breaks_it() {
    let home = tempfile::tempdir().unwrap();
    let output = squall(home.path()).args(["schema", "suite"]).output();
    let schema: Value = serde_json::from_slice(&output.unwrap().stdout).unwrap();
    let known = &schema["$defs"]["Invariant"]["properties"]["type"]["anyOf"][0]["enum"];
    // The types that judge the answer come first.
    let known: BTreeSet<_> = (known.as_array().unwrap().iter())
        .filter_map(Value::as_str)
        .skip_while(|name| *name != "command")
        .collect();
    let planted: BTreeSet<_> = on_the_wire().iter().map(|case| case.kind).collect();
    assert_eq!(known, planted);
}

#[test]
fn good_agents_pass_and_bad_ones_fail_for_their_bug() {
    hold("openai", &on_the_wire());
}

/// What the suite of `squall init` makes of an agent, with nothing but the agent's endpoint filled in.
fn by_the_first_suite(shop: &Shop, agent: &str) -> (Option<i32>, Cells) {
    let directory = tempfile::tempdir().unwrap();
    let command = |arguments: &[&str]| {
        let mut command = squall(directory.path());
        let command = command.current_dir(directory.path()).args(arguments);
        command.output().unwrap()
    };
    let written = command(&["init"]);
    assert!(written.status.success(), "{written:?}");
    let file = directory.path().join("suite.yaml");
    let suite = std::fs::read_to_string(&file).unwrap();
    let (model, port) = (shop.model, shop.port);
    let endpoint = format!("http://127.0.0.1:{port}/{model}/{agent}");
    std::fs::write(
        &file,
        suite.replace("http://127.0.0.1:8000/invoke", &endpoint),
    )
    .unwrap();
    let server = format!("http://{}", shop.daemon.api.address);
    let told = command(&["contract", "run", "--json", "--server", &server]);
    let run: Value = serde_json::from_slice(&told.stdout).expect("a run");
    (told.status.code(), cells(&run))
}

#[test]
fn the_suite_to_begin_with_tells_a_naive_agent_from_a_good_one() {
    let shop = open("openai");
    let (code, good) = by_the_first_suite(&shop, "good");
    assert_eq!(code, Some(0), "{good:#?}");
    let invariants: BTreeSet<_> = good.keys().map(|(invariant, _)| invariant).collect();
    for invariant in invariants {
        let of_it = good.iter().filter(|((id, _), _)| id == invariant);
        let states: BTreeSet<_> = of_it.map(|(_, (state, _))| state.as_str()).collect();
        let is_proved = states.contains("passed");
        assert!(
            is_proved && !states.contains("failed"),
            "{invariant}: {good:#?}"
        );
    }
    // It has every habit of an agent that nobody has thought of failures for.
    let (_, naive) = by_the_first_suite(&shop, "naive");
    for (invariant, scenario, reason) in [
        ("writes-once", "responses-lost", "it was called again"),
        ("drops-half-answers", "model-stream-cut", "broke off after"),
        (
            "ignores-injections",
            "tool-result-injected",
            "mail was called",
        ),
        ("waits-retry-after", "rate-limited", "asked for 1000 ms"),
    ] {
        let (state, why) = of(&naive, invariant, scenario);
        assert!(
            state == "failed" && why.contains(reason),
            "{invariant} in {scenario} is {state}: {why}\n{naive:#?}"
        );
    }
}

#[test]
fn good_agents_pass_and_bad_ones_fail_by_the_client_of_anthropic() {
    hold("anthropic", &on_the_wire());
}
