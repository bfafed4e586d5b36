//! The dashboard in Chromium, as a person uses it while an agent calls through the proxy.

use serde_json::{Value, json};
use squall_tests::program::{client, told};
use squall_tests::upstream::standard;
use squall_tests::{Daemon, Stage};

/// What a person found who did as `visit` in `tests/clients/dashboard.mjs` says.
fn visited(daemon: &Daemon, visit: &str, data: &Value) -> Value {
    let mut command = client("dashboard.mjs");
    command.args(["--url", &format!("http://{}", daemon.api.address)]);
    command.args(["--proxy", &format!("http://{}", daemon.proxy)]);
    command.args(["--client", visit, "--data", &data.to_string()]);
    let told = told(&mut command);
    assert_eq!(told["ok"], true, "{told}");
    assert_eq!(
        told["complaints"],
        json!([]),
        "what the policy or a script objected to"
    );
    let own = format!("http://{}/", daemon.api.address);
    for asked in told["asked"].as_array().into_iter().flatten() {
        let asked = asked.as_str().unwrap_or_default();
        assert!(asked.starts_with(&own) || asked == "data:,", "{asked}");
    }
    for (look, found) in told["against"].as_object().into_iter().flatten() {
        assert_eq!(*found, json!([]), "axe, {look}");
    }
    told
}

/// `pictures` of `docs/images` are written only when `SQUALL_PICTURES` names a folder.
fn with_pictures(mut data: Value) -> Value {
    if let Ok(folder) = std::env::var("SQUALL_PICTURES") {
        data["pictures"] = json!(folder);
    }
    data
}

fn texts(list: &Value) -> Vec<&str> {
    let list = list.as_array().expect("a list");
    list.iter()
        .map(|text| text.as_str().expect("a text"))
        .collect()
}

#[test]
fn exchanges_appear_as_they_end_and_a_click_explains_one() {
    let stage = Stage::with(&json!({}), standard::serve);
    let slow = json!({ "tool_faults": [
        { "tool": "*", "mode": "slow", "delay_ms": 40, "match_url": "*late*" },
        { "tool": "*", "mode": "error", "error_code": 503, "match_url": "*late*", "probability": 1e-6 },
    ] });
    stage.daemon.api.chaos_in("faulty", &slow);
    let upstream = format!("http://{}", stage.plain.address);
    let told = visited(
        &stage.daemon,
        "live",
        &with_pictures(json!({ "upstream": upstream })),
    );

    assert_eq!(told["address"], "/live");
    assert_eq!(told["empty"], true);
    let weight = told["weight"].as_u64().unwrap();
    assert!(
        (20_000..60_000).contains(&weight),
        "the first page has {weight} bytes"
    );
    assert_eq!(told["got"], json!([200, 404]));
    let rows = texts(&told["rows"]);
    assert!(
        rows[0].contains("/status/404") && rows[0].contains("404"),
        "{rows:?}"
    );
    assert!(
        rows[1].contains("/json") && rows[1].contains("200"),
        "{rows:?}"
    );

    assert_eq!(told["paused"], "?pause=1");
    assert_eq!(told["whilePaused"], 2);
    let filtered = texts(&told["filtered"]);
    let of_status = |text: &&str| text.contains("/status/4");
    assert!(
        filtered.len() == 2 && filtered.iter().all(of_status),
        "{filtered:?}"
    );

    let explained = told["explained"].as_str().unwrap();
    for part in [
        "applied",
        "latency",
        "not drawn",
        "error",
        "drew 0.",
        "matching call 1",
        "delay_ms: 40",
    ] {
        assert!(explained.contains(part), "no {part} in {explained}");
    }
    assert!(told["focused"].as_str().unwrap().contains("late"), "{told}");
    let curl = told["curl"].as_str().unwrap();
    let proxy = format!(
        "-x 'http://{}' -H 'x-squall-scope: faulty'",
        stage.daemon.proxy
    );
    assert!(
        curl.starts_with("curl -X 'GET' 'http://") && curl.ends_with(&proxy),
        "{curl}"
    );
    let recorded = told["recorded"].as_str().unwrap();
    assert!(
        recorded.contains("authorization") && recorded.contains("the upstream"),
        "{recorded}"
    );
    assert!(!recorded.contains("very-secret"), "{recorded}");
}
