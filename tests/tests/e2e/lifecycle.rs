//! A daemon with manners: ready lines, signals, drains, reloads, what it says about mistakes.

use rustix::process::Signal;
use serde_json::{Value, json};
use squall_tests::daemon::squall;
use squall_tests::upstream::standard;
use squall_tests::{Daemon, Path, Stage};

#[test]
fn a_first_sigterm_lets_open_exchanges_end_and_the_daemon_leave_with_0() {
    let mut stage = Stage::new();
    let mut wire = stage.open(Path::Forward);
    wire.request("GET", "/events", &[], b"");
    wire.receive_until("data: 1\n\n");
    stage.daemon.signal(Signal::TERM);
    // Nobody new is let in.
    stage.daemon.api.wait("the listener's end", || {
        std::net::TcpStream::connect(stage.daemon.proxy)
            .is_err()
            .then_some(())
    });
    stage.plain.step();
    wire.receive_until("data: 2\n\n");
    stage.plain.step();
    wire.receive_until("0\r\n\r\n");
    drop(wire);
    assert_eq!(stage.daemon.wait().code(), Some(0));
}

#[test]
fn a_drain_has_an_end() {
    let mut daemon = {
        let stage = Stage::new();
        stage.daemon
    };
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.wait().code(), Some(0));

    let stage = Stage::with(&json!({}), standard::serve);
    let mut daemon = Daemon::start_with(&json!({}), &["--grace", "300ms"]);
    let mut wire = daemon.connect();
    wire.prefix = format!("http://{}", stage.plain.address);
    wire.request("GET", "/hang", &[], b"");
    stage.plain.wait_for_requests(1);
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.wait().code(), Some(0));
}

/// As anybody computes it who wants to know whether it was this file.
fn sha256(file: &std::path::Path) -> String {
    let output = std::process::Command::new("sha256sum")
        .arg(file)
        .output()
        .unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    printed.split(' ').next().unwrap().to_owned()
}

#[test]
fn the_audit_log_has_digests_of_the_configurations_that_were_taken_over() {
    let daemon = Daemon::start(&json!({}));
    let entry = |action: &str| {
        daemon.api.wait("an entry in the audit log", || {
            let log = daemon.api.get(&format!("/v1/audit?action={action}"));
            // The first one: a file that has changed is read without being told to, too.
            log["items"].as_array()?.last().cloned()
        })
    };
    let first = sha256(&daemon.config);
    let started = entry("start");
    assert_eq!(started["before"], Value::Null, "{started}");
    assert_eq!(started["after"], first, "{started}");
    let good = std::fs::read_to_string(&daemon.config).unwrap();
    daemon.rewrite(&format!("{good} # as before"));
    let second = sha256(&daemon.config);
    daemon.signal(Signal::HUP);
    let reloaded = entry("reload&outcome=done");
    assert_eq!(reloaded["before"], first, "{reloaded}");
    assert_eq!(reloaded["after"], second, "{reloaded}");
    daemon.rewrite("prox: {}");
    daemon.signal(Signal::HUP);
    let refused = entry("reload&outcome=refused");
    assert_eq!(
        (&refused["before"], &refused["after"]),
        (&Value::Null, &Value::Null),
        "{refused}"
    );
}

#[test]
fn a_demo_that_could_not_write_its_report_does_not_begin() {
    let dir = tempfile::TempDir::new().unwrap();
    let there = dir.path().join("there.html");
    std::fs::write(&there, "kept").unwrap();
    for output in ["missing/report.html", ".", "there.html/report.html"] {
        let mut demo = squall(dir.path());
        demo.current_dir(dir.path())
            .args(["demo", "--output", output]);
        let ended = demo.output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(2), "{output}: {said}");
        assert!(said.contains("name another file"), "{output}: {said}");
        assert!(!said.contains("go through the proxy"), "{output}: {said}");
    }
    assert_eq!(std::fs::read_to_string(&there).unwrap(), "kept");
    let left: Vec<_> = std::fs::read_dir(dir.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}
