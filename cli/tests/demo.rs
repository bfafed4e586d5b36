//! What `squall demo` prints, and that it prints the same again.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

/// `squall demo`, in a directory and with a home of its own.
fn demo(directory: &Path) -> Command {
    let mut demo = Command::new(env!("CARGO_BIN_EXE_squall"));
    demo.arg("demo").current_dir(directory).stdin(Stdio::null());
    let ours = std::env::vars_os().map(|(name, _)| name);
    for name in ours.filter(|name| name.to_string_lossy().starts_with("SQUALL_")) {
        demo.env_remove(name);
    }
    demo.env("SQUALL_HOME", directory.join("home"));
    demo.env("NO_COLOR", "1");
    demo
}

#[test]
fn an_interrupted_demo_exits_with_its_code() {
    for (options, signal) in [
        (&[][..], Signal::INT),
        (&[], Signal::TERM),
        (&["--keep"], Signal::INT),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let temporary = directory.path().join("temporary");
        std::fs::create_dir(&temporary).unwrap();
        let mut child = demo(directory.path())
            .args(options)
            .env("TMPDIR", &temporary)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let mut lines = stderr.lines().map_while(Result::ok);
        assert!(lines.any(|line| line.contains("an agent")));
        let homes = || {
            let homes = std::fs::read_dir(&temporary).unwrap();
            homes.map(|home| home.unwrap().metadata().unwrap().permissions().mode() & 0o777)
        };
        assert_eq!(homes().collect::<Vec<_>>(), [0o700]);
        let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(130), "{options:?}");
        assert_eq!(homes().count(), 0, "{options:?}");
    }
}

/// The API of a demo, which starts programs, is asked without its token and with it.
#[test]
fn the_demos_api_asks_for_a_token() {
    let directory = tempfile::tempdir().unwrap();
    let mut child = demo(directory.path())
        .arg("--keep")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let stdout = BufReader::new(child.stdout.take().unwrap());
    let (mut api, mut token) = (None, None);
    for line in stdout.lines().map_while(Result::ok) {
        if let Some((_, address)) = line.split_once("api on http://") {
            api = address.split(". ").next().map(str::to_owned);
        }
        if let Some((_, secret)) = line.split_once("export SQUALL_TOKEN=") {
            token = Some(secret.to_owned());
            break;
        }
    }
    let (api, token) = (api.unwrap(), token.unwrap());
    let status = |headers: &str| {
        let mut socket = std::net::TcpStream::connect(&api).unwrap();
        let head =
            format!("GET /v1/runs HTTP/1.1\r\nhost: {api}\r\nconnection: close\r\n{headers}\r\n");
        socket.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).unwrap();
        answer.split(' ').nth(1).map(str::to_owned)
    };
    assert_eq!(status("").as_deref(), Some("401"));
    let bearer = format!("authorization: Bearer {token}\r\n");
    assert_eq!(status(&bearer).as_deref(), Some("200"));
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    child.wait().unwrap();
}

/// The default seed gives the same cells each time.
#[test]
fn the_demo_says_where_the_agent_broke_and_why() {
    let directory = tempfile::tempdir().unwrap();
    let output = demo(directory.path()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let printed = String::from_utf8(output.stdout).unwrap();
    let words = printed.split_inclusive([' ', '\n', '(', '=']).map(masked);
    insta::assert_snapshot!(words.collect::<String>());
    let report = std::fs::read_to_string(directory.path().join("squall-demo.html")).unwrap();
    assert!(report.contains("books-once"), "{report}");
    // The run is nowhere but there.
    assert!(!report.contains("squall report "), "{report}");
}

/// A word without what differs each time: ids and times.
fn masked(word: &str) -> String {
    let shown = word.trim_end_matches([' ', '\n', ',', ':', ')']);
    let is_id = shown.len() == 24 && shown.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_time = shown.starts_with("20") && shown.ends_with('Z');
    match (is_id, is_time) {
        (true, _) => word.replace(shown, "ID"),
        (_, true) => word.replace(shown, "TIME"),
        _ => word.to_owned(),
    }
}
