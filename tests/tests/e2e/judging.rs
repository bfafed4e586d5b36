//! The commands that try agents, with a real agent in a process of its own and a daemon of their own.

use std::process::Stdio;

use rustix::process::Signal;
use serde_json::{Value, json};
use squall_tests::Stage;
use squall_tests::daemon::start;
use squall_tests::upstream::standard;

use crate::desk::{CommandResult, Desk, suite_of};

#[test]
fn an_agent_that_owns_up_passes_and_everything_is_told() {
    let desk = Desk::new();
    let suite = desk.write(&suite_of(&desk.agent("/json", &[]), "unavailable"));
    for arguments in [&["chaos"][..], &["contract", "run"]] {
        let told = desk.run(arguments, &suite);
        told.ended(0);
        let (listening, asked) = told.err.split_once("invocation 1 of ").expect("progress");
        assert!(
            listening.contains("proxy on http://127.0.0.1:"),
            "{told:#?}"
        );
        assert!(asked.contains("invocation "), "{told:#?}");
        let closing = format!("squall {}: passed score=100 ", arguments[0]);
        assert!(told.closing().starts_with(&closing), "{told:#?}");
        assert!(
            told.out.contains("says-so") && told.out.contains("score 100 of 100"),
            "{told:#?}"
        );
    }
    // The agent's calls came through the proxy, and none while its tool was down.
    assert!(
        desk.tool
            .requests()
            .iter()
            .all(|request| request.target == "/json")
    );
}

#[test]
fn an_agent_that_makes_things_up_fails() {
    let desk = Desk::new();
    let suite = desk.write(&suite_of(&desk.agent("/json", &[]), "sunny"));
    let told = desk.run(&["contract", "run"], &suite);
    told.ended(1);
    for part in [
        "1 failure by cause:",
        "1 × says-so (critical): error on ",
        "answer: the weather is unavailable",
        "failed=1",
    ] {
        told.out_has(part);
    }
    // The line that is shown to learn more works, though the daemon went with the command.
    let line = told
        .out
        .lines()
        .find_map(|line| line.trim().strip_prefix("squall explain "));
    let explained = desk
        .squall(&["explain", line.expect("an exchange")])
        .output();
    let explained = CommandResult::from(explained.unwrap());
    explained.ended(0);
    explained.out_has("error");
    let unknown = CommandResult::from(desk.squall(&["explain", "0194"]).output().unwrap());
    unknown.ended(2);
    unknown.err_has("there is no exchange `0194` in this machine's store");
    let json = desk.run(&["chaos", "--json", "--seed", "7"], &suite);
    let document: Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(
        (&document["state"], &document["seed"]),
        (&json!("failed"), &json!(7))
    );
    assert_eq!(document["name"], "suite");
}

#[test]
fn a_score_stands_alone_on_stdout() {
    let desk = Desk::new();
    let suite = desk.write(&suite_of(&desk.agent("/json", &[]), "sunny"));
    let score = desk.run(&["contract", "score"], &suite);
    score.ended(1);
    let written = score.out.strip_suffix('\n').expect("one line");
    let number: f64 = written.parse().expect("a number and nothing else");
    assert!((0.0..100.0).contains(&number), "{score:#?}");
}

#[test]
fn a_run_is_kept_and_its_report_can_be_drawn_in_every_form() {
    let desk = Desk::new();
    let mut suite = suite_of(&desk.agent("/json", &[]), "unavailable");
    suite["output"] =
        json!({ "format": "json", "path": "out", "filename_template": "mine.{format}" });
    let told = desk.run(&["contract", "run"], &desk.write(&suite));
    told.ended(0);
    told.out_has("report: out/mine.json");
    let id = told.closing().split("run=").nth(1).expect("the run's id");
    let report = |arguments: &[&str]| {
        let mut command = desk.squall(&["report"]);
        CommandResult::from(command.args(arguments).output().unwrap())
    };
    // From the store, where nothing runs any more, and from the file that was kept.
    for run in [id, "out/mine.json"] {
        for (form, part) in [
            ("html", "<html"),
            ("json", "\"report_version\""),
            ("junit", "<testsuite"),
            ("markdown", "says-so"),
        ] {
            let told = report(&[run, "--format", form]);
            assert_eq!(told.code, Some(0), "{run} {form}: {}", told.err);
            assert!(told.out.contains(part), "{run} {form}: {}", told.out);
        }
    }
    assert_eq!(
        report(&["0194", "--format", "html"]).code,
        Some(2),
        "no such run"
    );
    assert_eq!(report(&["suite.yaml"]).code, Some(2), "no report");
    let told = report(&[id, "--output", "page.html"]);
    assert_eq!((told.code, told.out.as_str()), (Some(0), ""), "{told:#?}");
    let page = std::fs::read_to_string(desk.directory.path().join("page.html")).unwrap();
    assert!(page.contains("says-so"), "{page}");
}

#[test]
fn what_a_run_came_to_is_signed_and_a_change_is_found() {
    let desk = Desk::new();
    let suite = desk.write(&suite_of(&desk.agent("/json", &[]), "unavailable"));
    let told = desk.run(&["contract", "run"], &suite);
    let id = told.closing().split("run=").nth(1).expect("the run's id");
    let certificate = |arguments: &[&str]| {
        let mut command = desk.squall(&["certificate"]);
        CommandResult::from(command.args(arguments).output().unwrap())
    };
    let mut by_user = desk.squall(&["certificate", id, "--output", "mine.html"]);
    let by_user = CommandResult::from(by_user.env("USER", "ada").output().unwrap());
    by_user.out_has("tester ada, signed with");
    let name = "page.html";
    let signed = certificate(&[id, "--output", name, "--tester", "somebody"]);
    signed.ended(0);
    let verified = certificate(&["verify", name]);
    verified.ended(0);
    verified.out_has("somebody");
    let file = desk.directory.path().join(name);
    let mut bytes = std::fs::read(&file).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&file, &bytes).unwrap();
    assert_eq!(certificate(&["verify", name]).code, Some(1));
    assert_eq!(certificate(&["verify", "suite.yaml"]).code, Some(1));
    assert_eq!(certificate(&["verify", "nowhere.html"]).code, Some(2));
    assert_eq!(certificate(&[id, "--output", "page.txt"]).code, Some(2));
}

#[test]
fn a_file_that_is_not_there_or_is_something_else_is_told_with_what_to_name() {
    let desk = Desk::new();
    std::fs::write(desk.directory.path().join("notes.json"), "{}").unwrap();
    for (arguments, code, parts) in [
        (
            &["report", "none.json"][..],
            2,
            [
                "none.json: cannot be read: No such file",
                "squall report RUN --format json",
            ],
        ),
        (
            &["report", "reports/none", "--format", "json"],
            2,
            [
                "reports/none: cannot be read: No such file",
                "squall runs list",
            ],
        ),
        (
            &["report", "notes.json"],
            2,
            [
                "notes.json: this is no report of Squall",
                "squall report RUN --format json",
            ],
        ),
        (
            &["certificate", "verify", "none.pdf"],
            2,
            [
                "none.pdf: No such file",
                "squall certificate RUN --output FILE",
            ],
        ),
        (
            &["certificate", "verify", "notes.json"],
            1,
            [
                "notes.json: not a certificate of Squall",
                "squall certificate RUN --output FILE",
            ],
        ),
    ] {
        let told = CommandResult::from(desk.squall(arguments).output().unwrap());
        told.ended(code);
        for part in parts {
            told.err_has(part);
        }
        assert!(
            !told.err.contains("proxy on"),
            "nothing is started: {told:#?}"
        );
    }
}

#[test]
fn what_cannot_be_read_is_told_with_its_place_and_nothing_is_started() {
    let desk = Desk::new();
    let mut suite = suite_of(&desk.agent("/json", &[]), "sunny");
    suite["contract"]["invariants"][0]["type"] = json!("complets");
    let file = desk.write(&suite);
    for arguments in [
        &["chaos"][..],
        &["ci"],
        &["verify"],
        &["contract", "run"],
        &["contract", "validate"],
    ] {
        let told = desk.run(arguments, &file);
        told.ended(2);
        assert!(
            told.err.contains("suite.yaml:") && told.err.contains("did you mean `completes`?"),
            "{told:#?}"
        );
        assert!(!told.err.contains("proxy on"), "{told:#?}");
    }
    suite["contract"]["invariants"][0]["type"] = json!("completes");
    suite["golden_prompts"] = json!(["${SQUALL_TEST_NOBODY_SETS}"]);
    let told = desk.run(&["chaos"], &desk.write(&suite));
    told.ended(2);
    told.err_has("`SQUALL_TEST_NOBODY_SETS` is not set");
    assert_eq!(
        desk.run(
            &["chaos", "--profile", "nobody"],
            &desk.write(&suite_of(&desk.agent("/json", &[]), "x"))
        )
        .code,
        Some(2)
    );
}

#[test]
#[rustfmt::skip]
fn an_agent_that_is_not_there_or_does_not_start_is_no_verdict() {
    let desk = Desk::new();
    let start = json!({ "command": ["false"], "ready_url": "http://127.0.0.1:1/ready" });
    let endpoint = "http://127.0.0.1:1/ask";
    for (agent, said) in [
        (json!({ "endpoint": endpoint, "timeout": 1000 }), "the run is errored"),
        (json!({ "endpoint": endpoint, "start": start }), "the agent could not be started by false"),
    ] {
        let suite = desk.write(&suite_of(&agent, "x"));
        let anywhere = ["--proxy", "127.0.0.1:0", "--api", "127.0.0.1:0"];
        let told = desk.run(&[&["chaos"][..], &anywhere].concat(), &suite);
        told.ended(3);
        told.err_has(said);
    }
    let suite = desk.directory.path().join("suite.yaml");
    let told = desk.run(&["chaos", "--server", "http://127.0.0.1:1"], &suite);
    told.ended(3);
}

#[test]
fn a_judge_that_is_not_there_is_no_verdict() {
    let desk = Desk::new();
    let mut suite = suite_of(&desk.agent("/json", &[]), "unavailable");
    suite["model"] = json!({ "provider": "ollama", "base_url": "http://127.0.0.1:1" });
    let polite = json!({ "id": "polite", "type": "llm_judge", "rubric": "It is polite." });
    let invariants = suite["contract"]["invariants"].as_array_mut().unwrap();
    invariants.push(polite);
    let told = desk.run(&["contract", "run"], &desk.write(&suite));
    told.ended(3);
    told.err_has("judge model unreachable: the model at http://127.0.0.1:1");
    // What failed has failed.
    suite["contract"]["invariants"][1]["value"] = json!("sunny");
    let told = desk.run(&["contract", "run"], &desk.write(&suite));
    told.ended(1);
}

#[test]
fn a_run_in_which_nothing_went_wrong_proves_nothing() {
    let desk = Desk::new();
    let mut elsewhere = suite_of(&desk.agent("/json", &[]), "sunny");
    elsewhere["chaos"]["tool_faults"][0]["match_url"] = json!("http://nobody.test/*");
    let told = desk.run(&["chaos"], &desk.write(&elsewhere));
    told.ended(4);
    assert!(told.closing().contains("not_exercised=1"), "{told:#?}");
    // An agent that goes past the proxy.
    let past = suite_of(&desk.agent("/json", &["direct"]), "sunny");
    let told = desk.run(&["contract", "run"], &desk.write(&past));
    told.ended(4);
}

#[test]
fn an_interruption_ends_the_run_and_its_chaos_first() {
    let desk = Desk::new();
    let stage = Stage::with(&json!({ "safety": { "commands": true } }), standard::serve);
    let suite = desk.write(&suite_of(&desk.agent("/hang", &[]), "x"));
    for server in [None, Some(format!("http://{}", stage.daemon.api.address))] {
        let asked = desk.tool.requests().len();
        let mut command = desk.squall(&["ci", "--output", "out/put", "-c"]);
        command.arg(&suite).stdout(Stdio::piped());
        if let Some(server) = &server {
            command.args(["--server", server]);
        }
        let (child, log, lines) = start(&mut command);
        desk.tool.wait_for_requests(asked + 1);
        rustix::process::kill_process(squall_tests::daemon::pid(&child), Signal::INT).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{:#?}", log.lines());
        let said = String::from_utf8_lossy(&output.stdout);
        let closing = said.lines().last().unwrap_or_default();
        assert!(
            closing.starts_with("squall ci: cancelled score=none "),
            "{said}"
        );
        assert!(closing.contains(" run="), "{said}");
        assert!(
            !desk.directory.path().join("out").exists(),
            "nothing came into it"
        );
        // All has been said when the pipe is closed.
        while lines.recv().is_ok() {}
        assert!(
            log.lines()
                .iter()
                .any(|line| line.contains("cancelling the run")),
            "{:#?}",
            log.lines()
        );
    }
    let runs = stage.daemon.api.get("/v1/runs");
    assert_eq!(runs["items"][0]["state"], "cancelled", "{runs:#}");
    let scopes = stage.daemon.api.get("/v1/scopes");
    assert!(!scopes.to_string().contains("inline"), "{scopes}");
}

#[test]
fn a_suite_to_begin_with_is_written_and_makes_sense() {
    let desk = Desk::new();
    let agent = desk.agent("/json", &[]);
    let words = agent["command"].as_array().unwrap().iter();
    let words: Vec<_> = words.filter_map(Value::as_str).collect();
    let squall = |arguments: &[&str]| CommandResult::from(desk.squall(arguments).output().unwrap());
    let missing = squall(&["ci"]);
    missing.ended(2);
    missing.err_has("`squall init`");
    let init = [&["init", "--"][..], &words].concat();
    let told = squall(&init);
    told.ended(0);
    told.out_has("  squall verify  ");
    let told = squall(&["contract", "validate"]);
    assert_eq!((told.code, told.err.as_str()), (Some(0), ""), "{told:#?}");
    let told = squall(&["verify"]);
    told.out_has("1 call came through");
    assert_eq!(squall(&init).code, Some(2), "it is there already");
}
