//! Of a run's secrets nothing is kept or told: not those that its suite is sent with, not those that the agent is
//! asked with, calls with or answers.

use std::path::Path;

use serde_json::json;
use squall_tests::upstream::standard;
use squall_tests::{Stage, Upstream, Wire};

/// What `${AGENT_KEY}` stands for: nobody would know it for a secret.
const SENT: &str = "quiet-harbour-nine-lanterns";

/// What `${HARBOUR}` stands for, as it is and as a JSON text may be written; the ids of rules have no such letters.
const BEYOND: &str = "kéy-of-the-harbour";
const ESCAPED: [&str; 2] = ["k\\u00e9y-of-the-harbour", "k\\u00E9y-of-the-harbour"];

/// A key that the agent calls its tool with, and answers.
const KEY: &str = "sk-ant-api03-Zq8wN2xV7bT4mK9pL3cR6yH1dF5gJ0sA8eU2iO4";

/// Fails without chaos too, which a warning tells of. Its first sixty characters end in the secret.
const OPENS: &str = "Open the door of the northern harbour with: ${AGENT_KEY}";

/// What is no secret, and must be found wherever secrets are looked for.
const OPEN: &str = "lighthouse-of-kiel";

/// An agent that calls its tool with a key, and answers with all that it knows. What it is asked to open it fails to.
fn talkative(stage: &Stage) -> Upstream {
    let (proxy, tool) = (stage.daemon.proxy, stage.plain.address);
    Upstream::start(None, move |mut connection| {
        while let Some(request) = connection.request() {
            let mut wire = Wire::connect(proxy);
            wire.prefix = format!("http://{tool}");
            wire.host = tool.to_string();
            let baggage = request.header("baggage").unwrap_or_default().to_owned();
            let bearer = format!("Bearer {KEY}");
            let headers = [("baggage", &*baggage), ("Authorization", &*bearer)];
            wire.request("GET", &format!("/json?api_key={KEY}"), &headers, b"");
            let status = wire.response().status;
            let body = format!(r#"{{"a":"{}","b":"{}"}}"#, ESCAPED[0], ESCAPED[1]);
            wire.request("POST", "/json", &headers, body.as_bytes());
            wire.response();
            let asked_with = request.header("x-agent-key").unwrap_or_default();
            let said = format!("{OPEN}: {status}, my key is {KEY}, and yours {asked_with}");
            let asked = String::from_utf8_lossy(&request.body).into_owned();
            let (status, body) = if asked.contains("Open") {
                let refused = format!("refused {asked}, {asked_with}");
                ("500 Internal Server Error", json!({ "error": refused }))
            } else {
                ("200 OK", json!({ "output": said }))
            };
            let body = body.to_string();
            if !connection.send(standard::whole(status, "application/json", body.as_bytes())) {
                return;
            }
        }
    })
}

/// Every file below a directory.
fn files(directory: &Path, found: &mut Vec<(String, Vec<u8>)>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else if let Ok(bytes) = std::fs::read(&path) {
            found.push((path.display().to_string(), bytes));
        }
    }
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes
        .windows(text.len())
        .any(|window| window == text.as_bytes())
}

#[test]
fn no_secret_of_a_run_is_kept_or_told() {
    let stage = Stage::with(&json!({ "store": { "exchanges": "all" } }), standard::serve);
    let agent = talkative(&stage);
    let suite = json!({
        "name": "talkative",
        "agent": { "endpoint": format!("http://{}/ask", agent.address),
                   "headers": { "X-Agent-Key": "${AGENT_KEY}" } },
        "golden_prompts": [format!("Is the {OPEN} open?"), OPENS],
        "contract": {
            "name": "quiet",
            "invariants": [
                { "id": "quiet", "type": "excludes_pii", "severity": "critical" },
                { "id": "keeps", "type": "no_secret_leaves", "hosts": ["nobody.test"] },
                { "id": "says", "type": "contains", "value": "closed" },
                { "id": "says ${AGENT_KEY} and ${HARBOUR}", "type": "contains", "value": "closed" },
            ],
            "chaos_matrix": [{ "name": "down of ${AGENT_KEY}", "tool_faults": [
                { "id": "${AGENT_KEY}", "tool": "*", "mode": "error", "error_code": 503 },
            ] }],
        },
    });
    let wish = json!({ "kind": "contract", "suite": suite, "secrets": { "AGENT_KEY": SENT, "HARBOUR": BEYOND } });
    let api = &stage.daemon.api;
    let taken = api.call("POST", "/v1/runs", Some(&wish));
    assert_eq!(taken.status, 201, "{}", taken.text());
    let path = taken.header("location").unwrap().to_owned();
    let run = api.ended_run(&path);
    // The agent was asked with the one, called with the other, and was judged by what it really said.
    assert_eq!(agent.requests()[0].header("x-agent-key"), Some(SENT));
    let called = stage.plain.requests();
    assert!(called[0].target.contains(KEY), "{called:?}");
    for invariant in ["quiet", "keeps"] {
        let mut cells = run["cells"].as_array().unwrap().iter();
        let cell = cells.find(|cell| cell["invariant"] == invariant).unwrap();
        assert_eq!(cell["state"], "failed", "{run:#}");
    }

    let warnings = run["warnings"].to_string();
    assert!(
        warnings.contains("of 2 prompts fail without chaos"),
        "{warnings}"
    );

    let mut told = vec![
        ("the answer to the order".to_owned(), taken.body.clone()),
        ("the run".to_owned(), run.to_string().into_bytes()),
        (
            "the log".to_owned(),
            stage.daemon.log().join("\n").into_bytes(),
        ),
    ];
    for wanted in ["html", "json", "junit", "markdown", "jsonl"] {
        let report = api.call("GET", &format!("{path}/report?format={wanted}"), None);
        assert_eq!(report.status, 200, "{wanted}: {}", report.text());
        told.push((format!("the report as {wanted}"), report.body));
    }
    let events = api.call("GET", &format!("{path}/events"), None);
    told.push(("the run's events".to_owned(), events.body));
    let incidents = api.call("GET", &format!("{path}/incidents"), None);
    assert!(
        incidents.text().contains("down of REDACTED"),
        "{}",
        incidents.text()
    );
    told.push(("the incidents".to_owned(), incidents.body));
    for list in [
        "/v1/exchanges",
        "/v1/runs",
        "/v1/audit",
        "/v1/scopes",
        "/metrics",
    ] {
        told.push((list.to_owned(), api.call("GET", list, None).body));
    }
    files(&stage.daemon.home, &mut told);
    for (what, bytes) in &told {
        for (name, secret) in [
            ("the key", KEY),
            ("the sent secret", SENT),
            ("a part of it", &SENT[..9]),
            ("the other", BEYOND),
            ("the other, escaped", ESCAPED[0]),
            ("the other, escaped in capitals", ESCAPED[1]),
        ] {
            assert!(!holds(bytes, secret), "{name} stands in {what}");
        }
    }
    // Where to look was right: what is no secret is there.
    for what in [
        "the run",
        "the report as html",
        "the run's events",
        "squall.db",
    ] {
        let mut places = told.iter().filter(|(place, _)| place.contains(what));
        assert!(
            places.any(|(_, bytes)| holds(bytes, OPEN)),
            "{OPEN} stands in {what}"
        );
    }
}
