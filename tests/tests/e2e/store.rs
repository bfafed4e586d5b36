//! What outlives the daemon.

use serde_json::{Value, json};
use squall_tests::daemon::{squall, start, wait};
use squall_tests::postgres::{Postgres, nobody};
use squall_tests::{Daemon, Path, Stage};

fn teapot(status: u16) -> Value {
    json!({ "chaos": { "tool_faults": [{ "mode": "error", "error_code": status }] } })
}

fn put(daemon: &Daemon, status: u16) {
    let put = daemon
        .api
        .call("PUT", "/v1/profiles/teapot", Some(&teapot(status)));
    assert!((200..300).contains(&put.status), "{}", put.text());
}

#[test]
fn a_profile_that_was_put_outlives_a_kill_and_chaos_does_not() {
    let mut stage = Stage::new();
    put(&stage.daemon, 418);
    stage
        .daemon
        .api
        .activate("/v1/chaos", &json!({ "profile": "teapot" }));
    assert_eq!(stage.open(Path::Forward).get("/json").status, 418);
    stage.daemon.kill_and_start_again();
    assert_eq!(stage.daemon.api.get("/v1/chaos")["profile"], "none");
    assert_eq!(stage.open(Path::Forward).get("/json").status, 200);
    assert_eq!(
        stage.daemon.api.get("/v1/profiles/teapot")["chaos"],
        teapot(418)["chaos"]
    );
    stage
        .daemon
        .api
        .activate("/v1/chaos", &json!({ "profile": "teapot" }));
    assert_eq!(stage.open(Path::Forward).get("/json").status, 418);
}

#[test]
fn proxying_goes_on_while_the_store_is_away() {
    let mut server = Postgres::start();
    let config = json!({ "store": { "url": server.database("squall") } });
    let stage = Stage::with(&config, squall_tests::upstream::standard::serve);
    put(&stage.daemon, 418);
    stage
        .daemon
        .api
        .activate("/v1/chaos", &json!({ "profile": "teapot" }));
    server.stop();
    assert_eq!(stage.open(Path::Forward).get("/json").status, 418);
    let api = stage.daemon.api;
    let refused = api.call("PUT", "/v1/profiles/teapot", Some(&teapot(500)));
    assert_eq!(refused.status, 503, "{}", refused.text());
    assert_eq!(api.call("GET", "/readyz", None).status, 200);
    // What is in memory is listed, also if that is nothing.
    let listed = api.get("/v1/exchanges?status=599");
    assert_eq!(listed["items"], json!([]), "{listed}");
    assert_eq!(stage.open(Path::Forward).get("/json").status, 418);
    api.end_chaos();
    assert_eq!(stage.open(Path::Forward).get("/json").status, 200);
    server.start_again();
    put(&stage.daemon, 500);
}

#[test]
fn a_store_that_cannot_be_used_ends_the_start_with_the_reason() {
    let daemon = Daemon::start(&json!({}));
    let url = nobody().replace("squall@", "squall:secret@");
    for (url, code, reason) in [
        (url.as_str(), 3, "does not answer"),
        ("sqlite:/dev/null/squall.db", 3, "cannot be used"),
        ("mysql://squall:secret@localhost/x", 2, "write `sqlite`"),
        // The daemon's own.
        ("sqlite", 3, "another daemon uses it"),
    ] {
        let ports = ["serve", "--proxy", "127.0.0.1:0", "--api", "127.0.0.1:0"];
        let mut command = squall(&daemon.home);
        let (mut child, _, lines) = start(command.args(ports).args(["--store", url]));
        let ended = wait(&mut child, "squall serve");
        let stderr = lines.iter().collect::<Vec<_>>().join("\n");
        assert_eq!(ended.code(), Some(code), "{url}: {stderr}");
        let is_explained = stderr.contains(reason) && !stderr.contains("secret");
        assert!(is_explained, "{url}: {stderr}");
    }
}

#[test]
fn what_ended_last_is_stored_when_the_daemon_leaves() {
    let mut stage = Stage::new();
    for _ in 0..5 {
        stage.open(Path::Forward).get("/json");
    }
    stage.daemon.signal(rustix::process::Signal::TERM);
    assert_eq!(stage.daemon.wait().code(), Some(0));
    stage.daemon.kill_and_start_again();
    assert_eq!(stage.daemon.api.exchanges().len(), 5);
}
