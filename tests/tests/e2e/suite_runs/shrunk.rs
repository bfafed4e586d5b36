//! Failures that are shrunk to the faults that are enough.

use serde_json::{Value, json};
use squall_tests::daemon::squall;
use squall_tests::upstream::standard;
use squall_tests::{Stage, Upstream, Wire};

/// The tools that the agent calls, in this order.
const CALLS: [&str; 7] = [
    "search", "pay", "search", "lookup", "search", "pay", "lookup",
];

/// An agent that makes all its calls, and breaks if each call of `breaking` fails: by its number in [`CALLS`].
fn agent(stage: &Stage, breaking: &'static [usize]) -> Upstream {
    let proxy = stage.daemon.proxy;
    Upstream::start(None, move |mut connection| {
        while let Some(request) = connection.request() {
            let baggage = request.header("baggage").unwrap_or_default();
            let statuses = CALLS.map(|tool| {
                let mut wire = Wire::connect(proxy);
                wire.prefix = format!("http://{tool}.test");
                wire.host = format!("{tool}.test");
                wire.request("GET", "/json", &[("baggage", baggage)], b"");
                wire.response().status
            });
            let breaks = breaking.iter().all(|call| statuses[*call] >= 400);
            let answer = if breaks { "I give up" } else { "it is fine" };
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
        let agent = agent(&stage, breaking);
        let suite = suite(&agent);
        let home = &stage.daemon.home;
        std::fs::write(home.join("suite.yaml"), suite.to_string()).unwrap();
        let server = format!("--server=http://{}", stage.daemon.api.address);
        let said = |arguments: &[&str]| {
            let mut command = squall(home);
            let output = command
                .current_dir(home)
                .args(arguments)
                .arg(&server)
                .output();
            String::from_utf8(output.unwrap().stdout).unwrap()
        };
        let text = said(&["chaos", "--shrink", "--seed=7"]);
        let lines = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(lines.contains(result), "{text}");
        let (_, id) = text.trim_end().rsplit_once("run=").unwrap();
        let run = stage.daemon.api.get(&format!("/v1/runs/{id}"));
        let shrunk = &run["shrunk"][0];
        assert_eq!(
            (&shrunk["of"], &shrunk["needed"]),
            (&json!(7), &needed),
            "{shrunk:#}"
        );
        for format in ["html", "markdown", "junit"] {
            let path = format!("/v1/runs/{id}/report?format={format}");
            let report = stage.daemon.api.call("GET", &path, None).text();
            assert!(report.contains("2nd call of search"), "{format}: {report}");
        }

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
