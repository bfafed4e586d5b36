//! Hosts that need approval: the agent of a run reaches them once somebody has approved the run.

use rustix::process::Signal;
use serde_json::{Value, json};
use squall_tests::program::{python, script};
use squall_tests::upstream::standard;
use squall_tests::{Daemon, Upstream, Wire};

/// Spellings of 127.0.0.1.
const FORMS: [&str; 17] = [
    "127.0.0.1",
    "127.0.0.1.",
    "127.1",
    "127.0.1",
    "0177.0.0.1",
    "0x7f.1",
    "0x7f000001",
    "0X7F000001",
    "2130706433",
    "017700000001",
    "0.0.0.0",
    "localhost",
    "LocalHost",
    "localhost.",
    "db.localhost",
    "[::ffff:127.0.0.1]",
    "[0:0:0:0:0:ffff:7f00:1]",
];

/// A suite whose agent asks for each of `urls`, and that names `tool`.
fn suite(urls: &[String], tool: &str) -> Value {
    let agent = [python(), script("reach_hosts.py")];
    let agent = agent.map(|path| path.display().to_string());
    let command: Vec<_> = agent.iter().chain(urls).collect();
    json!({
        "name": "reaches",
        "agent": { "type": "command", "command": command },
        "golden_prompts": ["go"],
        "tools": { "shop": { "match_url": [tool] } },
        "contract": {
            "name": "answers",
            "invariants": [{ "id": "completes", "type": "completes" }],
            "chaos_matrix": [{ "name": "clean" }],
        },
    })
}

/// Asks for a run: its path, and the state that it begins in.
fn ask(daemon: &Daemon, suite: &Value) -> (String, Value) {
    let wish = json!({ "kind": "contract", "suite": suite });
    let answer = daemon.api.call("POST", "/v1/runs", Some(&wish));
    assert_eq!(answer.status, 201, "{}", answer.text());
    let path = answer.header("location").unwrap().to_owned();
    let state = answer.json()["state"].clone();
    (path, state)
}

fn over(daemon: &Daemon, path: &str) -> Value {
    daemon.api.wait("the run's end", || {
        let run = daemon.api.get(path);
        run["finished_at"].is_string().then_some(run)
    })
}

/// What the agent of a run was answered, once the run is over: URL, way and status of each request.
fn answers(daemon: &Daemon, path: &str) -> Vec<(String, String, u64)> {
    let run = over(daemon, path);
    let answer = run["cells"][0]["evidence"][0]["answer"].as_str();
    let answer = answer.unwrap_or_else(|| panic!("{run:#}"));
    serde_json::from_str(answer).unwrap()
}

#[test]
fn an_agent_reaches_a_listed_host_in_no_form_before_its_run_is_approved() {
    let listed = Upstream::start(None, standard::serve);
    let other = Upstream::start(None, standard::serve);
    let port = listed.address.port();
    let connect_to = json!({
        "shop.prod.example:80": listed.address.to_string(),
        // Another name for the same server, and one for a name that is listed.
        "alias.example:80": other.address.to_string(),
        "detour.example:80": "shop.prod.example:80",
    });
    let daemon = Daemon::start(&json!({
        "proxy": { "connect_to": connect_to },
        "approval": [format!("127.0.0.1:{port}"), "*.PROD.example"],
        "safety": { "commands": true },
        "store": { "exchanges": "all" },
    }));
    let mut urls: Vec<_> = FORMS
        .map(|form| format!("http://{form}:{port}/json"))
        .into();
    urls.extend(
        ["shop.prod.example", "SHOP.prod.example."].map(|host| format!("http://{host}:80/json")),
    );
    let forms = urls.len();
    urls.push("http://detour.example:80/json".to_owned());
    // Nothing but the name in `Host` leads to the listed one, and only a CONNECT leaves it as it is.
    urls.push("http://shop.prod.example@alias.example:80/json".to_owned());

    let (path, state) = ask(&daemon, &suite(&urls, "http://elsewhere.test/*"));
    assert_eq!(state, "queued");
    for (url, way, status) in answers(&daemon, &path) {
        let is_other = url.contains('@') && way == "absolute";
        assert_eq!(status, if is_other { 200 } else { 403 }, "{way} {url}");
    }
    assert_eq!(listed.requests().len(), 0);
    let run = path.rsplit('/').next().unwrap();
    let exchanges = daemon.api.exchanges();
    let denied = exchanges
        .iter()
        .find(|exchange| exchange["outcome"] == "denied");
    let error = denied.unwrap()["error"].as_str().unwrap();
    assert!(
        error.contains("was not approved for") && error.contains("squall runs approve"),
        "{error}"
    );

    // What comes when the run is over is no less its own.
    let mut wire = Wire::connect(daemon.proxy);
    let scope = format!("run-{run}-1");
    wire.prefix = format!("http://{}", listed.address);
    wire.request("GET", "/json", &[("x-squall-scope", &scope)], b"");
    assert_eq!(wire.response().status, 403);
    assert_eq!(listed.requests().len(), 0);

    let reachable = &urls[..forms - 1];
    let tool = format!("http://127.1:{port}/*");
    let (path, state) = ask(&daemon, &suite(reachable, &tool));
    assert_eq!(state, "awaiting_approval");
    let approved = daemon.api.call("POST", &format!("{path}/approve"), None);
    assert_eq!(approved.status, 200, "{}", approved.text());
    for (url, way, status) in answers(&daemon, &path) {
        assert_eq!(status, 200, "{way} {url}");
    }
}

#[test]
fn a_connection_that_others_made_leads_no_unapproved_run_to_a_listed_address() {
    let listed = Upstream::start(None, standard::serve);
    let daemon = Daemon::start(&json!({
        "approval": [listed.address.to_string()],
        "safety": { "commands": true },
    }));
    let url = format!("http://{}/json", listed.address);
    for _ in 0..4 {
        let mut wire = Wire::connect(daemon.proxy);
        wire.prefix = format!("http://{}", listed.address);
        wire.request("GET", "/json", &[], b"");
        assert_eq!(wire.response().status, 200, "no run asks");
    }
    let before = listed.requests().len();
    let (path, _) = ask(&daemon, &suite(&[url], "http://elsewhere.test/*"));
    for (url, way, status) in answers(&daemon, &path) {
        assert_eq!(status, 403, "{way} {url}");
    }
    assert_eq!(listed.requests().len(), before);
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
    let mut suite = suite(&[], "http://elsewhere.test/*");
    // By name: an address is judged when the run starts, a name whenever it is dialled.
    let endpoint = format!("http://localhost:{}/", agent.address.port());
    suite["agent"] = json!({ "endpoint": endpoint });
    suite["golden_prompts"] = json!(["one", "two"]);
    let wish = json!({ "kind": "contract", "suite": suite, "options": { "concurrency": 1 } });
    let answer = daemon.api.call("POST", "/v1/runs", Some(&wish));
    let path = answer.header("location").unwrap();
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
    let run = over(&daemon, path);
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
    let mut suite = suite(&[], "http://elsewhere.test/*");
    suite["agent"] = json!({ "endpoint": format!("http://{}/", agent.address) });
    let (path, _) = ask(&daemon, &suite);
    let run = over(&daemon, &path);
    let answer = &run["cells"][0]["evidence"][0]["answer"];
    assert_eq!(answer, "status 403", "{run:#}");
    assert_eq!(listed.requests().len(), 0);
    assert_eq!(call(), 200, "the run is over");
}
