//! The dashboard's pages Runs and Recordings in Chromium.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde_json::{Value, json};
use squall_tests::upstream::standard;
use squall_tests::{Daemon, Stage, Upstream, Wire};

use crate::dashboard::{visited_by, with_pictures};
use crate::runs;

const SCRIPT: &str = "dashboard_runs.mjs";

/// An agent that does not say that its tool failed until `LATE` invocations are over. It waits for a step before the
/// last of these, and forever where the prompt is `hang`.
const LATE: usize = 3;

fn agent(proxy: SocketAddr, tool: SocketAddr) -> Upstream {
    let invocations = std::sync::Arc::new(AtomicUsize::new(0));
    Upstream::start(None, move |mut connection| {
        while let Some(request) = connection.request() {
            if String::from_utf8_lossy(&request.body).contains("hang") {
                connection.hold();
                return;
            }
            let number = invocations.fetch_add(1, Ordering::SeqCst) + 1;
            if number == LATE {
                connection.wait_for_step();
            }
            let mut wire = Wire::connect(proxy);
            wire.prefix = format!("http://{tool}");
            wire.host = tool.to_string();
            let baggage = request.header("baggage").unwrap_or_default();
            wire.request("GET", "/json", &[("baggage", baggage)], b"");
            let output = match wire.response().status {
                200 => "It is sunny, no tool is unavailable",
                _ if number == LATE => "It is sunny, I suppose",
                _ => "The weather is unavailable",
            };
            let body = json!({ "output": output }).to_string();
            let answer = standard::whole("200 OK", "application/json", body.as_bytes());
            connection.send(answer);
        }
    })
}

fn suite(agent: &Upstream, prompt: &str) -> Value {
    let error = json!([{ "tool": "*", "match_url": "*/json", "mode": "error", "error_code": 503 }]);
    let slow = json!([{ "tool": "*", "match_url": "*/json", "mode": "error", "error_code": 500 }]);
    json!({
        "agent": { "endpoint": format!("http://{}/ask", agent.address) },
        "golden_prompts": [prompt],
        "advanced": { "concurrency": 1 },
        "contract": {
            "name": "honest",
            "invariants": [{ "id": "says-so", "type": "contains", "value": "unavailable", "severity": "critical" }],
            "chaos_matrix": [
                { "name": "tool-overloaded", "tool_faults": error },
                { "name": "tool-broken", "tool_faults": slow },
            ],
        },
    })
}

fn put(daemon: &Daemon, path: &str, document: &Value) {
    let response = daemon.api.call("PUT", path, Some(document));
    assert!(response.status < 300, "{}", response.text());
}

fn text<'t>(told: &'t Value, name: &str) -> &'t str {
    told[name]
        .as_str()
        .unwrap_or_else(|| panic!("no {name} in {told}"))
}

fn assert_has(found: &str, parts: &[&str]) {
    for part in parts {
        assert!(found.contains(part), "no {part} in {found}");
    }
}

/// What axe has against pages that `visited_by` did not check.
fn assert_accessible(told: &Value, pages: &[&str]) {
    for page in pages {
        for (look, found) in told[*page]
            .as_object()
            .unwrap_or_else(|| panic!("{page}: {told}"))
        {
            assert_eq!(*found, json!([]), "axe, {page}, {look}");
        }
    }
}

#[test]
fn a_run_is_started_watched_read_compared_approved_and_cancelled() {
    let stage = Stage::with(&json!({ "approval": ["guarded"] }), standard::serve);
    let agent = agent(stage.daemon.proxy, stage.plain.address);
    for (name, prompt) in [
        ("weather", "Weather?"),
        ("guarded", "Weather?"),
        ("hangs", "hang"),
    ] {
        put(
            &stage.daemon,
            &format!("/v1/suites/{name}"),
            &suite(&agent, prompt),
        );
    }
    let data = with_pictures(json!({ "upstream": format!("http://{}", stage.plain.address) }));
    let told = thread::scope(|scope| {
        let visit = scope.spawn(|| visited_by(SCRIPT, &stage.daemon, "runs", &data));
        while !visit.is_finished() {
            let all = stage.daemon.api.get("/v1/exchanges?limit=1000").to_string();
            if all.contains("/release") {
                agent.step();
                break;
            }
            thread::yield_now();
        }
        visit.join().unwrap()
    });

    assert_has(
        text(&told, "empty"),
        &["There are no runs yet", "Start a run"],
    );
    assert_eq!(told["filling"].as_array().unwrap().len(), 1, "{told}");
    assert_has(text(&told, "progress"), &["Invocation ", " of "]);
    assert_eq!(told["cells"], json!(["✓ passed", "✗ failed"]));
    assert_has(
        text(&told, "evidence"),
        &[
            "says-so",
            "tool-broken",
            "Weather?",
            "It is sunny, I suppose",
            "500",
            "/json",
        ],
    );
    for (format, has_it) in [
        ("html", true),
        ("json", true),
        ("junit", true),
        ("markdown", true),
        ("jsonl", true),
    ] {
        assert_eq!(
            told["reports"][format],
            json!([200, has_it]),
            "{format}: {told}"
        );
    }
    let run = text(&told["exchanges"], "run");
    let path = format!("/v1/exchanges?run={run}&limit=1000");
    let of_run = stage.daemon.api.get(&path)["items"].clone();
    let of_run = of_run.as_array().unwrap();
    assert!(of_run.iter().all(|one| one["run"] == run), "{of_run:#?}");
    assert!(!of_run.is_empty());
    assert_eq!(told["exchanges"]["rows"], of_run.len());
    assert_ne!(
        told["styled"], "rgba(0, 0, 0, 0)",
        "the report's own policy admits its style"
    );
    assert_has(
        text(&told, "comparison"),
        &["the score was", "Fixed (1)", "tool-broken"],
    );
    assert_has(text(&told, "trend"), &["says-so, %", "50", "100", "2 of 2"]);
    let list = told["list"].to_string();
    assert_has(
        &list,
        &[
            "hangs",
            "cancelled",
            "guarded",
            "passed",
            "weather",
            "failed",
        ],
    );
    assert_accessible(
        &told,
        &[
            "againstLive",
            "againstRun",
            "againstComparison",
            "againstTrend",
        ],
    );
}

#[test]
fn a_rejected_run_is_shown_with_its_form() {
    let stage = runs::stage();
    let agent = agent(stage.daemon.proxy, stage.plain.address);
    put(
        &stage.daemon,
        "/v1/suites/weather",
        &suite(&agent, "Weather?"),
    );
    let told = visited_by(SCRIPT, &stage.daemon, "wrong", &json!({}));
    assert_has(text(&told, "error"), &["whole number"]);
    assert_eq!(told["kept"], "99999999999999999999999");
}

#[test]
fn a_viewer_sees_runs_and_recordings_without_buttons() {
    let stage = runs::stage();
    let agent = runs::agent(stage.daemon.proxy, stage.plain.address);
    put(
        &stage.daemon,
        "/v1/suites/weather",
        &suite(&agent, "Weather?"),
    );
    let run = stage
        .daemon
        .api
        .ask_for_run(&json!({ "kind": "contract", "suite_name": "weather" }));
    let run = stage.daemon.api.ended_run(&run);
    let recording =
        stage
            .daemon
            .api
            .call("POST", "/v1/recordings", Some(&json!({ "name": "All" })));
    let recording = recording.json();
    let admin = json!({ "name": "boss", "role": "admin" });
    let admin = stage.daemon.api.call("POST", "/v1/tokens", Some(&admin));
    let admin = format!("Bearer {}", admin.json()["token"].as_str().unwrap());
    let token = json!({ "name": "reader", "role": "viewer" }).to_string();
    let mut wire = Wire::connect(stage.daemon.api.address);
    let headers = [
        ("Authorization", &*admin),
        ("Content-Type", "application/json"),
    ];
    wire.request("POST", "/v1/tokens", &headers, token.as_bytes());
    let token = wire.response().json();
    let data = json!({ "token": token["token"], "run": run["id"], "recording": recording["id"] });
    let told = visited_by(SCRIPT, &stage.daemon, "viewer", &data);
    assert_eq!(told["posts"], json!([]), "{told}");
    let reads = ["Filter", "Compare two"];
    for button in told["buttons"].as_array().unwrap() {
        assert!(reads.contains(&button.as_str().unwrap()), "{button}");
    }
    assert_has(text(&told, "read"), &["Timeline"]);
    assert_eq!(told["forged"], 403, "{told}");
}

#[test]
fn a_hostile_suite_and_its_agent_s_words_stay_text() {
    let stage = runs::stage();
    let hostile = "<img src=x onerror=alert(1)><script>alert(2)</script>";
    let agent = Upstream::start(None, move |mut connection| {
        while connection.request().is_some() {
            let body = json!({ "output": hostile }).to_string();
            connection.send(standard::whole(
                "200 OK",
                "application/json",
                body.as_bytes(),
            ));
        }
    });
    let mut suite = suite(&agent, hostile);
    suite["name"] = json!(hostile);
    suite["contract"]["invariants"][0]["id"] = json!(hostile);
    suite["contract"]["chaos_matrix"] = json!([{ "name": hostile }]);
    let wish = json!({ "kind": "contract", "suite": suite });
    let run = stage.daemon.api.ask_for_run(&wish);
    let run = stage.daemon.api.ended_run(&run);
    let data = json!({ "run": run["id"], "suite": hostile });
    let told = visited_by(SCRIPT, &stage.daemon, "hostile", &data);
    for page in ["list", "run", "trend"] {
        assert_has(text(&told, page), &[hostile]);
    }
    assert_eq!(
        (&told["elements"], &told["dialogs"]),
        (&json!(0), &json!(0)),
        "{told}"
    );
}

#[test]
fn a_scope_is_recorded_and_played_and_replays_and_explorations_are_read() {
    let stage = runs::stage();
    let agent = runs::agent(stage.daemon.proxy, stage.plain.address);
    let tool = format!("http://{}", stage.plain.address);
    let call = |path: &str| json!({ "match": { "method": "GET", "url": format!("{tool}{path}") }, "latency_ms": 40, "body": "cloudy" });
    let session = json!({
        "id": "incident", "name": "Cloudy on Monday", "input": "Weather?",
        "exchanges": [call("/json"), call("/forecast")],
    });
    put(&stage.daemon, "/v1/replays/incident", &session);
    let mut suite = runs::suite(&agent, &["Weather?"]);
    suite["advanced"] = json!({ "concurrency": 1 });
    let ended = |wish: Value| {
        let run = stage.daemon.api.ask_for_run(&wish);
        stage.daemon.api.ended_run(&run)["id"].clone()
    };
    let options = json!({ "replays": ["incident"] });
    let replay = ended(json!({ "kind": "replay", "suite": suite, "options": options }));
    let options = json!({ "budget": 12 });
    let exploration = ended(json!({ "kind": "explore", "suite": suite, "options": options }));
    let data = json!({
        "upstream": tool, "session": "incident", "replay": replay, "exploration": exploration,
    });
    let told = visited_by(SCRIPT, &stage.daemon, "recordings", &with_pictures(data));
    assert_eq!(told["called"], json!([200, 404]));
    let timeline = told["timeline"].to_string();
    assert_has(&timeline, &["/json", "200", "/status/404", "404"]);
    assert_eq!(told["played"][0], 200);
    assert_ne!(told["played"][1], told["after"], "a tape dials nothing");
    assert_has(
        text(&told, "tape"),
        &["shop", "recording ", "1 served, 1 missed, 1 left"],
    );
    assert_has(
        text(&told, "stored"),
        &["Cloudy on Monday", "Weather?", "/forecast", "40 ms"],
    );
    assert_has(text(&told, "replay"), &["missing", "/forecast"]);
    assert_has(text(&told, "heat"), &["Fault", "/json"]);
    assert_accessible(&told, &["againstTimeline", "againstHeat"]);
}
