//! Hosts that need approval: the agent of a run reaches them once somebody has approved the run. In which
//! forms of an address it asks is in `tests/attacks/approval.py`.

use rustix::process::Signal;
use serde_json::{Value, json};
use squall_tests::upstream::standard;
use squall_tests::{Daemon, Upstream, Wire};

/// A suite whose agent is asked two prompts at `endpoint`.
fn suite(endpoint: &str) -> Value {
    json!({
        "name": "reaches",
        "agent": { "endpoint": endpoint },
        "golden_prompts": ["one", "two"],
        "contract": {
            "name": "answers",
            "invariants": [{ "id": "completes", "type": "completes" }],
            "chaos_matrix": [{ "name": "clean" }],
        },
    })
}

/// Asks for a run of it, one prompt after the other; its path.
fn ask(daemon: &Daemon, endpoint: &str) -> String {
    let options = json!({ "concurrency": 1 });
    let wish = json!({ "kind": "contract", "suite": suite(endpoint), "options": options });
    daemon.api.ask_for_run(&wish)
}

#[test]
fn a_host_that_comes_on_the_list_is_out_of_reach_for_runs_that_are_under_way() {
    // Answers the first invocation when the test says so, and ends the connection.
    let agent = Upstream::start(None, |mut connection| {
        connection.request();
        connection.wait_for_step();
        let json = b"{\"output\": \"fine\"}";
        connection.send(standard::whole("200 OK", "application/json", json));
    });
    let daemon = Daemon::start(&json!({}));
    // By name: an address is judged when the run starts, a name whenever it is dialled.
    let endpoint = format!("http://localhost:{}/", agent.address.port());
    let path = ask(&daemon, &endpoint);
    agent.wait_for_requests(1);

    let config = std::fs::read_to_string(&daemon.config).unwrap();
    let mut config: Value = serde_json::from_str(&config).unwrap();
    config["approval"] = json!([agent.address.to_string()]);
    daemon.rewrite(&config.to_string());
    daemon.signal(Signal::HUP);
    daemon.api.wait("the new list", || {
        let log = daemon.api.get("/v1/audit?action=reload&outcome=done");
        log["items"].get(0).map(drop)
    });
    agent.step();
    let run = daemon.api.ended_run(&path);
    assert!(run.to_string().contains("was not approved for"), "{run:#}");
    assert_eq!(agent.requests().len(), 1);
}

#[test]
fn an_agent_that_knows_nothing_of_scopes_reaches_no_listed_host_for_the_run() {
    let listed = Upstream::start(None, standard::serve);
    let daemon = Daemon::start(&json!({ "approval": [listed.address.to_string()] }));
    let (proxy, prefix) = (daemon.proxy, format!("http://{}", listed.address));
    let call = move || {
        let mut wire = Wire::connect(proxy);
        wire.prefix.clone_from(&prefix);
        wire.request("GET", "/json", &[], b"");
        wire.response().status
    };
    let tool = call.clone();
    let agent = Upstream::start(None, move |mut connection| {
        while connection.request().is_some() {
            let body = json!({ "output": format!("status {}", tool()) }).to_string();
            let answer = standard::whole("200 OK", "application/json", body.as_bytes());
            connection.send(answer);
        }
    });
    let path = ask(&daemon, &format!("http://{}/", agent.address));
    let run = daemon.api.ended_run(&path);
    let answer = &run["cells"][0]["evidence"][0]["answer"];
    assert_eq!(answer, "status 403", "{run:#}");
    assert_eq!(listed.requests().len(), 0);
    assert_eq!(call(), 200, "the run is over");
}
