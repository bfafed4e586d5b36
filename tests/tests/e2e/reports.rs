//! Reports of real runs: what a hostile agent says, in Chromium, and what other programs make of the forms.

use std::net::SocketAddr;

use serde_json::json;

use squall_tests::program::{client, told};
use squall_tests::upstream::standard;
use squall_tests::{Daemon, Stage, Upstream, Wire};

/// What the agent answers: everything that might be run, asked for, or end what it stands in.
const HOSTILE: &str = "</title></style></pre></script><script>alert(1);fetch('http://evil.test/')</script>\
    <img src=http://evil.test/x onerror=alert(2)><svg onload=alert(3)><a href=\"javascript:alert(4)\" id=main>here</a>\
    <style>@import 'http://evil.test/y';*{display:none}</style><iframe src=http://evil.test/></iframe>\
    <meta http-equiv=refresh content='0;url=http://evil.test/'><base href=http://evil.test/>\
    <link rel=stylesheet href=http://evil.test/z><form action=http://evil.test/><input autofocus onfocus=alert(5)>\
    ]]> --> ``` | \u{1b}[31m \u{202e}reversed";

/// Calls its tool through the proxy, and answers with no good intent when that fails.
fn hostile_agent(proxy: SocketAddr, tool: SocketAddr) -> Upstream {
    Upstream::start(None, move |mut connection| {
        while let Some(request) = connection.request() {
            let mut wire = Wire::connect(proxy);
            wire.prefix = format!("http://{tool}");
            wire.host = tool.to_string();
            let baggage = request.header("baggage").unwrap_or_default();
            wire.request("GET", "/json", &[("baggage", baggage)], b"");
            let said = match wire.response().status {
                200 => "it is sunny",
                _ => HOSTILE,
            };
            let body = json!({ "output": said }).to_string();
            connection.send(standard::whole(
                "200 OK",
                "application/json",
                body.as_bytes(),
            ));
        }
    })
}

/// A stage on which such an agent has failed a run; the run's path.
fn failed_run() -> (Stage, String) {
    let stage = Stage::with(&json!({}), standard::serve);
    let agent = hostile_agent(stage.daemon.proxy, stage.plain.address);
    let suite = json!({
        "name": format!("hostile {HOSTILE}"),
        "agent": { "endpoint": format!("http://{}/ask", agent.address) },
        "golden_prompts": [format!("How do you do? {HOSTILE}"), format!("And now? {HOSTILE}")],
        "invariants": [
            { "id": "says-so", "type": "contains", "value": "sunny", "severity": "high" },
            { "id": "answers", "type": "output_not_empty" },
        ],
        "chaos": { "tool_faults": [{ "tool": "*", "match_url": "*/json", "mode": "error", "error_code": 503 }] },
    });
    let wish =
        json!({ "kind": "chaos", "suite": suite, "options": { "seed": 7, "min_score": 50 } });
    let path = stage.daemon.api.ask_for_run(&wish);
    let run = stage.daemon.api.ended_run(&path);
    assert_eq!(run["state"], "failed", "{run}");
    (stage, path)
}

#[test]
fn a_hostile_answer_runs_nothing_and_asks_nobody() {
    let (stage, path) = failed_run();
    let page = stage
        .daemon
        .api
        .call("GET", &format!("{path}/report?format=html"), None);
    let policy = page.header("content-security-policy").unwrap();
    assert!(
        policy.starts_with("default-src 'none';") && !policy.contains("unsafe"),
        "{policy}"
    );
    assert!(policy.ends_with("; sandbox"), "{policy}");

    // As a file, where no header helps: the page has to hold by itself.
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("report.html");
    std::fs::write(&file, page.text()).unwrap();
    let url = format!("file://{}", file.display());
    let told = told(client("report_page.mjs").args(["--url", &url]));
    assert_eq!(told["ok"], true, "{told}");
    assert_eq!(told["dialogs"], 0);
    assert_eq!(
        told["complaints"],
        json!([]),
        "nothing was tried that the policy had to stop"
    );
    let asked = told["asked"].as_array().unwrap();
    assert!(
        !asked.is_empty() && asked.iter().all(|asked| *asked == json!(url)),
        "{asked:?}"
    );
    assert_eq!(told["handlers"], json!([]));
    for element in ["script", "img", "iframe", "form", "input", "base"] {
        let there = told["elements"].as_array().unwrap();
        assert!(!there.contains(&json!(element)), "{element}");
    }
    for link in told["links"].as_array().unwrap() {
        let link = link.as_str().unwrap();
        assert!(link.starts_with('#') || link == "data:,", "{link}");
    }
    assert_eq!(told["broken"], 0, "every link leads somewhere");
    assert_eq!(told["first"], "Skip to the result");
    let said = told["said"].to_string();
    assert!(
        said.contains("<script>alert(1)") && said.contains("How do you do?"),
        "{said}"
    );
    assert!(
        told["title"]
            .as_str()
            .unwrap()
            .starts_with("hostile </title>"),
        "{told}"
    );
    assert_eq!(told["cut"], json!([]), "nothing is cut on paper");
    for (width, broken) in told["numbers"].as_object().unwrap() {
        assert_eq!(*broken, json!([]), "numbers at {width}");
    }
    let figures = told["figures"].as_array().unwrap();
    assert!(figures.len() > 1, "{figures:?}");
    assert_eq!(told["ticks"], json!([]), "code is shown as code");
    for (name, against) in told["against"].as_object().unwrap() {
        assert_eq!(*against, json!([]), "axe, {name}");
    }
    assert!(
        told["checked"].as_u64().unwrap() > 30,
        "axe has looked: {told}"
    );
}

#[test]
fn a_report_exists_once_the_run_is_over_and_after_a_kill() {
    let config = json!({ "approval": ["*"] });
    let mut stage = Stage::with(&config, standard::serve);
    let agent = Upstream::start(None, standard::serve);
    let suite = json!({
        "agent": { "endpoint": format!("http://{}/json", agent.address) },
        "golden_prompts": ["How do you do?"],
        "invariants": [{ "type": "output_not_empty" }],
        "chaos": { "tool_faults": [{ "tool": "*", "mode": "error" }] },
    });
    let wish = json!({ "kind": "chaos", "suite": suite });
    let path = stage.daemon.api.ask_for_run(&wish);
    let of = |daemon: &Daemon| daemon.api.call("GET", &format!("{path}/report"), None);

    let early = of(&stage.daemon);
    assert_eq!((early.status, &early.json()["status"]), (409, &json!(409)));
    let said = early.json()["detail"].to_string();
    assert!(said.contains("awaiting_approval"), "{said}");

    let cancelled = stage
        .daemon
        .api
        .call("POST", &format!("{path}/cancel"), None);
    assert_eq!(cancelled.status, 200, "{}", cancelled.text());
    assert_eq!(of(&stage.daemon).json()["run"]["state"], "cancelled");
    stage.daemon.kill_and_start_again();
    let again = of(&stage.daemon);
    assert_eq!(again.status, 200, "{}", again.text());
    assert_eq!(again.json()["run"], stage.daemon.api.get(&path));
}
