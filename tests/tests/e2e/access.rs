//! Who may use the control API: the real daemon, its real commands.

use std::process::Output;

use rustix::process::Signal;
use serde_json::{Value, json};
use squall_tests::daemon::squall;
use squall_tests::{Daemon, Wire};
use tempfile::TempDir;

/// What each request takes, as the daemon itself describes it.
fn described(daemon: &Daemon) -> Vec<(String, String, String)> {
    let document = daemon.api.get("/openapi.json");
    let paths = document["paths"].as_object().unwrap();
    let operations = paths.iter().flat_map(|(path, methods)| {
        let methods = methods.as_object().unwrap().iter();
        methods.map(move |(method, operation)| {
            let role = operation["x-squall-role"].as_str().unwrap();
            (method.to_uppercase(), path.clone(), role.to_owned())
        })
    });
    operations.collect()
}

/// `squall token …` at a daemon.
fn token(daemon: &Daemon, secret: &str, arguments: &[&str]) -> Output {
    squall(&daemon.home)
        .arg("token")
        .args(arguments)
        .args(["--server", &format!("http://{}", daemon.api.address)])
        .env("SQUALL_TOKEN", secret)
        .output()
        .unwrap()
}

/// The secret of a token that the command makes.
fn made(daemon: &Daemon, secret: &str, name: &str, role: &str) -> String {
    let output = token(daemon, secret, &["create", name, "--role", role]);
    assert!(output.status.success(), "{output:?}");
    let printed = String::from_utf8(output.stdout).unwrap();
    let made = printed.trim_end();
    assert!(
        made.starts_with("squall_") && !made.contains('\n'),
        "{made}"
    );
    made.to_owned()
}

/// The status of an answer that may never end.
fn status(daemon: &Daemon, secret: &str, method: &str, path: &str) -> u16 {
    let mut wire = Wire::connect(daemon.api.address);
    let bearer = format!("Bearer {secret}");
    let mut headers = vec![("Content-Type", "application/json")];
    if !secret.is_empty() {
        headers.push(("Authorization", &bearer));
    }
    wire.request(method, path, &headers, b"{}");
    let line = String::from_utf8(wire.receive_until("\r\n")).unwrap();
    line.split(' ').nth(1).unwrap().parse().unwrap()
}

#[test]
fn every_route_asks_for_its_role() {
    let daemon = Daemon::start(&json!({}));
    let admin = made(&daemon, "", "ops", "admin");
    let callers = [
        ("none", String::new()),
        ("viewer", made(&daemon, &admin, "eye", "viewer")),
        ("operator", made(&daemon, &admin, "ci", "operator")),
        ("admin", admin),
    ];
    let rank = |role: &str| callers.iter().position(|(name, _)| *name == role).unwrap();
    let described = described(&daemon);
    assert!(described.len() > 20, "{described:?}");
    for (method, path, needed) in described {
        let path = path
            .replace("{name}", "nobody")
            .replace("{scope}", "s")
            .replace("{id}", "x");
        for (role, secret) in &callers {
            let found = status(&daemon, secret, &method, &path);
            let lets_in = rank(role) >= rank(&needed);
            let refusal = match (lets_in, *role) {
                (true, _) => None,
                (false, "none") => Some(401),
                (false, _) => Some(403),
            };
            // Requests without a valid token are limited: after a while they get 429.
            let found = if found == 429 { 401 } else { found };
            let refused = Some(found).filter(|status| [401, 403].contains(status));
            assert_eq!(refused, refusal, "{role}: {method} {path}: {found}");
        }
    }
    assert_eq!(status(&daemon, &callers[1].1, "GET", "/nowhere"), 404);
}

#[test]
fn tokens_are_made_listed_and_revoked_by_command() {
    let mut daemon = Daemon::start(&json!({}));
    let none = token(&daemon, "", &["list"]);
    assert!(
        String::from_utf8_lossy(&none.stdout).contains("squall token create"),
        "{none:?}"
    );
    let first = token(&daemon, "", &["create", "ci", "--role", "operator"]);
    assert_eq!(first.status.code(), Some(2), "{first:?}");
    assert!(
        String::from_utf8_lossy(&first.stderr).contains("admin"),
        "{first:?}"
    );
    let admin = made(&daemon, "", "ops", "admin");
    let json = token(
        &daemon,
        &admin,
        &["create", "ci", "--role", "operator", "--json"],
    );
    let document: Value = serde_json::from_slice(&json.stdout).unwrap();
    let operator = document["token"].as_str().unwrap();
    let listed = token(&daemon, &admin, &["list"]);
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert!(
        listed.contains("ci") && listed.contains("operator"),
        "{listed}"
    );
    assert_eq!(status(&daemon, operator, "GET", "/v1/chaos"), 200);
    let refused = token(&daemon, operator, &["list"]);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    let revoked = token(&daemon, &admin, &["revoke", "ci"]);
    assert!(revoked.status.success(), "{revoked:?}");
    assert_eq!(status(&daemon, operator, "GET", "/v1/chaos"), 401);
    daemon.kill_and_start_again();
    assert_eq!(status(&daemon, &admin, "GET", "/v1/chaos"), 200);
    assert_eq!(status(&daemon, operator, "GET", "/v1/chaos"), 401);
    let said = [listed, daemon.log().join("\n")].concat();
    for secret in [admin.as_str(), operator] {
        assert!(!said.contains(&secret[7..]), "{said}");
    }
}

#[test]
fn a_variable_is_read_from_the_file_that_the_environment_names() {
    let dir = TempDir::new().unwrap();
    let file = |name: &str| dir.path().join(name).display().to_string();
    let (secret, store) = (file("token"), file("store"));
    std::fs::write(&secret, "the-first-token-of-ops\r\n").unwrap();
    std::fs::write(&store, format!("sqlite:{}\n", file("kept.db"))).unwrap();
    let tokens = json!([{ "name": "ops", "role": "admin", "token": "${OPS}" }]);
    let config = json!({ "api": { "tokens": tokens }, "store": { "url": "${STORE}" } });
    let variables = [("OPS_FILE", &*secret), ("STORE_FILE", &*store)];
    let daemon = Daemon::start_among(&config, &variables);
    assert!(dir.path().join("kept.db").exists());
    assert_eq!(
        status(&daemon, "the-first-token-of-ops", "GET", "/v1/tokens"),
        200
    );
    let list = |secret: &str| {
        let mut command = squall(&daemon.home);
        command.args(["token", "list", "--server", &daemon.api.address.to_string()]);
        command.env("SQUALL_TOKEN_FILE", secret).output().unwrap()
    };
    assert_eq!(list(&secret).status.code(), Some(0));

    std::fs::write(&secret, "the-second-token-of-ops").unwrap();
    daemon.signal(Signal::HUP);
    daemon.api.wait("the second token", || {
        (status(&daemon, "the-second-token-of-ops", "GET", "/v1/tokens") == 200).then_some(())
    });
    assert_eq!(
        status(&daemon, "the-first-token-of-ops", "GET", "/v1/tokens"),
        401
    );
    assert_eq!(list(&secret).status.code(), Some(0));

    let missing = list(&file("missing"));
    assert_eq!(missing.status.code(), Some(2), "{missing:?}");
    let mut again = squall(&daemon.home);
    again
        .arg("serve")
        .arg("-c")
        .arg(&daemon.config)
        .envs(variables);
    std::fs::remove_file(&secret).unwrap();
    let again = again.output().unwrap();
    assert_eq!(again.status.code(), Some(2), "{again:?}");
    let said = String::from_utf8(again.stderr).unwrap();
    let expected = format!("`OPS_FILE`: {secret} cannot be read: No such file");
    assert!(said.contains(&expected), "{said}");
}
