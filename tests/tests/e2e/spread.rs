//! Runs whose scenarios the daemons of a fleet share.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::time::Instant;

use serde_json::{Value, json};
use squall_tests::daemon::squall;
use squall_tests::postgres::Postgres;
use squall_tests::upstream::{Connection, standard};
use squall_tests::{Daemon, PATIENCE, Upstream, Wire};

/// Agents answer once so many of them have been asked.
#[derive(Debug, Default)]
struct Gate {
    asked: Mutex<BTreeSet<usize>>,
    news: Condvar,
}

impl Gate {
    /// Waits until this number of agents have been asked, this one included.
    fn pass(&self, agent: usize, wanted: usize) {
        let mut asked = self.asked.lock().unwrap();
        asked.insert(agent);
        self.news.notify_all();
        let waiting = self
            .news
            .wait_timeout_while(asked, PATIENCE, |asked| asked.len() < wanted);
        drop(waiting.unwrap());
    }
}

/// Daemons on one PostgreSQL, each with an agent of its own; the agents use one tool.
struct Team {
    members: Vec<Member>,
    gate: Arc<Gate>,
    server: Postgres,
    _tool: Upstream,
}

struct Member {
    daemon: Daemon,
    agent: Upstream,
}

/// What an agent waits for before it answers.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Waits {
    Not,
    /// Until so many agents have been asked.
    For(usize),
    /// The test's end.
    ForEver,
}

impl Team {
    fn start(waits: &[Waits]) -> Self {
        Self::with(&json!([]), waits)
    }

    /// `approval`: what needs approval in all daemons.
    fn with(approval: &Value, waits: &[Waits]) -> Self {
        let server = Postgres::start();
        let url = server.database("squall");
        let tool = Upstream::start(None, standard::serve);
        let gate = Arc::new(Gate::default());
        let config = json!({
            "store": { "url": url },
            "proxy": { "connect_to": { "tool.test:80": tool.address.to_string() } },
            "api": { "env": ["AGENT"] },
            "fleet": { "runs": ["forecast*"] },
            "approval": approval,
        });
        let members: Vec<_> = (0..)
            .zip(waits)
            .map(|(number, waits)| Member::start(number, *waits, &config, &gate))
            .collect();
        let team = Self {
            members,
            gate,
            server,
            _tool: tool,
        };
        let api = team.members[0].daemon.api;
        api.wait("the reports of all", || {
            let fleet = api.get("/v1/fleet");
            let daemons = fleet["daemons"].as_array().unwrap();
            let take = |one: &Value| one["takes"] == json!(["forecast*"]);
            (daemons.len() == waits.len() && daemons.iter().all(take)).then_some(())
        });
        team
    }

    /// Requests a spread run of the first daemon; its path.
    fn spread(&self) -> String {
        let options = json!({ "repeat": 2, "spread": true });
        let wish = json!({ "kind": "contract", "suite": suite(), "options": options });
        self.members[0].daemon.api.ask_for_run(&wish)
    }

    /// The parts of a run.
    fn parts(&self, run: &str) -> Vec<Value> {
        let id = run.rsplit('/').next().unwrap();
        let api = self.members.last().unwrap().daemon.api;
        let found = api.get(&format!("/v1/runs?part_of={id}&limit=100"));
        found["items"].as_array().unwrap().clone()
    }

    /// Waits until the queue of every run is deleted.
    fn has_no_jobs(&self) {
        self.members[0].daemon.api.wait("the end of the queue", || {
            let count =
                "SELECT (SELECT count(*) FROM apalis.jobs) + (SELECT count(*) FROM apalis.workers)";
            (self.server.sql("squall", count) == "0").then_some(())
        });
    }
}

impl Member {
    fn start(number: usize, waits: Waits, config: &Value, gate: &Arc<Gate>) -> Self {
        let proxy = Arc::new(OnceLock::new());
        let (gate, of_daemon) = (Arc::clone(gate), Arc::clone(&proxy));
        let agent = Upstream::start(None, move |connection| {
            answer(connection, &of_daemon, || match waits {
                Waits::Not => {}
                Waits::For(wanted) => gate.pass(number, wanted),
                Waits::ForEver => gate.pass(number, usize::MAX),
            });
        });
        let endpoint = format!("http://{}/", agent.address);
        let mut config = config.clone();
        config["chaos"] = json!({ "seed": 7 + number });
        let daemon = Daemon::start_among(&config, &[("AGENT", &endpoint)]);
        proxy.set(daemon.proxy).unwrap();
        Self { daemon, agent }
    }
}

/// An agent that calls its tool once, through the proxy.
fn answer(mut connection: Connection, proxy: &OnceLock<SocketAddr>, wait: impl Fn()) {
    while let Some(request) = connection.request() {
        wait();
        let mut wire = Wire::connect(*proxy.get().unwrap());
        wire.prefix = "http://tool.test".into();
        wire.host = "tool.test".into();
        let prompt = request.json()["input"].as_str().unwrap().to_owned();
        let baggage = request.header("baggage").unwrap_or("none=none");
        wire.request(
            "GET",
            &format!("/json?q={prompt}"),
            &[("baggage", baggage)],
            b"",
        );
        let forecast = match wire.response().status {
            200 => "sunny",
            _ => "unavailable",
        };
        let body = json!({ "output": format!("{prompt}: {forecast}") }).to_string();
        if !connection.send(standard::whole(
            "200 OK",
            "application/json",
            body.as_bytes(),
        )) {
            return;
        }
    }
}

fn suite() -> Value {
    json!({
        "name": "forecast report",
        "agent": { "endpoint": "${AGENT}" },
        "golden_prompts": ["Paris", "Rome"],
        "contract": {
            "name": "honest",
            "invariants": [
                { "id": "completes", "type": "completes", "severity": "critical" },
                { "id": "honest", "type": "contains", "value": "unavailable", "when": "tool_faults_active" },
                { "id": "sunny", "type": "contains", "value": "sunny" },
                { "id": "bounded", "type": "max_calls", "host": "tool.test", "max": 3 },
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

/// What is the same on one daemon and on several.
fn judged(run: &Value) -> Value {
    let mut cells = run["cells"].clone();
    for cell in cells.as_array_mut().unwrap() {
        for evidence in cell["evidence"].as_array_mut().unwrap() {
            let evidence = evidence.as_object_mut().unwrap();
            for own in ["exchanges", "telling", "latency_ms"] {
                evidence.shift_remove(own);
            }
        }
    }
    let mut scenarios = run["scenarios"].clone();
    for scenario in scenarios.as_array_mut().unwrap() {
        scenario.as_object_mut().unwrap().shift_remove("daemon");
    }
    let same = [
        "state",
        "score",
        "passed",
        "reason",
        "scores",
        "recoveries",
        "stability",
        "demands",
        "documents",
        "crew",
        "warnings",
        "seed",
    ];
    let same = same.map(|field| (field.to_owned(), run[field].clone()));
    json!([cells, scenarios, Value::Object(same.into_iter().collect())])
}

/// The daemons that executed scenarios.
fn executed_by(run: &Value) -> Vec<&str> {
    let scenarios = run["scenarios"].as_array().unwrap().iter();
    scenarios
        .map(|one| one["daemon"].as_str().unwrap())
        .collect()
}

#[test]
fn a_spread_run_gives_what_it_gives_on_one_daemon() {
    let team = Team::start(&[Waits::For(3); 3]);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("forecast.json");
    std::fs::write(&file, suite().to_string()).unwrap();
    let one = &team.members[0].daemon;
    let output = squall(&one.home)
        .args([
            "contract", "run", "--spread", "--json", "--repeat", "2", "-c",
        ])
        .arg(&file)
        .args(["--server", &one.api.address.to_string()])
        .env("AGENT", "http://127.0.0.1:9/")
        .current_dir(dir.path())
        .output()
        .unwrap();
    let progress = String::from_utf8_lossy(&output.stderr).into_owned();
    let spread: Value = serde_json::from_slice(&output.stdout).expect(&progress);
    let id = spread["id"].as_str().unwrap();
    let report = one.api.get(&format!("/v1/runs/{id}/report?format=json"));
    assert_eq!(report["exchanges_left_out"], 0, "{report:#}");
    assert_ne!(report["exchanges"], json!([]), "{report:#}");
    let listed = one.api.get(&format!("/v1/exchanges?run={id}"));
    assert_ne!(listed["items"], json!([]), "{listed:#}");
    assert_eq!(
        executed_by(&spread)
            .into_iter()
            .collect::<BTreeSet<_>>()
            .len(),
        3,
        "{spread:#}"
    );

    let options = json!({ "seed": 7, "repeat": 2 });
    let wish = json!({ "kind": "contract", "suite": suite(), "options": options });
    let alone = one.api.ended_run(&one.api.ask_for_run(&wish));
    assert_same(&judged(&spread), &judged(&alone));
    // Each scenario has a clean baseline of its own; the clean one is it.
    assert_eq!(alone["coverage"]["agent_invocations"], 20);
    assert_eq!(spread["coverage"]["agent_invocations"], 28);
    for count in ["cells", "chaos_cells", "exercised", "rules_applied"] {
        assert_eq!(
            spread["coverage"][count], alone["coverage"][count],
            "{count}"
        );
    }
    let distributions = |run: &Value| run["distributions"].as_array().unwrap().len();
    assert_eq!(distributions(&spread), distributions(&alone));

    // The evidence is the run's, and lists have the whole run alone.
    let id = spread["id"].as_str().unwrap();
    let incidents = |id: &str| one.api.get(&format!("/v1/runs/{id}/incidents"));
    let of_alone = incidents(alone["id"].as_str().unwrap());
    let of_spread = incidents(id);
    let sizes = |list: &Value| -> Vec<usize> {
        let items = list["items"].as_array().unwrap().iter();
        items
            .map(|one| one["session"]["exchanges"].as_array().map_or(0, Vec::len))
            .collect()
    };
    assert!(sizes(&of_spread).iter().sum::<usize>() > 0, "{of_spread:#}");
    assert_eq!(sizes(&of_spread), sizes(&of_alone));
    let listed = one.api.get("/v1/runs");
    assert_eq!(listed["items"].as_array().unwrap().len(), 2, "{listed:#}");
    assert!(team.parts(id).len() >= 5);
    team.has_no_jobs();
}

fn assert_same(found: &Value, expected: &Value) {
    let (found, expected) = (format!("{found:#}"), format!("{expected:#}"));
    let differs = found
        .lines()
        .zip(expected.lines())
        .position(|(one, other)| one != other);
    let near = |text: &str| {
        let from = differs.unwrap_or(0).saturating_sub(12);
        text.lines()
            .skip(from)
            .take(24)
            .collect::<Vec<_>>()
            .join("\n")
    };
    assert!(
        found == expected,
        "spread:\n{}\non one daemon:\n{}",
        near(&found),
        near(&expected)
    );
}

#[test]
fn the_scenario_of_a_killed_daemon_is_executed_again_by_another() {
    let mut team = Team::start(&[Waits::For(3), Waits::ForEver, Waits::For(3)]);
    let run = team.spread();
    // All three are asked, so the second is in the middle of a scenario, which it does not end.
    team.members[1].agent.wait_for_requests(1);
    let api = team.members[0].daemon.api;
    api.wait("the others", || {
        (team.gate.asked.lock().unwrap().len() == 3).then_some(())
    });
    let second = &team.members[1].daemon;
    let address = second.api.address.to_string();
    let fleet = api.get("/v1/fleet");
    let mut daemons = fleet["daemons"].as_array().unwrap().iter();
    let lost = &daemons.find(|one| one["address"] == address).unwrap()["id"];
    let parts = team.parts(&run);
    let scenario =
        &parts.iter().find(|part| part["daemon"] == *lost).unwrap()["part_of"]["scenario"];
    team.members[1].daemon.kill();
    let killed = Instant::now();
    let again = api.wait("the scenario in another daemon", || {
        let parts = team.parts(&run).into_iter();
        let mut parts = parts.filter(|part| part["part_of"]["scenario"] == *scenario);
        parts
            .any(|part| part["daemon"] != *lost)
            .then(|| killed.elapsed())
    });
    let ended = api.ended_run(&run);
    println!(
        "begun again after {again:?}, the run's end after {:?}",
        killed.elapsed()
    );
    let scenarios = ended["scenarios"].as_array().unwrap();
    let done_again = scenarios
        .iter()
        .find(|one| one["name"] == *scenario)
        .unwrap();
    assert_ne!(done_again["daemon"], *lost, "{done_again:#}");

    let options = json!({ "seed": 7, "repeat": 2 });
    let wish = json!({ "kind": "contract", "suite": suite(), "options": options });
    let alone = api.ended_run(&api.ask_for_run(&wish));
    assert_same(&judged(&ended), &judged(&alone));
    team.has_no_jobs();
}

#[test]
fn the_parts_of_a_run_end_with_it() {
    let mut team = Team::start(&[Waits::ForEver; 3]);
    let run = team.spread();
    for member in &team.members {
        member.agent.wait_for_requests(1);
    }
    let second = team.members[1].daemon.api;
    let api = team.members[0].daemon.api;
    let cancelled = api.call("POST", &format!("{run}/cancel"), Some(&json!({})));
    assert_eq!(
        cancelled.json()["state"],
        "cancelled",
        "{}",
        cancelled.text()
    );
    let all_are = |run: &str, state: &str| {
        second.wait("the end of the parts", || {
            let parts = team.parts(run);
            assert_eq!(parts.len(), 3, "{parts:#?}");
            parts
                .iter()
                .all(|part| part["state"] == state)
                .then_some(())
        });
    };
    all_are(&run, "cancelled");
    team.has_no_jobs();

    // They also end when the daemon that shared them out is lost.
    let run = team.spread();
    second.wait("all parts", || (team.parts(&run).len() == 3).then_some(()));
    team.members[0].daemon.kill();
    assert_eq!(second.ended_run(&run)["state"], "errored");
    second.wait("the end of the parts", || {
        let parts = team.parts(&run);
        let is_over = |part: &Value| part["state"] == "cancelled" || part["state"] == "errored";
        parts.iter().all(is_over).then_some(())
    });
    team.has_no_jobs();
}

#[test]
fn a_part_that_a_daemon_cannot_execute_fails_the_run_with_the_reason() {
    let team = Team::with(&json!(["forecast*"]), &[Waits::Not]);
    let mut suite = suite();
    suite["agent"]["endpoint"] = json!("http://127.0.0.1:9/");
    let wish = json!({ "kind": "contract", "suite": suite, "options": { "spread": true } });
    let api = team.members[0].daemon.api;
    let path = api.ask_for_run(&wish);
    // One approval is enough for all parts.
    let approved = api.call("POST", &format!("{path}/approve"), Some(&json!({})));
    assert_eq!(approved.status, 200, "{}", approved.text());
    let run = api.ended_run(&path);
    assert_eq!(run["state"], "errored", "{run:#}");
    let error = run["error"].as_str().unwrap();
    assert!(error.starts_with("scenario 1 in the daemon "), "{error}");
    assert!(error.contains("127.0.0.1:9"), "{error}");
    team.has_no_jobs();
}

#[test]
fn what_cannot_be_spread_is_rejected_with_what_to_do() {
    let team = Team::start(&[Waits::Not]);
    let lone = Daemon::start_among(
        &json!({ "api": { "env": ["AGENT"] } }),
        &[("AGENT", "http://127.0.0.1:9/")],
    );
    let member = &team.members[0].daemon;
    let contract =
        || json!({ "kind": "contract", "suite": suite(), "options": { "spread": true } });
    let with = |change: fn(&mut Value)| {
        let mut wish = contract();
        change(&mut wish);
        wish
    };
    for (daemon, wish, status, words) in [
        (&lone, contract(), 409, "share a PostgreSQL"),
        (
            member,
            with(|wish| wish["suite"]["name"] = json!("shop")),
            409,
            "`fleet.runs`",
        ),
        (
            member,
            with(|wish| wish["kind"] = json!("verify")),
            422,
            "`spread` means nothing in a run of kind verify",
        ),
        (
            member,
            with(|wish| wish["options"]["shrink"] = json!(true)),
            422,
            "leave `shrink` or `spread` out",
        ),
        (
            member,
            with(|wish| wish["secrets"] = json!({ "AGENT": "x" })),
            422,
            "`api.env`",
        ),
    ] {
        let answer = daemon.api.call("POST", "/v1/runs", Some(&wish));
        assert_eq!(answer.status, status, "{}", answer.text());
        assert!(answer.text().contains(words), "{words}: {}", answer.text());
    }
}
