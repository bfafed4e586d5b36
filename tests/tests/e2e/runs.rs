//! Runs: a real daemon, an agent that calls its tool through it, and what is left when one dies.

use std::net::SocketAddr;

use serde_json::{Value, json};
use squall_tests::daemon::squall;
use squall_tests::postgres::Postgres;
use squall_tests::upstream::standard;
use squall_tests::{Daemon, Stage, Upstream, Wire};

/// An agent that calls its tool through the proxy for each question, says what came of it, and passes
/// baggage on. Where it is asked to think, it does not answer.
pub(crate) fn agent(proxy: SocketAddr, tool: SocketAddr) -> Upstream {
    Upstream::start(None, move |mut connection| {
        while let Some(request) = connection.request() {
            if String::from_utf8_lossy(&request.body).contains("think") {
                connection.hold();
                return;
            }
            let mut wire = Wire::connect(proxy);
            wire.prefix = format!("http://{tool}");
            wire.host = tool.to_string();
            let baggage = request.header("baggage").unwrap_or_default();
            wire.request("GET", "/json", &[("baggage", baggage)], b"");
            let said = match wire.response().status {
                200 => "it is sunny",
                _ => "the weather is unavailable",
            };
            let body = json!({ "output": said }).to_string();
            let answer = standard::whole("200 OK", "application/json", body.as_bytes());
            connection.send(answer);
        }
    })
}

pub(crate) fn suite(agent: &Upstream, prompts: &[&str]) -> Value {
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
    daemon.api.ask_for_run(&wish)
}

/// Names and numbers of what happened in a run that is over, after number `last`.
pub(crate) fn told(daemon: &Daemon, path: &str, last: usize) -> Vec<(usize, String)> {
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

pub(crate) fn stage() -> Stage {
    Stage::with(
        &json!({ "store": { "exchanges": "faulted" } }),
        standard::serve,
    )
}

#[test]
fn commands_show_approve_cancel_and_watch_runs() {
    let stage = Stage::with(&json!({ "approval": ["weather"] }), standard::serve);
    let agent = agent(stage.daemon.proxy, stage.plain.address);
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
fn a_run_whose_daemon_is_killed_is_errored_by_the_next_one_and_leaves_no_chaos() {
    let mut stage = stage();
    let agent = agent(stage.daemon.proxy, stage.plain.address);
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
    let agent = agent(one.daemon.proxy, one.plain.address);
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
    let run = other.daemon.api.ended_run(&path);
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
