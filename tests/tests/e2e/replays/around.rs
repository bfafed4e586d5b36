//! What surrounds a replayed session: the reset, and calls that go upstream because the session says so.

use std::fs;

use serde_json::{Value, json};
use squall_tests::Upstream;

use super::{replay, run_of, suite};
use crate::desk::Desk;

#[test]
fn the_agent_is_reset_before_each_replayed_session() {
    let desk = Desk::new();
    let state = desk.directory.path().join("state");
    let tool = format!("http://{}/json", desk.tool.address);
    // It counts its invocations in a file.
    let agent = desk.program(&format!(
        "import os, urllib.request\nurllib.request.urlopen('{tool}').read()\n\
         with open({state:?}, 'a') as file: file.write('x')\nprint('call', os.path.getsize({state:?}))"
    ));
    for id in ["one", "two"] {
        let session = format!(
            "id: {id}\ninput: Weather?\nexchanges: [{{match: {{url: '{tool}'}}, body: x}}]\n"
        );
        fs::write(desk.directory.path().join(format!("{id}.yaml")), session).unwrap();
    }
    let mut suite = suite(&agent, "call 1");
    for (reset, states) in [
        (json!(["rm", "-f", state]), ["passed", "passed"]),
        (Value::Null, ["failed", "failed"]),
    ] {
        fs::write(&state, "x").unwrap();
        if reset.is_array() {
            suite["agent"]["reset_command"] = reset;
        } else {
            suite["agent"]["reset_command"].take();
        }
        let result = replay(&desk, &suite, &["one.yaml", "two.yaml", "--json"]);
        let run = run_of(&result);
        let replays = run["replays"].as_array().unwrap().iter();
        let found: Vec<_> = replays.map(|one| one["state"].as_str().unwrap()).collect();
        assert_eq!(found, states, "{run:#}");
    }
    assert_eq!(desk.tool.opened(), 0);
}

/// An agent that calls a model, and says what the model said; and a session with other words of the model.
fn with_a_model(desk: &Desk, model: &Upstream, more: &str) -> Value {
    let tool = format!("http://{}/json", desk.tool.address);
    let url = format!("http://{}/v1/chat/completions", model.address);
    let agent = desk.program(&format!(
        "import json, urllib.request\nurllib.request.urlopen('{tool}').read()\n\
         body = json.dumps({{'model': 'test-model', 'messages': [{{'role': 'user', 'content': 'Weather?'}}]}})\n\
         request = urllib.request.Request('{url}', body.encode(), {{'content-type': 'application/json'}})\n\
         print(json.load(urllib.request.urlopen(request))['choices'][0]['message']['content'])"
    ));
    let session = format!(
        "id: one\ninput: Weather?\nexchanges: [{{match: {{url: '{tool}'}}, body: x}}]\nllm_responses:\n\
         - dialect: openai-chat\n  body: {{choices: [{{message: {{role: assistant, content: as recorded}}, \
         finish_reason: stop}}]}}\n{more}"
    );
    fs::write(desk.directory.path().join("one.yaml"), session).unwrap();
    agent
}

#[test]
fn live_models_get_their_calls_while_tools_are_answered_from_the_session() {
    let desk = Desk::new();
    let model = Upstream::plain();
    for (field, option, said, served, dialled) in [
        ("", &[][..], "as recorded", 2, 0),
        ("models: recorded\n", &[], "as recorded", 2, 0),
        ("models: live\n", &[], "Squalls pass", 1, 1),
        ("", &["--models", "live"], "Squalls pass", 1, 1),
        (
            "models: live\n",
            &["--models", "recorded"],
            "as recorded",
            2,
            0,
        ),
    ] {
        let what = format!("{field} {option:?}");
        let before = model.requests().len();
        let agent = with_a_model(&desk, &model, field);
        let more = [&["one.yaml", "--json"][..], option].concat();
        let result = replay(&desk, &suite(&agent, said), &more);
        result.ended(0);
        let run = run_of(&result);
        let replayed = &run["replays"][0];
        for (count, expected) in [("served", served), ("missed", 0), ("dialled", dialled)] {
            assert_eq!(replayed[count], expected, "{what}, {count}: {run:#}");
        }
        assert_eq!(model.requests().len() - before, dialled, "{what}");
        assert_eq!(desk.tool.opened(), 0, "{what}");
    }
}

#[test]
fn a_call_that_is_not_recorded_goes_upstream_if_the_session_says_so() {
    let desk = Desk::new();
    let tool = format!("http://{}", desk.tool.address);
    let agent = desk.program(&format!(
        "import urllib.request\nfor path in ['json', 'bytes/5']:\n try: print(len(urllib.request.urlopen('{tool}/' + \
         path).read()))\n except OSError: print('unavailable')"
    ));
    for (on_miss, said, dialled) in [("passthrough", "5", 1), ("error", "unavailable", 0)] {
        let session = format!(
            "id: one\ninput: Weather?\nexchanges: [{{match: {{url: '{tool}/json'}}, body: recorded}}]\n\
             on_miss: {on_miss}\n"
        );
        fs::write(desk.directory.path().join("one.yaml"), session).unwrap();
        let before = desk.tool.requests().len();
        // The recorded body has eight bytes.
        let result = replay(
            &desk,
            &suite(&agent, &format!("8\n{said}")),
            &["one.yaml", "--json"],
        );
        result.ended(0);
        let run = run_of(&result);
        let replayed = &run["replays"][0];
        for (count, expected) in [("served", 1), ("missed", 1), ("dialled", dialled)] {
            assert_eq!(replayed[count], expected, "{on_miss}, {count}: {run:#}");
        }
        let requests = desk.tool.requests().split_off(before);
        let targets: Vec<_> = requests.iter().map(|one| &*one.target).collect();
        assert_eq!(targets, &["/bytes/5"][..dialled], "{on_miss}");
    }
}

#[test]
fn tools_by_name_answer_in_a_run_and_only_what_applies_to_an_incident_judges_it() {
    let desk = Desk::new();
    let agent = desk.agent("/json", &[]);
    let contract = json!({ "invariants": [
        { "id": "always", "type": "contains", "value": "sunny" },
        { "id": "clean", "type": "contains", "value": "cloudy", "when": "no_chaos" },
        { "id": "faulty", "type": "contains", "value": "sunny", "when": "any_chaos_active" },
        { "id": "probed", "type": "contains", "value": "cloudy", "probes": ["Say cloudy."] },
    ] });
    let session = json!({
        "id": "one", "input": "Weather?", "contract": contract,
        "tool_responses": [{ "tool": "weather", "response": { "sky": "clear" } }],
    });
    fs::write(desk.directory.path().join("one.yaml"), session.to_string()).unwrap();
    let mut suite = suite(&agent, "sunny");
    suite["tools"] =
        json!({ "weather": { "match_url": format!("http://{}/*", desk.tool.address) } });
    let result = replay(&desk, &suite, &["one.yaml", "--json"]);
    result.ended(0);
    let run = run_of(&result);
    assert_eq!(run["replays"][0]["served"], 1, "{run:#}");
    assert_eq!(desk.tool.opened(), 0, "{run:#}");
    let cells = run["cells"].as_array().unwrap().iter();
    let states: Vec<_> = cells
        .map(|cell| (&cell["invariant"], &cell["state"]))
        .collect();
    let expected = [
        ("always", "passed"),
        ("clean", "not_applicable"),
        ("faulty", "passed"),
    ];
    let expected = expected.map(|(invariant, state)| (json!(invariant), json!(state)));
    let expected: Vec<_> = expected
        .iter()
        .map(|(invariant, state)| (invariant, state))
        .collect();
    assert_eq!(states, expected, "{run:#}");
    assert_eq!(run["coverage"]["agent_invocations"], 1, "{run:#}");
}
