//! Calls that an agent makes when it has answered: they are their own asking's, and no other's.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::mpsc::{Sender, channel};

use serde_json::{Value, json};
use squall_tests::upstream::{Connection, standard};
use squall_tests::{Daemon, Upstream};

use super::{Agent, TOOL, judged, over, run, stage};

/// A tool that may be called once in an asking, and fails at the first call.
fn suite(agent: &Value) -> Value {
    json!({
        "name": "late",
        "agent": agent,
        "golden_prompts": ["Paris", "Rome", "Oslo"],
        "tools": { "weather": { "match_url": format!("http://{TOOL}/json*") } },
        "contract": {
            "name": "once",
            "invariants": [
                { "id": "once", "type": "max_calls", "tool": "weather", "max": 1, "severity": "critical" },
                { "id": "honest", "type": "contains", "value": "unavailable", "when": "tool_faults_active" },
            ],
            "chaos_matrix": [
                { "name": "calm" },
                { "name": "first-call-fails", "tool_faults": [{ "tool": "weather", "mode": "error", "calls": [1] }] },
            ],
        },
    })
}

fn late(daemon: &Daemon) -> Vec<Value> {
    let mut all = daemon.api.exchanges();
    all.retain(|one| one["url"].as_str().is_some_and(|url| url.contains("LATE")));
    all
}

#[test]
fn a_call_for_an_asking_that_is_over_is_still_that_askings_at_any_concurrency() {
    let mut all = Vec::new();
    for carries in ["baggage", "traceparent", "baggage,traceparent"] {
        for concurrency in [1, 8] {
            let told = format!("{carries} at {concurrency}");
            let (stage, _tool) = stage();
            let agent = Agent::serve("late_server.py", Some(stage.daemon.proxy), TOOL, carries);
            let suite = suite(&json!({ "endpoint": agent.endpoint }));
            let options = json!({ "seed": 7, "concurrency": concurrency });
            let run = run(&stage.daemon, "contract", &suite, &options);
            assert_eq!(run["state"], "passed", "{told}: {run:#}");
            let warning = run["warnings"][0].as_str().unwrap_or_default();
            assert!(
                warning.starts_with(
                    "3 calls came when the invocation was over, GET http://tool.test/json?q=LATE-OF-"
                ),
                "{told}: {run:#}"
            );
            let late = late(&stage.daemon);
            assert_eq!(late.len(), 3, "{told}: {late:#?}");
            let scopes: BTreeSet<_> = late.iter().map(|one| one["scope"].as_str()).collect();
            assert_eq!(
                scopes.len(),
                3,
                "{told}: one of each prompt's first asking: {scopes:?}"
            );
            for one in &late {
                assert_eq!(
                    (&one["run"], &one["rules"]),
                    (&run["id"], &json!([])),
                    "{told}: {one:#}"
                );
            }
            all.push(judged(&run));
        }
    }
    for other in &all[1..] {
        assert_eq!(other, &all[0]);
    }
}

/// Answers when the test lets it, by path.
struct Held {
    answer: Mutex<Sender<()>>,
    late: Mutex<Sender<()>>,
    own: Mutex<Sender<()>>,
}

fn tool() -> (Upstream, Held) {
    let [(answer, held), (late, held_longer), (own, asked)] = [(); 3].map(|()| channel());
    let waits = [
        ("/hold/until-the-answer", Mutex::new(held)),
        ("/hold/until-the-late-call", Mutex::new(held_longer)),
        ("/json/until-both-are-held", Mutex::new(asked)),
    ];
    let serve = move |mut connection: Connection| {
        while let Some(request) = connection.request() {
            let path = request.target.split('?').next().unwrap_or_default();
            if let Some((_, wait)) = waits.iter().find(|(held, _)| *held == path) {
                wait.lock().unwrap().recv().unwrap();
            }
            let answer = standard::whole("200 OK", "application/json", standard::JSON.as_bytes());
            if !connection.send(answer) {
                return;
            }
        }
    };
    let held = Held {
        answer: Mutex::new(answer),
        late: Mutex::new(late),
        own: Mutex::new(own),
    };
    (Upstream::start(None, serve), held)
}

#[test]
fn a_call_of_a_warm_worker_between_two_askings_is_told_of_and_judged_as_neithers() {
    let (tool, held) = tool();
    let daemon = Daemon::start(&json!({
        "proxy": { "connect_to": { "tool.test:80": tool.address.to_string() } },
        "safety": { "commands": true },
    }));
    let mut suite = suite(&json!({ "type": "python", "endpoint": "clients.late_python:ask" }));
    suite["golden_prompts"] = json!(["Paris", "Rome"]);
    suite["contract"]["chaos_matrix"] = json!([{ "name": "calm" }]);
    let wish =
        json!({ "kind": "contract", "suite": suite, "options": { "concurrency": 1, "repeat": 2 } });
    let answer = daemon.api.call("POST", "/v1/runs", Some(&wish));
    assert_eq!(answer.status, 201, "{}", answer.text());
    // Two clean askings, and three calls of the third.
    tool.wait_for_requests(2 + 3);
    held.own.lock().unwrap().send(()).unwrap();
    daemon.api.wait("the asking's end", || {
        let scopes = daemon.api.get("/v1/scopes").to_string();
        (!scopes.contains("calm/prompt-1")).then_some(())
    });
    held.answer.lock().unwrap().send(()).unwrap();
    tool.wait_for_requests(2 + 4);
    held.late.lock().unwrap().send(()).unwrap();
    let run = over(&daemon, answer.header("location").unwrap());
    assert_eq!(run["state"], "passed", "{run:#}");
    let told = "1 call came when the invocation was over, GET http://tool.test/json?q=LATE of `Paris` the first";
    let warning = run["warnings"][0].as_str().unwrap_or_default();
    assert!(warning.starts_with(told), "{run:#}");
    let scope_of = |query: &str| {
        let all = daemon.api.exchanges();
        let last = all
            .iter()
            .rfind(|one| one["url"].as_str().unwrap().ends_with(query));
        last.unwrap()["scope"].as_str().unwrap().to_owned()
    };
    assert_eq!(scope_of("LATE"), scope_of("until-both-are-held?q=Paris"));
    assert_ne!(scope_of("LATE"), scope_of("q=Rome"));
}
