//! A daemon that is killed leaves nothing behind that the next one stumbles over.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;
use std::time::Duration;

use serde_json::json;
use squall_tests::daemon::squall;
use squall_tests::{Authority, Daemon, End, Path, Stage};

#[test]
#[ignore = "takes minutes; run by scripts/kill"]
#[expect(
    clippy::disallowed_methods,
    reason = "the moment of the kill is what is varied"
)]
fn a_first_start_killed_at_any_moment_leaves_a_usable_home() {
    for moment in 0..60 {
        let dir = tempfile::TempDir::new().unwrap();
        let home = dir.path().join("home");
        let mut child = squall(&home)
            .args(["serve", "--proxy", "127.0.0.1:0", "--api", "127.0.0.1:0"])
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_micros(500 * moment));
        child.kill().unwrap();
        child.wait().unwrap();
        let output = squall(&home).args(["ca", "export"]).output().unwrap();
        assert!(output.status.success(), "after {moment}: {output:?}");
        for entry in std::fs::read_dir(&home).unwrap().map(Result::unwrap) {
            let text = std::fs::read_to_string(entry.path()).unwrap_or_default();
            let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
            assert!(
                !text.contains("PRIVATE KEY") || mode == 0o600,
                "{entry:?}: {mode:o}"
            );
        }
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
