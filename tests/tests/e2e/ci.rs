//! `squall ci` and `squall verify`, as a pipeline has them: files, exit codes, lines that a script reads.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::{Value, json};
use squall_tests::program::{clean, python, script, told};

use crate::desk::{CommandResult, Desk, suite_of};

/// A run of `ci` on the suite; `more` goes to the command.
fn ci(desk: &Desk, suite: &Value, more: &[&str]) -> CommandResult {
    let file = desk.write(suite);
    desk.run(&[&["ci"][..], more].concat(), &file)
}

/// The closing line, member by member, as a script would read it.
fn members(told: &CommandResult) -> BTreeMap<&str, &str> {
    let members = told.closing().split(' ');
    members.filter_map(|word| word.split_once('=')).collect()
}

#[test]
fn every_report_is_written_and_the_closing_line_says_what_they_say() {
    let desk = Desk::new();
    let suite = suite_of(&desk.agent("/json", &[]), "sunny");
    let failed = ci(&desk, &suite, &["--output", "out/put"]);
    failed.ended(1);
    let directory = desk.directory.path().join("out/put");
    let mut files: Vec<_> = std::fs::read_dir(&directory)
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    let names = [
        "squall-ci.html",
        "squall-ci.json",
        "squall-ci.md",
        "squall-ci.xml",
    ];
    assert_eq!(files, names);
    for name in names {
        let line = format!("report: out/put/{name}");
        assert!(
            failed.out.lines().any(|said| said == line),
            "{line}: {failed:#?}"
        );
    }
    let read = |name: &str| std::fs::read_to_string(directory.join(name)).unwrap();
    let document: Value = serde_json::from_str(&read("squall-ci.json")).unwrap();
    let (run, told_of) = (&document["run"], members(&failed));
    assert_eq!(run["id"], told_of["run"], "{failed:#?}");
    assert_eq!(run["seed"].to_string(), told_of["seed"], "{failed:#?}");
    let count = |state: &str| {
        let cells = run["cells"].as_array().unwrap().iter();
        cells
            .filter(|cell| cell["state"] == state)
            .count()
            .to_string()
    };
    assert_eq!(
        (count("failed"), count("passed")),
        (told_of["failed"].into(), told_of["passed"].into())
    );
    assert!(
        failed.closing().starts_with("squall ci: failed score="),
        "{failed:#?}"
    );
    let page = read("squall-ci.html");
    assert!(page.contains(told_of["run"]) && page.contains("</html>"));
    assert!(read("squall-ci.md").contains("says-so"));
    let junit = told(
        clean(python())
            .arg(script("junit_read.py"))
            .arg(directory.join("squall-ci.xml")),
    );
    assert_eq!(junit["failures"].to_string(), told_of["failed"], "{junit}");
}

#[test]
#[rustfmt::skip]
fn a_run_is_compared_with_an_earlier_one_and_only_what_is_worse_fails() {
    let desk = Desk::new();
    let suite = suite_of(&desk.agent("/json", &[]), "unavailable");
    // One demand more, which is not critical.
    let demanding = |value: &str| {
        let demand =
            json!({ "id": "polite", "type": "contains", "value": value, "severity": "low" });
        let mut suite = suite.clone();
        let demands = suite["contract"]["invariants"].as_array_mut();
        demands.unwrap().push(demand);
        suite
    };
    let (good, worse) = (demanding(" is "), demanding("please"));
    let first = ci(&desk, &good, &[]);
    first.ended(0);
    let good_run = members(&first)["run"].to_owned();
    let on_regression = ["--baseline", &good_run, "--fail-on", "regression"];
    for (what, suite, more, code, compared) in [
        ("the same again", &good, &on_regression[..], 0, ("0", "0")),
        ("worse, and only told", &worse, &on_regression[..2], 0, ("2", "0")),
        ("worse", &worse, &on_regression[..], 1, ("2", "0")),
    ] {
        let told = ci(&desk, suite, more);
        told.ended(code);
        let members = members(&told);
        let found = (members["newly_failing"], members["fixed"]);
        assert_eq!(found, compared, "{what}: {told:#?}");
        // The verdict is one: in the closing line, and in what is kept.
        let verdict = if code == 0 { "passed" } else { "failed" };
        let closing = format!("squall ci: {verdict} ");
        assert!(told.closing().starts_with(&closing), "{what}: {told:#?}");
        let why = told.out.contains("newly failed");
        assert_eq!(why, code == 1, "{what}: {told:#?}");
        let page = std::fs::read_to_string(desk.directory.path().join("reports/squall-ci.md"));
        assert!(page.unwrap().contains(verdict), "{what}");
    }
    let bad = ci(&desk, &worse, &[]);
    let bad_run = members(&bad)["run"].to_owned();
    let better = ci(
        &desk,
        &good,
        &["--baseline", &bad_run, "--fail-on", "regression"],
    );
    better.ended(0);
    assert_eq!(members(&better)["newly_failing"], "0", "{better:#?}");
    // Where there is no store of earlier runs, its report is as good.
    let kept = desk.directory.path().join("kept.json");
    std::fs::rename(desk.directory.path().join("reports/squall-ci.json"), &kept).unwrap();
    std::fs::remove_dir_all(desk.home()).unwrap();
    let on_regression = ["--baseline", "kept.json", "--fail-on", "regression"];
    let told = ci(&desk, &worse, &on_regression);
    told.ended(1);
    assert_eq!(members(&told)["newly_failing"], "2", "{told:#?}");
    told.out_has(members(&better)["run"]);
    let missing = ci(&desk, &worse, &["--baseline", "nowhere.json"]);
    missing.ended(2);
    missing.err_has("nowhere.json: cannot be read");
    // A run that nobody knows, and a word that needs one.
    for more in [&["--baseline", "0194"][..], &["--fail-on", "regression"]] {
        let refused = ci(&desk, &good, more);
        refused.ended(2);
        refused.err_has("--baseline");
    }
}

/// Lines and columns of a suite written by hand, which `verify` is to find.
fn verified(desk: &Desk, agent: &str, more: &str) -> CommandResult {
    let suite = format!(
        "golden_prompts: [Weather?]\ninvariants: [{{type: completes}}]\nagent:\n{agent}\n{more}\n"
    );
    std::fs::write(desk.directory.path().join("suite.yaml"), suite).unwrap();
    let mut command: Command = desk.squall(&["verify", "-c", "suite.yaml"]);
    command.args(["--proxy", "127.0.0.1:0", "--api", "127.0.0.1:0"]);
    command.output().unwrap().into()
}

#[test]
#[rustfmt::skip]
fn what_a_run_lacks_is_told_with_the_line_to_change() {
    let desk = Desk::new();
    let agent = |more: &[&str]| {
        let command = desk.agent("/json", more)["command"].to_string();
        format!("  type: command\n  command: {command}")
    };
    let fine = verified(&desk, &agent(&[]), "");
    fine.ended(0);
    fine.out_has("suite.yaml is ready: all checks passed");
    let reset = format!("{}\n  reset_command: [\"false\"]", agent(&[]));
    let model = "model: {provider: ollama, name: judge, base_url: 'http://127.0.0.1:1'}\n\
                 contract: {name: kind, chaos_matrix: [{name: clean}], \
                 invariants: [{id: kind, type: llm_judge, rubric: It is kind.}]}";
    for (what, agent, more, code, check, place) in [
        (
            "nobody there",
            "  endpoint: http://127.0.0.1:1/ask\n  timeout: 1000".to_owned(),
            "",
            3,
            "agent",
            "suite.yaml:4:13: ",
        ),
        (
            "no such program",
            "  type: command\n  command: [no-such-program]".to_owned(),
            "",
            3,
            "agent",
            "suite.yaml:5:12: ",
        ),
        (
            "no such module",
            "  type: python\n  endpoint: nobody:agent".to_owned(),
            "",
            3,
            "agent",
            "suite.yaml:5:13: ",
        ),
        ("past the proxy", agent(&["direct"]), "", 1, "proxy", "suite.yaml:4:3: "),
        ("a reset that fails", reset, "", 1, "reset", "suite.yaml:6:18: "),
        ("no model", agent(&[]), model, 3, "model", "suite.yaml:6:"),
    ] {
        let told = verified(&desk, &agent, more);
        told.ended(code);
        let failed = format!("failed   {check}");
        told.out_has(&failed);
        assert!(told.out.contains(place), "{what}: {place}: {told:#?}");
        told.out_has("is not ready: ");
    }
}
