//! Failures that are shrunk to the faults that are enough.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde_json::{Value, json};
use squall_tests::daemon::squall;
use squall_tests::upstream::standard;
use squall_tests::{Stage, Upstream, Wire};

/// The tools that the agent calls, in this order.
const CALLS: [&str; 7] = [
    "search", "pay", "search", "lookup", "search", "pay", "lookup",
];

/// An agent that makes these calls, and breaks if their statuses do so.
fn agent(
    stage: &Stage,
    calls: &'static [&'static str],
    breaks: impl Fn(&[u16]) -> bool + Send + Sync + 'static,
) -> Upstream {
    let proxy = stage.daemon.proxy;
    Upstream::start(None, move |mut connection| {
        while let Some(request) = connection.request() {
            let baggage = request.header("baggage").unwrap_or_default();
            let status = |tool: &&str| {
                let mut wire = Wire::connect(proxy);
                wire.prefix = format!("http://{tool}.test");
                wire.host = format!("{tool}.test");
                wire.request("GET", "/json", &[("baggage", baggage)], b"");
                wire.response().status
            };
            let statuses: Vec<_> = calls.iter().map(status).collect();
            let answer = if breaks(&statuses) {
                "I give up"
            } else {
                "it is fine"
            };
            let body = json!({ "output": answer }).to_string();
            connection.send(standard::whole(
                "200 OK",
                "application/json",
                body.as_bytes(),
            ));
        }
    })
}

fn stage() -> (Stage, Upstream) {
    let tool = Upstream::start(None, standard::serve);
    let address = tool.address.to_string();
    let connect_to =
        json!({ "search.test:80": address, "pay.test:80": address, "lookup.test:80": address });
    let config = json!({ "proxy": { "connect_to": connect_to } });
    (Stage::with(&config, standard::serve), tool)
}

/// A suite under seven faults in each invocation.
fn suite(agent: &Upstream) -> Value {
    let tool = |name: &str| json!({ "match_url": format!("http://{name}.test/*") });
    json!({
        "name": "shrunk",
        "agent": { "endpoint": format!("http://{}/ask", agent.address) },
        "golden_prompts": ["Book it"],
        "tools": { "search": tool("search"), "pay": tool("pay"), "lookup": tool("lookup") },
        "invariants": [{ "id": "fine", "type": "contains", "value": "it is fine" }],
        "chaos": { "tool_faults": [
            { "tool": "search", "mode": "error", "error_code": 503, "probability": 0.999_999 },
            { "tool": "pay", "mode": "error", "error_code": 500, "limit": 2 },
            { "tool": "lookup", "mode": "error", "error_code": 404 },
        ] },
    })
}

/// What a command of the daemon's printed, in its home.
fn command(stage: &Stage, arguments: &[&str]) -> String {
    let home = &stage.daemon.home;
    let server = format!("--server=http://{}", stage.daemon.api.address);
    let mut command = squall(home);
    command.current_dir(home).args(arguments).arg(server);
    String::from_utf8(command.output().unwrap().stdout).unwrap()
}

/// Runs a suite and shrinks its failures: what was printed, and the run.
fn shrunk(stage: &Stage, suite: &Value) -> (String, Value) {
    std::fs::write(stage.daemon.home.join("suite.yaml"), suite.to_string()).unwrap();
    let text = command(stage, &["chaos", "--shrink", "--seed=7"]);
    let (_, id) = text.trim_end().rsplit_once("run=").unwrap();
    let run = stage.daemon.api.get(&format!("/v1/runs/{id}"));
    (text, run)
}

#[test]
fn a_failure_shrinks_to_the_faults_that_are_enough_in_a_run_and_in_its_replay() {
    for (breaking, needed, result) in [
        (
            &[2][..],
            json!(["503 on the 2nd call of search"]),
            "fine in chaos: 1 of 7 faults is enough: 503 on the 2nd call of search",
        ),
        (
            &[2, 6],
            json!([
                "503 on the 2nd call of search",
                "404 on the 2nd call of lookup"
            ]),
            "fine in chaos: 2 of 7 faults are needed together: 503 on the 2nd call of search; 404 on the 2nd call of lookup",
        ),
    ] {
        let (stage, _tool) = stage();
        let agent = agent(&stage, &CALLS, |statuses| {
            breaking.iter().all(|call| statuses[*call] >= 400)
        });
        let (text, run) = shrunk(&stage, &suite(&agent));
        let lines = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(lines.contains(result), "{text}");
        let shrunk = &run["shrunk"][0];
        assert_eq!(
            (&shrunk["of"], &shrunk["needed"]),
            (&json!(7), &needed),
            "{shrunk:#}"
        );
        let id = run["id"].as_str().unwrap();
        for format in ["html", "markdown", "junit"] {
            let path = format!("/v1/runs/{id}/report?format={format}");
            let report = stage.daemon.api.call("GET", &path, None).text();
            assert!(report.contains("2nd call of search"), "{format}: {report}");
        }

        let said = |arguments: &[&str]| command(&stage, arguments);
        said(&["replay", "export", "--run", id, "--output", "incidents"]);
        let session = format!("incidents/{id}-001.yaml");
        let text = said(&["replay", "shrink", &session, "--json"]);
        let run: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}"));
        let shrunk = &run["shrunk"][0];
        assert_eq!(shrunk["of"], 7, "{run:#}");
        let found = shrunk["needed"].as_array().unwrap().iter();
        let found = found.map(|one| one.as_str().unwrap().replace(".test/json", ""));
        assert_eq!(json!(found.collect::<Vec<_>>()), needed, "{run:#}");
    }
}

#[test]
fn a_failure_that_the_faults_do_not_cause_is_not_blamed_on_them() {
    for (times, invocations, result) in [
        // It breaks at the first fault, and not again.
        (1, 1, "does not reproduce with the same 7 faults"),
        // It breaks at the first fault, and from then on.
        (u64::MAX, 2, "fails without any of the 7 faults"),
    ] {
        let (stage, _tool) = stage();
        let (is_broken, broke) = (AtomicBool::new(false), AtomicU64::new(0));
        let agent = agent(&stage, &CALLS, move |statuses| {
            is_broken.fetch_or(statuses[2] >= 400, Ordering::SeqCst);
            is_broken.load(Ordering::SeqCst) && broke.fetch_add(1, Ordering::SeqCst) < times
        });
        let (text, run) = shrunk(&stage, &suite(&agent));
        assert!(text.contains(result), "{text}");
        let [shrunk] = &run["shrunk"].as_array().unwrap()[..] else {
            panic!("{run:#}");
        };
        assert_eq!(shrunk["needed"], json!([]), "{run:#}");
        assert_eq!(shrunk["invocations"], invocations, "{run:#}");
    }
}

#[test]
fn shrinking_ends_after_64_invocations_of_a_failure_and_5_failures() {
    let (stage, _tool) = stage();
    let many = agent(&stage, &["search"; 40], |statuses| {
        statuses.iter().all(|status| *status >= 400)
    });
    let (text, run) = shrunk(&stage, &suite(&many));
    let [one] = &run["shrunk"].as_array().unwrap()[..] else {
        panic!("{run:#}");
    };
    let found = (&one["of"], &one["invocations"], &one["is_minimal"]);
    assert_eq!(found, (&json!(40), &json!(64), &json!(false)), "{run:#}");
    let lines = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let result = "40 of 40 faults are enough, perhaps fewer (64 invocations were not enough)";
    assert!(lines.contains(result), "{text}");

    let one = agent(&stage, &CALLS, |statuses| statuses[2] >= 400);
    let mut suite = suite(&one);
    let invariants = (1..=7).map(|number| {
        json!({ "id": format!("fine {number}"), "type": "contains", "value": "it is fine" })
    });
    suite["invariants"] = invariants.collect();
    let (_, run) = shrunk(&stage, &suite);
    let shrunk = run["shrunk"].as_array().unwrap().iter();
    let names: Vec<_> = shrunk
        .map(|one| one["invariant"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        ["fine 1", "fine 2", "fine 3", "fine 4", "fine 5"],
        "{run:#}"
    );
    let warnings = run["warnings"].to_string();
    let left_out = "the first 5 failures were shrunk, and 2 more were not";
    assert!(warnings.contains(left_out), "{warnings}");
}
