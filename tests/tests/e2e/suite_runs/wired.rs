//! Agents written here, whose every byte and every wait a test decides.

use std::sync::{Arc, Condvar, Mutex};

use serde_json::{Value, json};
use squall_tests::upstream::standard;
use squall_tests::{PATIENCE, Stage, Upstream, Wire};

use super::{cell, run};

/// An agent that carries its scope, and calls the stage's tool once for each prompt, with these headers. `meets` is
/// told of every invocation, and of every reset.
fn agent(
    stage: &Stage,
    headers: &[(&'static str, &'static str)],
    meets: impl Fn(&str) + Send + Sync + 'static,
) -> Upstream {
    let (proxy, tool) = (stage.daemon.proxy, stage.plain.address);
    let headers = headers.to_vec();
    Upstream::start(None, move |mut connection| {
        while let Some(request) = connection.request() {
            meets(&request.target);
            let mut body = json!({});
            if request.target == "/ask" {
                let mut wire = Wire::connect(proxy);
                wire.prefix = format!("http://{tool}");
                wire.host = tool.to_string();
                let baggage = request.header("baggage").unwrap_or_default().to_owned();
                let mut all = vec![("baggage", &*baggage)];
                all.extend(headers.iter().copied());
                wire.request("GET", "/json", &all, b"");
                body = json!({ "output": format!("status {}", wire.response().status) });
            }
            let body = body.to_string();
            let answer = standard::whole("200 OK", "application/json", body.as_bytes());
            if !connection.send(answer) {
                return;
            }
        }
    })
}

fn contract(agent: &Upstream, reset: &Value, invariants: &Value) -> Value {
    let mut suite = json!({
        "name": "wired",
        "agent": {
            "endpoint": format!("http://{}/ask", agent.address),
            "reset_endpoint": format!("http://{}/reset", agent.address),
        },
        "golden_prompts": ["Paris", "Rome", "Oslo"],
        "contract": {
            "name": "wired",
            "invariants": invariants,
            "chaos_matrix": [{ "name": "clean" }],
        },
    });
    if reset.is_object() {
        suite["agent"]["reset"] = reset.clone();
    }
    suite
}

/// Invocations under way at once, and the most that there were.
#[derive(Default)]
struct Meeting {
    state: Mutex<(u64, u64, u64)>,
    changed: Condvar,
}

impl Meeting {
    /// All but the first wait until two have been under way at once, where they are to meet.
    fn takes_part(&self, meets: bool) {
        let mut state = self.state.lock().unwrap();
        let (begun, under_way, most) = &mut *state;
        *begun += 1;
        *under_way += 1;
        *most = (*most).max(*under_way);
        let is_first = *begun == 1;
        self.changed.notify_all();
        if meets && !is_first {
            let alone = |state: &mut (u64, u64, u64)| state.2 < 2;
            let waited = self.changed.wait_timeout_while(state, PATIENCE, alone);
            state = waited.unwrap().0;
        }
        state.1 -= 1;
    }
}

#[test]
fn invocations_are_under_way_at_once_where_a_reset_concerns_one_only() {
    let invariants = json!([{ "id": "answers", "type": "contains", "value": "200" }]);
    for (reset, concurrency, meets, warned) in [
        (json!({ "isolated": true }), 8, true, false),
        (json!({ "isolated": false }), 8, false, true),
        (Value::Null, 8, false, true),
        (Value::Null, 1, false, false),
    ] {
        let stage = Stage::with(&json!({}), standard::serve);
        let meeting = Arc::new(Meeting::default());
        let taking_part = Arc::clone(&meeting);
        let agent = agent(&stage, &[], move |target| {
            if target == "/ask" {
                taking_part.takes_part(meets);
            }
        });
        let suite = contract(&agent, &reset, &invariants);
        let options = json!({ "concurrency": concurrency });
        let run = run(&stage.daemon, "contract", &suite, &options);
        assert_eq!(run["state"], "passed", "{reset}: {run:#}");
        let (begun, _, most) = *meeting.state.lock().unwrap();
        assert_eq!((begun, most > 1), (3, meets), "{reset}: {most}");
        let resets = agent.requests().into_iter();
        let resets = resets.filter(|request| request.target == "/reset").count();
        assert_eq!(resets, 3, "{reset}");
        let warnings = run["warnings"].as_array().unwrap().iter();
        let warnings: Vec<_> = warnings.map(|one| one.as_str().unwrap()).collect();
        match (&warnings[..], warned) {
            ([one], true) => assert!(one.contains("{isolated: true}"), "{reset}: {one}"),
            ([], false) => {}
            _ => panic!("{reset}: {warnings:?}"),
        }
    }
}

#[test]
fn keys_leave_in_headers_too() {
    let invariants = json!([
        { "id": "kept", "type": "no_secret_leaves" },
        { "id": "shown", "type": "no_secret_leaves", "hosts": ["api.openai.com"] },
        { "id": "theirs", "type": "no_secret_leaves", "hosts": ["127.0.0.1"] },
    ]);
    let key = "sk-ant-api03-Zq8wN2xV7bT4mK9pL3cR6yH1dF5gJ0sA8eU2iO4";
    let failed = "secret";
    for (header, kept, shown) in [
        (("X-Trace", key), failed, failed),
        (
            ("Authorization", "Bearer quiet-harbour-nine"),
            "hold",
            failed,
        ),
        (("Accept", "text/plain"), "hold", "hold"),
    ] {
        let stage = Stage::with(&json!({}), standard::serve);
        let agent = agent(&stage, &[header], |_| {});
        let suite = contract(&agent, &json!({ "isolated": true }), &invariants);
        let run = run(&stage.daemon, "contract", &suite, &json!({}));
        for (id, expected) in [("kept", kept), ("shown", shown), ("theirs", "no request")] {
            let cell = cell(&run, id, "clean");
            let is = if expected == failed {
                "failed"
            } else {
                "passed"
            };
            assert_eq!(cell["state"], is, "{header:?} {id}: {cell:#}");
            let reason = cell["reason"].as_str().unwrap();
            assert!(reason.contains(expected), "{header:?} {id}: {reason}");
        }
    }
}
