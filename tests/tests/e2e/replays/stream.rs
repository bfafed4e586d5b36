//! The streams of a model in a replay.

use std::fs;

use serde_json::json;
use squall_tests::Upstream;
use squall_tests::program::{python, script};

use super::{record, replay, run_of, suite};
use crate::desk::Desk;

#[test]
fn streams_of_a_model_are_replayed_byte_for_byte_without_their_upstream() {
    let desk = Desk::new();
    let model = Upstream::plain();
    let received = desk.directory.path().join("received");
    let agent = json!({ "type": "command", "command": [
        python(), script("streaming_agent.py"), format!("http://{}/v1", model.address),
        format!("http://{}/json", desk.tool.address), received,
    ] });
    let session = record(&desk, &agent, "incident");
    let live = fs::read_to_string(&received).unwrap();
    assert_eq!(live.lines().count(), 2, "{live}");
    fs::remove_file(&received).unwrap();
    let dialled = (model.opened(), desk.tool.opened());
    let result = replay(
        &desk,
        &suite(&agent, "Squalls pass and ships remain."),
        &[&session, "--json"],
    );
    result.ended(0);
    let run = run_of(&result);
    let replayed = &run["replays"][0];
    for (count, expected) in [("served", 3), ("missed", 0), ("dialled", 0)] {
        assert_eq!(replayed[count], expected, "{count}: {run:#}");
    }
    let calls = replayed["calls"].as_array().unwrap().iter();
    let states: Vec<_> = calls.map(|call| call["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["same"; 3], "{run:#}");
    assert_eq!(fs::read_to_string(&received).unwrap(), live);
    assert_eq!((model.opened(), desk.tool.opened()), dialled);
}
