//! A daemon that is killed leaves nothing behind that the next one stumbles over.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use squall_tests::daemon::{squall, start};
use squall_tests::{Authority, Daemon, End, PATIENCE, Path, Stage};

use crate::runs::{agent, stage, suite, told};

/// Lets time pass until the kill.
#[expect(
    clippy::disallowed_methods,
    reason = "the moment of the kill is what is varied"
)]
fn wait(micros: u64) {
    std::thread::sleep(Duration::from_micros(micros));
}

/// Kills a daemon from another thread after a while.
fn kill_after(daemon: &Daemon, micros: u64) -> std::thread::JoinHandle<()> {
    let daemon = i32::try_from(daemon.id()).unwrap();
    std::thread::spawn(move || {
        wait(micros);
        let id = rustix::process::Pid::from_raw(daemon).unwrap();
        rustix::process::kill_process(id, rustix::process::Signal::KILL).unwrap();
    })
}

/// Sends JSON on a connection of its own; the response, unless the daemon is gone.
fn send(stream: std::io::Result<TcpStream>, request: &str, body: &Value) -> Option<String> {
    let (mut stream, body) = (stream.ok()?, body.to_string());
    let request = format!(
        "{request} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).ok()?;
    let mut response = String::new();
    stream.read_to_string(&mut response).ok()?;
    response.starts_with("HTTP/1.1").then_some(response)
}

#[test]
#[ignore = "takes minutes; run by scripts/kill"]
fn a_first_start_killed_at_any_moment_leaves_a_usable_home_and_store() {
    for moment in 0..60 {
        let dir = tempfile::TempDir::new().unwrap();
        let home = dir.path().join("home");
        let arguments = ["serve", "--proxy", "127.0.0.1:0", "--api", "127.0.0.1:0"];
        let mut first = squall(&home);
        let first = first.args(arguments).stderr(Stdio::null());
        let mut child = first.spawn().unwrap();
        wait(600 * moment);
        child.kill().unwrap();
        child.wait().unwrap();
        let output = squall(&home).args(["ca", "export"]).output().unwrap();
        assert!(output.status.success(), "after {moment}: {output:?}");
        for entry in std::fs::read_dir(&home).unwrap().map(Result::unwrap) {
            let text = std::fs::read_to_string(entry.path()).unwrap_or_default();
            let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
            let is_private = !text.contains("PRIVATE KEY") || mode == 0o600;
            assert!(is_private, "{entry:?}: {mode:o}");
        }
        let (mut child, log, lines) = start(squall(&home).args(arguments));
        while !log.lines().iter().any(|line| line.contains("api on")) {
            let line = lines.recv_timeout(PATIENCE);
            assert!(line.is_ok(), "after {moment}: {:#?}", log.lines());
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

#[test]
#[ignore = "takes minutes; run by scripts/kill"]
fn a_kill_in_the_middle_of_traffic_is_an_end_for_everybody_and_leaves_no_chaos() {
    let authority = Authority::new();
    for _ in 0..20 {
        let mut stage = Stage::new();
        stage
            .daemon
            .api
            .chaos(&json!({ "network_faults": [{ "mode": "latency", "delay_ms": 5 }] }));
        let mut wires: Vec<_> = Path::THROUGH
            .iter()
            .map(|path| {
                let mut wire = stage.open(*path);
                wire.request("GET", "/events", &[], b"");
                wire.receive_until("data: 1\n\n");
                wire
            })
            .collect();
        stage.daemon.signal(rustix::process::Signal::KILL);
        stage.daemon.wait();
        for wire in &mut wires {
            assert_ne!(wire.rest().1, End::StillOpen);
        }
        let next = Daemon::start(&json!({ "proxy": { "upstream_ca": [authority.file()] } }));
        let chaos = next.api.get("/v1/chaos").to_string();
        assert!(!chaos.contains("latency"), "{chaos}");
    }
}

/// What was answered is stored, what was not is there whole or not at all, and versions have no holes.
#[test]
#[ignore = "takes minutes; run by scripts/kill"]
fn a_kill_while_profiles_are_put_loses_none_that_was_answered() {
    let mut daemon = Daemon::start(&json!({ "store": { "exchanges": "all" } }));
    let (mut answered, mut begun) = (0, 0);
    for round in 0..100 {
        let killer = kill_after(&daemon, 350 * round);
        while let Ok(stream) = TcpStream::connect(daemon.api.address) {
            begun += 1;
            let body = json!({ "description": begun.to_string(), "chaos": {} });
            let response = send(Ok(stream), "PUT /v1/profiles/counter", &body);
            if !response.is_some_and(|response| response.starts_with("HTTP/1.1 20")) {
                break;
            }
            answered = begun;
        }
        killer.join().unwrap();
        daemon.kill_and_start_again();
        let shown = daemon.api.call("GET", "/v1/profiles/counter", None);
        if shown.status == 404 {
            assert_eq!(answered, 0);
            continue;
        }
        let held = shown.json()["description"]
            .as_str()
            .unwrap()
            .parse::<u32>()
            .unwrap();
        assert!(
            (answered..=begun).contains(&held),
            "{answered} <= {held} <= {begun}"
        );
        let newest: u32 = shown
            .header("squall-profile-version")
            .unwrap()
            .parse()
            .unwrap();
        for version in [1, newest.div_ceil(2), newest] {
            let path = format!("/v1/profiles/counter?version={version}");
            assert_eq!(daemon.api.call("GET", &path, None).status, 200, "{path}");
        }
        (answered, begun) = (held, held);
    }
    assert!(answered > 100, "many were put: {answered}");
}

#[test]
#[ignore = "takes minutes; run by scripts/kill"]
fn a_hundred_kills_in_the_middle_of_runs_leave_them_errored_and_no_chaos() {
    let mut stage = stage();
    let tool = stage.plain.address;
    let mut rounds = Vec::new();
    for round in 0..100 {
        let agent = agent(stage.daemon.proxy, tool);
        let suite = suite(&agent, &["Weather?", "Rain?", "Snow?"]);
        let killer = kill_after(&stage.daemon, round * 31_337 % 300_000);
        let wish = json!({ "kind": "chaos", "suite": suite });
        let api = stage.daemon.api.address;
        while let Some(answer) = send(TcpStream::connect(api), "POST /v1/runs", &wish) {
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
