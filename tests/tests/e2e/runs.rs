//! Runs: a real daemon, an agent that calls its tool through it, and what is left when one dies.

use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, mpsc};

use serde_json::{Value, json};
use squall_tests::daemon::squall;
use squall_tests::postgres::Postgres;
use squall_tests::upstream::standard;
use squall_tests::{Daemon, Stage, Upstream, Wire};

/// What an agent does with the scope that it is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Agent {
    /// Passes its baggage on.
    PassesOn,
    /// Knows nothing of scopes.
    Plain,
    /// Answers the first question only, and then thinks.
    Thinks,
}

/// Calls the tool through the proxy for each question, and says what came of it.
fn agent(proxy: SocketAddr, tool: SocketAddr, sort: Agent) -> Upstream {
    Upstream::start(None, move |mut connection| {
        while let Some(request) = connection.request() {
            let again = String::from_utf8_lossy(&request.body).contains("think");
            if sort == Agent::Thinks && again {
                connection.hold();
                return;
            }
            let mut wire = Wire::connect(proxy);
            wire.prefix = format!("http://{tool}");
            wire.host = tool.to_string();
            let baggage = request.header("baggage").unwrap_or_default();
            let passed_on = [("baggage", baggage)];
            let headers = if sort == Agent::Plain {
                &[][..]
            } else {
                &passed_on
            };
            wire.request("GET", "/json", headers, b"");
            let said = match wire.response().status {
                200 => "it is sunny",
                _ => "the weather is unavailable",
            };
            let body = json!({ "output": said }).to_string();
            connection.send(standard::whole(
                "200 OK",
                "application/json",
                body.as_bytes(),
            ));
        }
    })
}

fn suite(agent: &Upstream, prompts: &[&str]) -> Value {
    json!({
        "name": "weather",
        "agent": { "endpoint": format!("http://{}/ask", agent.address) },
        "golden_prompts": prompts,
        "invariants": [{ "id": "says-so", "type": "contains", "value": "unavailable", "severity": "high" }],
        "chaos": { "tool_faults": [{ "tool": "*", "match_url": "*/json", "mode": "error", "error_code": 503 }] },
    })
}

/// Asks for a run; its path.
fn ask(daemon: &Daemon, suite: &Value) -> String {
    let wish = json!({ "kind": "chaos", "suite": suite, "options": { "seed": 7 } });
    let answer = daemon.api.call("POST", "/v1/runs", Some(&wish));
    assert_eq!(answer.status, 201, "{}", answer.text());
    answer.header("location").unwrap().to_owned()
}

fn over(daemon: &Daemon, path: &str) -> Value {
    daemon.api.wait("the run's end", || {
        let run = daemon.api.get(path);
        run["finished_at"].is_string().then_some(run)
    })
}

/// Names and numbers of what happened in a run that is over, after number `last`.
fn told(daemon: &Daemon, path: &str, last: usize) -> Vec<(usize, String)> {
    let mut wire = Wire::connect(daemon.api.address);
    let last = last.to_string();
    wire.request(
        "GET",
        &format!("{path}/events"),
        &[("Last-Event-ID", &last)],
        b"",
    );
    let text = wire.response().text();
    let field = |event: &str, name: &str| {
        let line = event.lines().find_map(|line| line.strip_prefix(name))?;
        Some(line.trim().to_owned())
    };
    let events = text.split("\n\n");
    events
        .filter_map(|event| Some((field(event, "id:")?.parse().ok()?, field(event, "event:")?)))
        .collect()
}

fn stage() -> Stage {
    Stage::with(
        &json!({ "store": { "exchanges": "faulted" } }),
        standard::serve,
    )
}

#[test]
fn an_agent_that_passes_baggage_on_is_tried_in_a_scope_of_its_own() {
    let stage = stage();
    let agent = agent(stage.daemon.proxy, stage.plain.address, Agent::PassesOn);
    let path = ask(&stage.daemon, &suite(&agent, &["Weather?", "Rain?"]));
    let run = over(&stage.daemon, &path);
    assert_eq!(
        (&run["state"], &run["score"]),
        (&json!("passed"), &json!(100.0)),
        "{run:#}"
    );
    // Each prompt once without chaos, and once under it.
    assert_eq!(run["coverage"]["agent_invocations"], 4, "{run:#}");
    assert_eq!(run["coverage"]["rules_applied"], 2, "{run:#}");
    let cell = &run["cells"][0];
    assert_eq!(
        (&cell["invariant"], &cell["state"]),
        (&json!("says-so"), &json!("passed"))
    );
    assert_eq!(cell["evidence"][1]["answer"], "the weather is unavailable");
    let id = run["id"].as_str().unwrap();
    let exchange = cell["evidence"][0]["exchanges"][0].as_str().unwrap();
    let exchange = stage.daemon.api.get(&format!("/v1/exchanges/{exchange}"));
    assert_eq!(
        (&exchange["run"], &exchange["status"]),
        (&json!(id), &json!(503)),
        "{exchange:#}"
    );
    let scope = exchange["scope"].as_str().unwrap();
    assert!(scope.starts_with(&format!("run-{id}-")), "{scope}");
    assert_eq!(stage.daemon.api.get("/v1/chaos")["profile"], "none");
    let names: Vec<_> = told(&stage.daemon, &path, 0)
        .into_iter()
        .map(|(_, name)| name)
        .collect();
    assert_eq!(names.first().map(String::as_str), Some("state"));
    assert_eq!(names.last().map(String::as_str), Some("done"));
    let metrics = stage.daemon.api.call("GET", "/metrics", None).text();
    for line in [
        "squall_runs_total{kind=\"chaos\",state=\"passed\"} 1",
        "squall_run_score{kind=\"chaos\"} 100",
    ] {
        assert!(metrics.lines().any(|one| one == line), "{line}");
    }
}

#[test]
fn an_agent_that_knows_nothing_of_scopes_has_the_default_one_for_the_run() {
    let stage = stage();
    let agent = agent(stage.daemon.proxy, stage.plain.address, Agent::Plain);
    let run = over(
        &stage.daemon,
        &ask(&stage.daemon, &suite(&agent, &["Weather?"])),
    );
    assert_eq!(run["state"], "passed", "{run:#}");
    assert_eq!(stage.daemon.api.get("/v1/chaos")["profile"], "none");
    // Somebody's chaos is suspended for the run, and in force again after it.
    stage
        .daemon
        .api
        .chaos(&json!({ "tool_faults": [{ "tool": "*", "mode": "slow", "delay_ms": 1 }] }));
    let run = over(
        &stage.daemon,
        &ask(&stage.daemon, &suite(&agent, &["Weather?"])),
    );
    assert_eq!(run["state"], "passed", "{run:#}");
    assert_eq!(stage.daemon.api.get("/v1/chaos")["profile"], "inline");
}

#[test]
fn what_an_agent_does_not_do_fails_and_an_agent_that_is_away_is_no_verdict() {
    let stage = stage();
    let agent = agent(stage.daemon.proxy, stage.plain.address, Agent::PassesOn);
    let mut demanding = suite(&agent, &["Weather?"]);
    demanding["invariants"][0]["value"] = json!("sunny");
    let run = over(&stage.daemon, &ask(&stage.daemon, &demanding));
    assert_eq!(
        (&run["state"], &run["score"]),
        (&json!("failed"), &json!(0.0)),
        "{run:#}"
    );
    assert_eq!(run["cells"][0]["state"], "failed");
    let mut away = suite(&agent, &["Weather?"]);
    away["agent"]["endpoint"] = json!("http://127.0.0.1:1/");
    let run = over(&stage.daemon, &ask(&stage.daemon, &away));
    assert_eq!(run["state"], "errored", "{run:#}");
    assert!(
        run["error"].as_str().unwrap().contains("cannot be reached"),
        "{run:#}"
    );
}

#[test]
fn commands_show_approve_cancel_and_watch_runs() {
    let stage = Stage::with(&json!({ "approval": ["weather"] }), standard::serve);
    let agent = agent(stage.daemon.proxy, stage.plain.address, Agent::PassesOn);
    let server = format!("--server=http://{}", stage.daemon.api.address);
    let runs = |arguments: &[&str]| {
        let mut command = squall(&stage.daemon.home);
        let output = command
            .arg("runs")
            .args(arguments)
            .arg(&server)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.code(), said)
    };
    assert_eq!(runs(&["list"]).0, Some(0));
    let suite = suite(&agent, &["Weather?"]);
    let first = ask(&stage.daemon, &suite);
    let id = first.rsplit('/').next().unwrap();
    assert!(
        runs(&["list", "--state", "awaiting_approval"])
            .1
            .contains(id)
    );
    assert_eq!(runs(&["approve", id]).0, Some(0));
    let (code, said) = runs(&["watch", id]);
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("says-so") && said.contains("score 100 of 100"),
        "{said}"
    );
    assert_eq!(runs(&["approve", id]).0, Some(2), "it is over");
    let second = ask(&stage.daemon, &suite);
    let id = second.rsplit('/').next().unwrap();
    assert_eq!(runs(&["cancel", id]).0, Some(0));
    let (code, said) = runs(&["show", id]);
    assert!(code == Some(0) && said.contains("cancelled"), "{said}");
    assert_eq!(runs(&["watch", id, "--json"]).0, Some(3));
    let mut clean = suite;
    clean["chaos"]["tool_faults"][0]["match_url"] = json!("*/elsewhere");
    let third = ask(&stage.daemon, &clean);
    let id = third.rsplit('/').next().unwrap();
    runs(&["approve", id]);
    let (code, said) = runs(&["watch", id]);
    assert_eq!(code, Some(4), "{said}");
}

#[test]
fn a_cell_is_told_while_the_agent_is_held_in_a_later_scenario() {
    let stage = stage();
    let (let_go, held) = mpsc::channel::<()>();
    let (held, asked) = (Mutex::new(held), AtomicUsize::new(0));
    // Asked without chaos, under `clean`, and then under `down`: there it waits for the test.
    let agent = Upstream::start(None, move |mut connection| {
        while connection.request().is_some() {
            if asked.fetch_add(1, Ordering::Relaxed) == 2 {
                held.lock().unwrap().recv().unwrap();
            }
            let json = b"{\"output\": \"sunny\"}";
            connection.send(standard::whole("200 OK", "application/json", json));
        }
    });
    let mut suite = suite(&agent, &["Weather?"]);
    suite["contract"] = json!({
        "name": "honest",
        "invariants": [{ "id": "says-so", "type": "contains", "value": "sunny" }],
        "chaos_matrix": [{ "name": "clean" }, { "name": "down", "tool_faults": [{ "tool": "*", "mode": "error" }] }],
    });
    // One after the other, so that it is the last that waits.
    let wish = json!({ "kind": "contract", "suite": suite, "options": { "concurrency": 1 } });
    let answer = stage.daemon.api.call("POST", "/v1/runs", Some(&wish));
    let path = answer.header("location").unwrap().to_owned();
    let mut wire = Wire::connect(stage.daemon.api.address);
    wire.request("GET", &format!("{path}/events"), &[], b"");
    wire.receive_until("event: cell");
    wire.receive_until("\"scenario\":\"clean\"");
    let under_way = stage.daemon.api.get(&path);
    assert_eq!(under_way["state"], "running", "{under_way:#}");
    assert_eq!(under_way["cells"][0]["state"], "passed", "{under_way:#}");
    let_go.send(()).unwrap();
    wire.receive_until("event: cell");
    wire.receive_until("\"scenario\":\"down\"");
    wire.receive_until("event: done");
    let run = over(&stage.daemon, &path);
    assert_eq!(run["cells"].as_array().unwrap().len(), 2, "{run:#}");
}

#[test]
fn a_reader_that_never_reads_holds_nobody_up() {
    let stage = stage();
    let agent = agent(stage.daemon.proxy, stage.plain.address, Agent::PassesOn);
    let prompts = vec!["Weather?"; 100];
    let path = ask(&stage.daemon, &suite(&agent, &prompts));
    let silent: Vec<_> = (0..20)
        .map(|_| {
            let mut wire = Wire::connect(stage.daemon.api.address);
            wire.send(format!(
                "GET {path}/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
            ));
            wire
        })
        .collect();
    let run = over(&stage.daemon, &path);
    assert_eq!(run["state"], "passed", "{run:#}");
    let told = told(&stage.daemon, &path, 0);
    let numbers: Vec<_> = told.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, (1..=numbers.len()).collect::<Vec<_>>());
    assert_eq!(
        told.iter().filter(|(_, name)| name == "progress").count(),
        101
    );
    drop(silent);
}

#[test]
fn a_run_whose_daemon_is_killed_is_errored_by_the_next_one_and_leaves_no_chaos() {
    let mut stage = stage();
    let agent = agent(stage.daemon.proxy, stage.plain.address, Agent::Thinks);
    let path = ask(&stage.daemon, &suite(&agent, &["Weather?", "think"]));
    let mut wire = Wire::connect(stage.daemon.api.address);
    wire.request("GET", &format!("{path}/events"), &[], b"");
    wire.receive_until("\"done\":1,");
    stage.daemon.kill_and_start_again();
    let run = stage.daemon.api.get(&path);
    assert_eq!(run["state"], "errored", "{run:#}");
    assert!(
        run["error"].as_str().unwrap().contains("its daemon ended"),
        "{run:#}"
    );
    let scopes = stage.daemon.api.get("/v1/scopes");
    assert!(!scopes.to_string().contains("inline"), "{scopes}");
    let entry = stage.daemon.api.wait("an entry in the audit log", || {
        let log = stage.daemon.api.get("/v1/audit?action=run%20errored");
        let entry = log["items"][0].clone();
        (entry["target"] == path).then_some(entry)
    });
    assert!(entry["before"].is_string() && entry["after"].is_string());
    assert_ne!(entry["before"], entry["after"]);
    // Whoever followed it goes on where the connection broke: nothing is lost, nothing is told twice.
    let all = told(&stage.daemon, &path, 0);
    assert_eq!(told(&stage.daemon, &path, 4), all[4..]);
    assert_eq!(all.last().unwrap().1, "done");
    stage
        .daemon
        .api
        .call("POST", &format!("{path}/cancel"), None);
    assert_eq!(stage.daemon.api.get(&path)["state"], "errored");
}

#[test]
fn a_run_whose_daemon_is_gone_is_errored_by_another_and_not_taken_over() {
    let server = Postgres::start();
    let config = json!({ "store": { "url": server.database("squall") } });
    let [mut one, other] = [(); 2].map(|()| Stage::with(&config, standard::serve));
    let agent = agent(one.daemon.proxy, one.plain.address, Agent::Thinks);
    let path = ask(&one.daemon, &suite(&agent, &["Weather?", "think"]));
    let mut wire = Wire::connect(other.daemon.api.address);
    wire.request("GET", &format!("{path}/events"), &[], b"");
    wire.receive_until("\"done\":1,");
    let running = other.daemon.api.get(&path);
    assert_eq!(running["state"], "running", "{running:#}");
    for what in ["approve", "cancel"] {
        let refused = other
            .daemon
            .api
            .call("POST", &format!("{path}/{what}"), None);
        assert_eq!(refused.status, 409, "{}", refused.text());
    }
    one.daemon.signal(rustix::process::Signal::KILL);
    one.daemon.wait();
    let run = over(&other.daemon, &path);
    assert_eq!(run["state"], "errored", "{run:#}");
    assert!(
        run["error"]
            .as_str()
            .unwrap()
            .contains("its daemon is gone"),
        "{run:#}"
    );
    wire.receive_until("event: done");
    let told = told(&other.daemon, &path, 0);
    let numbers: Vec<_> = told.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, (1..=numbers.len()).collect::<Vec<_>>());
    let own = other.daemon.api.get("/v1/runs?state=running");
    assert_eq!(own["items"], json!([]));
}

#[test]
fn a_second_daemon_of_one_home_is_another_one() {
    let server = Postgres::start();
    let config = json!({ "store": { "url": server.database("squall") } });
    let one = Stage::with(&config, standard::serve);
    let agent = agent(one.daemon.proxy, one.plain.address, Agent::Thinks);
    let path = ask(&one.daemon, &suite(&agent, &["Weather?", "think"]));
    let other = one.daemon.housemate(&config);
    let id = |daemon: &Daemon| daemon.api.get("/v1/chaos")["daemon"].clone();
    assert_ne!(id(&one.daemon), id(&other));
    let run = other.api.get(&path);
    assert_eq!(
        (&run["state"], &run["daemon"]),
        (&json!("running"), &id(&one.daemon)),
        "{run:#}"
    );
}

/// Kills a daemon in the middle of runs, again and again; looks at what the next one makes of it.
pub(crate) fn kill_in_the_middle_of_runs(times: u64) {
    let mut stage = stage();
    let tool = stage.plain.address;
    let mut rounds = Vec::new();
    for round in 0..times {
        let agent = agent(stage.daemon.proxy, tool, Agent::PassesOn);
        let suite = suite(&agent, &["Weather?", "Rain?", "Snow?"]);
        let killer = {
            let daemon = stage.daemon.id();
            std::thread::spawn(move || {
                #[expect(
                    clippy::disallowed_methods,
                    reason = "the moment of the kill is what is varied"
                )]
                std::thread::sleep(std::time::Duration::from_micros(round * 31_337 % 300_000));
                let id = rustix::process::Pid::from_raw(i32::try_from(daemon).unwrap()).unwrap();
                rustix::process::kill_process(id, rustix::process::Signal::KILL).unwrap();
            })
        };
        while let Some(answer) = post(stage.daemon.api.address, &suite) {
            if answer.starts_with("HTTP/1.1 429") {
                break;
            }
        }
        killer.join().unwrap();
        stage.daemon.kill_and_start_again();
        let chaos = stage.daemon.api.get("/v1/scopes").to_string();
        assert!(!chaos.contains("inline"), "after {round}: {chaos}");
        let runs = stage.daemon.api.get("/v1/runs?limit=1000");
        for run in runs["items"].as_array().unwrap() {
            let (id, came_to) = (run["id"].as_str().unwrap(), run["state"].as_str().unwrap());
            assert!(
                ["errored", "passed", "inconclusive"].contains(&came_to),
                "after {round}: {run:#}"
            );
            if !rounds.contains(&id.to_owned()) {
                let told = told(&stage.daemon, &format!("/v1/runs/{id}"), 0);
                let numbers: Vec<_> = told.iter().map(|(number, _)| *number).collect();
                assert_eq!(
                    numbers,
                    (1..=numbers.len()).collect::<Vec<_>>(),
                    "after {round}"
                );
                assert_eq!(told.last().unwrap().1, "done", "after {round}");
                rounds.push(id.to_owned());
            }
        }
    }
    assert!(!rounds.is_empty(), "runs were taken");
}

/// Asks for a run; `None` once the daemon is gone.
fn post(address: SocketAddr, suite: &Value) -> Option<String> {
    use std::io::{Read as _, Write as _};
    let body = json!({ "kind": "chaos", "suite": suite }).to_string();
    let mut stream = TcpStream::connect(address).ok()?;
    let request = format!(
        "POST /v1/runs HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    answer.starts_with("HTTP/1.1").then_some(answer)
}

#[test]
fn a_kill_in_the_middle_of_runs_leaves_them_errored_and_no_chaos() {
    kill_in_the_middle_of_runs(4);
}
