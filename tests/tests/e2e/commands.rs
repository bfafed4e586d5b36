//! Commands without a daemon, and what a command line alone can say.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};
use squall_tests::Daemon;
use squall_tests::program::Way;

use crate::desk::{Desk, Told, suite_of};

fn run(desk: &Desk, arguments: &[&str]) -> Told {
    Told::from(desk.squall(arguments).output().unwrap())
}

/// The document that a command printed.
fn document(told: &Told) -> Value {
    assert_eq!(told.code, Some(0), "{told:#?}");
    serde_json::from_str(&told.out).unwrap()
}

#[test]
fn profiles_are_shown_without_a_daemon() {
    let desk = Desk::new();
    let directory = desk.directory.path();
    std::fs::create_dir(directory.join("profiles")).unwrap();
    std::fs::write(directory.join("squall.yaml"), "profiles: profiles\n").unwrap();
    let text = "tool_faults: [{ mode: error }]\n";
    std::fs::write(directory.join("profiles/mine.yaml"), text).unwrap();
    let listed = run(&desk, &["profile", "list"]);
    assert_eq!(listed.code, Some(0), "{listed:#?}");
    for (name, source) in [("brownout", "builtin"), ("mine", "file")] {
        let line = listed.out.lines().find(|line| line.starts_with(name));
        let line = line.unwrap_or_else(|| panic!("{name}: {listed:#?}"));
        assert!(line.contains(source), "{line}");
    }
    let listed = document(&run(&desk, &["profile", "list", "--json"]));
    let names = listed["items"].as_array().unwrap().iter();
    assert!(names.clone().any(|one| one["name"] == "mine"), "{listed}");
    assert_eq!(run(&desk, &["profile", "show", "mine"]).out, text);
    let unknown = run(&desk, &["profile", "show", "mien"]);
    assert_eq!(unknown.code, Some(2), "{unknown:#?}");
}

#[test]
fn runs_are_shown_without_a_daemon() {
    let desk = Desk::new();
    let none = run(&desk, &["runs", "list"]);
    assert!(none.out.contains("no runs"), "{none:#?}");
    let suite = desk.write(&suite_of(&desk.agent("/json", &[]), "unavailable"));
    let told = desk.run(&["contract", "run"], &suite);
    let id = told.closing().split("run=").nth(1).expect("the run's id");
    let listed = run(&desk, &["runs", "list"]);
    assert!(listed.out.contains(id), "{id}: {listed:#?}");
    let shown = run(&desk, &["runs", "show", id]);
    assert!(shown.out.contains("says-so"), "{shown:#?}");
    let shown = document(&run(&desk, &["runs", "show", id, "--json"]));
    assert_eq!(
        (&shown["id"], &shown["kind"]),
        (&id.into(), &"contract".into())
    );
}

#[test]
fn why_nothing_came_through_is_told_by_how_the_program_ended() {
    let desk = Desk::new();
    let node = desk.directory.path().join("node");
    std::fs::write(
        &node,
        "#!/bin/sh\n[ \"$1\" != --version ] || echo \"$VERSION\"\n",
    )
    .unwrap();
    std::fs::set_permissions(&node, std::fs::Permissions::from_mode(0o755)).unwrap();
    let reads = "does not read HTTP_PROXY";
    for (program, version, said, not_said) in [
        (&["true"][..], "", reads, "exit code"),
        (&["sh", "-c", "exit 7"], "", "exit code 7 before", reads),
        (
            &["./node", "x.js"],
            "v20.11.1",
            "Node v20.11.1 does not",
            "made no request",
        ),
        (&["./node", "x.js"], "v22.21.0", "made no request", "Node"),
    ] {
        let mut command = desk.squall(&["run", "--"]);
        let told = command.args(program).env("VERSION", version).output();
        let told = Told::from(told.unwrap());
        // As it was before its lines were wrapped.
        let err = told.err.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(err.contains(said), "{program:?} {version}: {told:#?}");
        assert!(!err.contains(not_said), "{program:?} {version}: {told:#?}");
    }
}

#[test]
fn base_urls_bring_programs_that_ignore_proxies_through_the_proxy() {
    let desk = Desk::new();
    let directory = desk.directory.path();
    std::fs::create_dir(directory.join("profiles")).unwrap();
    std::fs::write(directory.join("squall.yaml"), "profiles: profiles\n").unwrap();
    std::fs::write(
        directory.join("profiles/limit.yaml"),
        "llm_faults: [{ mode: rate_limit }]\n",
    )
    .unwrap();
    let call = r#"curl --silent --noproxy '*' --output /dev/null --write-out '%{http_code}' \
        --header 'content-type: application/json' --data '{"model": "m", "messages": []}' \
        "$OPENAI_BASE_URL/chat/completions""#;
    let own = format!("http://{}/v1", desk.tool.address);
    for (set, profile, status, url) in [
        (
            "",
            "limit",
            "429",
            "https://api.openai.com/v1/chat/completions",
        ),
        (&*own, "none", "200", &*format!("{own}/chat/completions")),
    ] {
        let mut command = desk.squall(&["run", "--base-urls", "--profile", profile, "--"]);
        command.args(["sh", "-c", call]).env("OPENAI_BASE_URL", set);
        let told = Told::from(command.env_remove("OPENAI_API_BASE").output().unwrap());
        assert_eq!(told.out, status, "{told:#?}");
        assert!(told.err.contains(&format!("POST {url}")), "{told:#?}");
    }
    assert_eq!(desk.tool.requests().len(), 1);
}

/// A session with one answer, that of `http://nowhere.test/known`.
const SESSION: &str = "id: incident
exchanges:
  - match: { method: GET, url: 'http://nowhere.test/known' }
    body: as it was
";

#[test]
fn a_program_is_answered_from_a_replay_session() {
    let desk = Desk::new();
    std::fs::write(desk.directory.path().join("incident.yaml"), SESSION).unwrap();
    let calls = "curl --silent http://nowhere.test/known; \
                 curl --silent --output /dev/null --write-out ' %{http_code}' http://nowhere.test/other";
    let told = run(
        &desk,
        &["run", "--replay", "incident.yaml", "--", "sh", "-c", calls],
    );
    assert_eq!(told.out, "as it was 404", "{told:#?}");
    let counts = "session incident: served 1, missed 1, dialled 0, left 0";
    assert!(told.err.contains(counts), "{told:#?}");
    std::fs::write(
        desk.directory.path().join("bad.yaml"),
        "id: x\nexchange: []\n",
    )
    .unwrap();
    let told = run(&desk, &["run", "--replay", "bad.yaml", "--", "true"]);
    assert_eq!(told.code, Some(2), "{told:#?}");
    assert!(told.err.contains("bad.yaml:2:1: "), "{told:#?}");
}

#[test]
fn a_tape_is_played_and_stopped() {
    let desk = Desk::new();
    let daemon = Daemon::start(&json!({}));
    std::fs::write(desk.directory.path().join("incident.yaml"), SESSION).unwrap();
    let server = format!("http://{}", daemon.api.address);
    let tape = |arguments: &[&str]| {
        run(
            &desk,
            &[&["tape"], arguments, &["--server", &server]].concat(),
        )
    };
    let ask = |scope: &str| {
        let way = Way {
            proxy: Some(format!("http://{scope}:x@{}", daemon.proxy)),
            ..Way::direct("http://nowhere.test/known")
        };
        String::from_utf8(way.curl(&[]).stdout).unwrap()
    };
    let playing = tape(&["play", "incident.yaml", "--scope", "job-7"]);
    assert!(
        playing
            .out
            .starts_with("scope job-7 plays session incident, 1 "),
        "{playing:#?}"
    );
    assert_eq!(ask("job-7"), "as it was");
    assert_ne!(ask("other"), "as it was");
    let stopped = tape(&["stop", "--scope", "job-7"]);
    assert!(
        stopped
            .out
            .ends_with("served 1, missed 0, dialled 0, left 0\n"),
        "{stopped:#?}"
    );
    assert_ne!(ask("job-7"), "as it was");
    let none = tape(&["stop", "--scope", "job-7"]);
    assert_eq!(none.code, Some(2), "{none:#?}");

    let begun = daemon.api.call("POST", "/v1/recordings", Some(&json!({})));
    let id = begun.json()["id"].as_str().unwrap().to_owned();
    let played = tape(&[
        "play",
        "--recording",
        &id,
        "--on-miss",
        "passthrough",
        "--speed",
        "2",
        "--json",
    ]);
    let played = document(&played);
    assert_eq!(
        (
            &played["scope"],
            &played["source"],
            &played["on_miss"],
            &played["speed"]
        ),
        (
            &json!("default"),
            &json!(format!("recording {id}")),
            &json!("passthrough"),
            &json!(2.0)
        )
    );
    for wrong in [
        &["play"][..],
        &["play", "incident.yaml", "--recording", &id],
    ] {
        assert_eq!(tape(wrong).code, Some(2), "{wrong:?}");
    }
}
