//! The API against its own description: what it says it takes it takes, what it says it answers it answers,
//! and everything else is refused in the words of a problem. `scripts/schemathesis` asks for longer.

use serde_json::json;
use squall_tests::Daemon;
use squall_tests::daemon::OPERATOR_TOKEN;
use squall_tests::program::{clean, python, script};

/// They take documents so rich that the cases of each member take minutes: these are for `scripts/schemathesis`.
const RICH: &str = "^(put_chaos|put_scope_chaos|put_profile|dry_run_profile|create_run)$";

/// Has made-up requests sent; `arguments` choose which.
fn ask(arguments: &[&str]) {
    let daemon = Daemon::start(&json!({ "api": { "tokens": [
        { "name": "ops", "role": "admin", "token": "${OPERATOR_TOKEN}" },
    ] } }));
    // As a module: the program beside Python knows the directory that both were installed in.
    let output = clean(python())
        .args(["-m", "schemathesis.cli"])
        .arg("--config-file")
        .arg(script("schemathesis.toml"))
        .arg("run")
        .arg(format!("http://{}/openapi.json", daemon.api.address))
        .args(["-H", &format!("Authorization: Bearer {OPERATOR_TOKEN}")])
        .args(["--checks", "all", "--seed", "1", "--continue-on-failure"])
        // It takes nothing but 401, and an address hears that only so often; `access` tries every route.
        .args(["--exclude-checks", "ignored_auth"])
        .args(["--generation-database", "none", "--rate-limit", "95/s"])
        .args(arguments)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{complained}");
    // A selection of nothing succeeds as well.
    assert!(said.contains(" generated"), "{said}");
}

const READING: &str = "^(show|list|stream)_";

#[test]
fn reading_requests_at_the_edges_of_what_is_described_are_answered_as_described() {
    ask(&[
        "--phases",
        "examples,coverage",
        "--include-operation-id-regex",
        READING,
    ]);
}

#[test]
fn changing_requests_at_the_edges_of_what_is_described_are_answered_as_described() {
    ask(&[
        "--phases",
        "examples,coverage",
        "--exclude-operation-id-regex",
        &format!("{READING}|{RICH}"),
    ]);
}

#[test]
fn made_up_profiles_chaos_and_runs_are_answered_as_described() {
    ask(&[
        "--phases",
        "examples,fuzzing",
        "--max-examples",
        "5",
        "--include-operation-id-regex",
        RICH,
    ]);
}

#[test]
fn the_description_is_valid_openapi() {
    let daemon = Daemon::start(&json!({}));
    let file = daemon.home.join("openapi.json");
    std::fs::write(&file, daemon.api.get("/openapi.json").to_string()).unwrap();
    let output = clean(python())
        .args(["-m", "openapi_spec_validator"])
        .arg(&file)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{complained}");
    assert!(said.contains("OK"), "{said}");
}
