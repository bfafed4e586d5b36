//! What `squall demo` shows whoever tries it first: the words, and that they come out so again.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
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
fn who_interrupts_the_demo_is_told_so_by_its_code() {
    for options in [&[][..], &["--keep"]] {
        let directory = tempfile::tempdir().unwrap();
        let mut child = demo(directory.path())
            .args(options)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let mut lines = stderr.lines().map_while(Result::ok);
        assert!(lines.any(|line| line.contains("an agent")));
        let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        kill_process(pid, Signal::INT).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(130), "{options:?}");
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

/// What the default seed shows: the same faults each time, and what the agent makes of them.
#[test]
fn the_demo_says_where_the_agent_broke_and_why() {
    let directory = tempfile::tempdir().unwrap();
    let output = demo(directory.path()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    insta::assert_snapshot!(masked(&said));
    let report = std::fs::read_to_string(directory.path().join("squall-demo.html")).unwrap();
    assert!(report.contains("books-once"), "{report}");
}

/// Without what is other each time: ids, and in the rows of the first table times, and so widths.
fn masked(said: &str) -> String {
    let mut lines = Vec::new();
    let mut in_table = false;
    for line in said.lines() {
        in_table = line.starts_with("WEATHER") || (in_table && !line.is_empty());
        if in_table {
            lines.push(without_time(line));
        } else {
            let words = line.split_inclusive(' ').map(without_id);
            lines.push(words.collect::<String>().trim_end().to_owned());
        }
    }
    lines.join("\n")
}

fn without_id(word: &str) -> String {
    let id = word.trim_end().trim_start_matches("run=");
    let is_one = id.len() == 24 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_one {
        word.replace(id, "ID")
    } else {
        word.to_owned()
    }
}

fn without_time(row: &str) -> String {
    let words: Vec<_> = row.split_whitespace().collect();
    let is_unit = |at: usize| matches!(words.get(at), Some(&("ms" | "s")));
    let kept = (0..words.len()).filter(|at| !is_unit(*at));
    let kept: Vec<_> = kept
        .map(|at| if is_unit(at + 1) { "TIME" } else { words[at] })
        .collect();
    kept.join(" ")
}
