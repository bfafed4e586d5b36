//! Commands without a daemon, and what a command line alone can say.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};
use squall_tests::Daemon;
use squall_tests::program::{Way, python};

use crate::desk::{CommandResult, Desk, suite_of};

fn run(desk: &Desk, arguments: &[&str]) -> CommandResult {
    CommandResult::from(desk.squall(arguments).output().unwrap())
}

/// The document that a command printed.
fn document(told: &CommandResult) -> Value {
    told.ended(0);
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
    listed.ended(0);
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
    unknown.ended(2);
}

#[test]
fn profile_validate_reads_the_tools_and_profiles_of_the_configuration() {
    let desk = Desk::new();
    let directory = desk.directory.path();
    std::fs::create_dir(directory.join("profiles")).unwrap();
    let write = |name: &str, text: &str| std::fs::write(directory.join(name), text).unwrap();
    write(
        "profiles/slow.yaml",
        "tool_faults: [{ tool: '*', mode: slow, delay_ms: 1 }]\n",
    );
    write("mine.yaml", "extends: [slow]\n");
    let unknown = run(&desk, &["profile", "validate", "mine.yaml"]);
    unknown.ended(2);
    write("squall.yaml", "profiles: profiles\n");
    let known = run(&desk, &["profile", "validate", "mine.yaml"]);
    known.ended(0);
}

#[test]
fn runs_are_shown_without_a_daemon() {
    let desk = Desk::new();
    let none = run(&desk, &["runs", "list"]);
    none.out_has("no runs");
    let suite = desk.write(&suite_of(&desk.agent("/json", &[]), "unavailable"));
    let told = desk.run(&["contract", "run"], &suite);
    let id = told.closing().split("run=").nth(1).expect("the run's id");
    let listed = run(&desk, &["runs", "list"]);
    listed.out_has(id);
    let shown = run(&desk, &["runs", "show", id]);
    shown.out_has("says-so");
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
    std::fs::write(&node, "#!/bin/sh\necho v20.11.1\nexit 1\n").unwrap();
    std::fs::set_permissions(&node, std::fs::Permissions::from_mode(0o755)).unwrap();
    let reads = "it ignores HTTP_PROXY";
    for (program, said, not_said) in [
        (&["true"][..], reads, "with code"),
        (&["sh", "-c", "exit 7"], "exited with code 7 before", reads),
        (&["./node", "x.js"], "exited with code 1 before", reads),
    ] {
        let told = desk.squall(&["run", "--"]).args(program).output();
        let told = CommandResult::from(told.unwrap());
        // As it was before its lines were wrapped.
        let err = told.err.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(err.contains(said), "{program:?}: {told:#?}");
        assert!(!err.contains(not_said), "{program:?}: {told:#?}");
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
        let told = CommandResult::from(command.env_remove("OPENAI_API_BASE").output().unwrap());
        assert_eq!(told.out, status, "{told:#?}");
        told.err_has(&format!("POST {url}"));
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
    told.err_has(counts);
    std::fs::write(
        desk.directory.path().join("bad.yaml"),
        "id: x\nexchange: []\n",
    )
    .unwrap();
    let told = run(&desk, &["run", "--replay", "bad.yaml", "--", "true"]);
    told.ended(2);
    told.err_has("bad.yaml:2:1: ");
}

#[test]
#[rustfmt::skip]
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
    none.ended(2);

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
        (&played["scope"], &played["source"], &played["on_miss"], &played["speed"]),
        (&json!("default"), &json!(format!("recording {id}")), &json!("passthrough"), &json!(2.0))
    );
    for wrong in [
        &["play"][..],
        &["play", "incident.yaml", "--recording", &id],
    ] {
        assert_eq!(tape(wrong).code, Some(2), "{wrong:?}");
    }
}

#[test]
fn a_daemon_that_has_the_ports_already_carries_out_the_run() {
    let desk = Desk::new();
    let suite = json!({
        "agent": { "endpoint": format!("http://{}/json", desk.tool.address), "response_path": "of" },
        "golden_prompts": ["Hello?"],
        "contract": {
            "name": "polite",
            "invariants": [{ "id": "completes", "type": "completes" }],
            "chaos_matrix": [{ "name": "clean" }],
        },
        "output": { "format": "terminal" },
    });
    let file = desk.write(&suite);
    let own = Daemon::at_home(desk.home(), &json!({}));
    let others = Daemon::start(&json!({}));
    let contract = |daemon: &Daemon| {
        let (proxy, api) = (daemon.proxy.to_string(), daemon.api.address.to_string());
        let mut command = desk.squall(&["contract", "run", "--proxy", &proxy, "--api", &api]);
        CommandResult::from(command.arg("-c").arg(&file).output().unwrap())
    };
    let used = contract(&own);
    used.ended(0);
    let said = format!("using the running daemon at http://{}", own.api.address);
    used.err_has(&said);
    used.err_has(&format!("proxy on http://{}", own.proxy));
    assert_eq!(own.api.get("/v1/runs")["items"][0]["kind"], "contract");
    // Whose daemon another one is nobody knows: it is not handed the suite's secrets.
    let refused = contract(&others);
    refused.ended(3);
    refused.err_has("--server");
    assert_eq!(others.api.get("/v1/runs")["items"], json!([]));
}

/// Every tool answers 503, and says why.
const OUTAGE: &str =
    "tool_faults: [{ tool: '*', mode: error, error_code: 503, message: '${WHY}' }]\n";

#[test]
fn a_file_stands_where_a_profile_s_name_is_taken() {
    let desk = Desk::new();
    let file = desk.directory.path().join("outage.yaml");
    std::fs::write(&file, OUTAGE).unwrap();
    let with_why = |arguments: &[&str]| {
        let mut command = desk.squall(arguments);
        CommandResult::from(command.env("WHY", "closed for repairs").output().unwrap())
    };
    let url = format!("http://{}/json", desk.tool.address);
    let told = with_why(&[
        "run",
        "--profile",
        "outage.yaml",
        "--",
        "curl",
        "--silent",
        &url,
    ]);
    told.out_has("closed for repairs");
    told.err_has("profile outage, seed 42");

    let mut suite = suite_of(&desk.agent("/json", &[]), "unavailable");
    suite.as_object_mut().unwrap().remove("chaos");
    desk.write(&suite);
    // The contract has a scenario of that name.
    for (command, scenario) in [("chaos", "outage"), ("ci", "outage (prompts)")] {
        let told = document(&with_why(&[command, "--profile", "outage.yaml", "--json"]));
        let cells = told["cells"].as_array().unwrap();
        assert!(
            cells.iter().any(|cell| cell["scenario"] == scenario),
            "{told}"
        );
        assert!(!told.to_string().contains("closed for repairs"), "{told}");
    }

    std::fs::write(&file, "tool_faults: [{ mode: eror }]\n").unwrap();
    for arguments in [
        &["run", "--profile", "outage.yaml", "--", "true"][..],
        &[
            "serve",
            "--profile",
            "outage.yaml",
            "--proxy",
            "127.0.0.1:0",
            "--api",
            "127.0.0.1:0",
        ],
        &["chaos", "--profile", "outage.yaml"],
        &["profile", "use", "./outage.yaml"],
    ] {
        let told = with_why(arguments);
        told.ended(2);
        told.err_has("outage.yaml:1:");
    }
    let none = with_why(&["run", "--profile", "none.yaml", "--", "true"]);
    none.ended(2);
    none.err_has("none.yaml: cannot be read");
}

#[test]
fn a_suite_of_flakestorm_v1_is_verified_and_run() {
    let desk = Desk::new();
    let directory = desk.directory.path();
    let agent = "import os, urllib.request\n\ndef ask(prompt):\n    \
                 with urllib.request.urlopen(os.environ['TOOL']) as answer:\n        \
                 return answer.read().decode()\n";
    std::fs::write(directory.join("agent.py"), agent).unwrap();
    let suite = "version: '1.0'
agent: { endpoint: 'agent:ask', type: python, timeout: 30000 }
model: { provider: ollama, name: 'qwen3:8b', base_url: 'http://127.0.0.1:1' }
mutations: { count: 20, types: [paraphrase, noise], weights: { paraphrase: 1.0, noise: 0.8 } }
golden_prompts: ['What does it say?', 'And now?']
invariants:
  - { type: output_not_empty }
  - { type: latency, max_ms: 20000 }
output: { format: html, path: ./reports }
advanced: { concurrency: 2, retries: 2 }
";
    std::fs::write(directory.join("suite.yaml"), suite).unwrap();
    let url = format!("http://{}/json", desk.tool.address);
    let with_tool = |arguments: &[&str]| {
        let mut command = desk.squall(arguments);
        command.env("TOOL", &url).env("SQUALL_PYTHON", python());
        CommandResult::from(command.output().unwrap())
    };
    let verified = with_tool(&["verify"]);
    verified.ended(0);
    verified.out_has("no invariant is judged by the suite's model");
    let absent = with_tool(&["ci"]);
    absent.ended(3);
    absent.err_has("mutations could not be written: the model at http://127.0.0.1:1");
    let (model, _) = suite.split_once("mutations:").unwrap();
    let (_, model) = model.split_once("model:").unwrap();
    let without = suite.replace(&format!("model:{model}"), "");
    std::fs::write(directory.join("suite.yaml"), without).unwrap();
    let run = with_tool(&["ci"]);
    // The profile resets a connection now and then.
    assert!(matches!(run.code, Some(0 | 1)), "{run:#?}");
    for part in ["under the profile `flaky_network`", "paraphrase"] {
        assert!(
            run.out.contains(part) || run.err.contains(part),
            "{part}: {run:#?}"
        );
    }
}
