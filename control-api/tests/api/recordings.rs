//! Recordings, tapes and replay sessions, as clients see them.

use axum::body::Body;
use serde_json::{Value, json};

use crate::bench::Api;

const JSON: (&str, &str) = ("content-type", "application/json");
const TAPE: &str = "/v1/scopes/job/tape";

async fn begin(api: &Api, body: Value) -> String {
    let begun = api.ask("POST", "/v1/recordings", &[JSON], body.to_string());
    let begun = begun.await;
    assert_eq!(begun.status, 201, "{begun:?}");
    let id = begun.json()["id"].as_str().expect("an id").to_owned();
    assert_eq!(begun.header("location"), format!("/v1/recordings/{id}"));
    id
}

async fn stop(api: &Api, id: &str) -> crate::bench::Answer {
    let path = format!("/v1/recordings/{id}/stop");
    api.ask("POST", &path, &[], Body::empty()).await
}

#[tokio::test]
async fn a_recording_begins_is_listed_and_ends_once() {
    let api = Api::new();
    assert_eq!(api.get("/v1/recordings").await.json()["items"], json!([]));
    let first = begin(&api, json!({})).await;
    let second = begin(&api, json!({ "scope": "job", "name": "an incident" })).await;
    let listed = api.get("/v1/recordings?limit=1").await.json();
    assert_eq!(listed["items"][0]["id"], json!(second), "newest first");
    assert_eq!(listed["items"][0]["name"], "an incident");
    assert_eq!(listed["items"][0]["scope"], "job");
    assert_eq!(listed["items"][0]["state"], "recording");
    let cursor = listed["next_cursor"].as_str().expect("a cursor");
    let next = api
        .get(&format!("/v1/recordings?limit=1&cursor={cursor}"))
        .await;
    assert_eq!(next.json()["items"][0]["id"], json!(first));
    assert_eq!(next.json()["next_cursor"], Value::Null);
    let ended = stop(&api, &first).await.json();
    assert_eq!(
        (&ended["state"], &ended["exchanges"]),
        (&json!("stopped"), &json!(0))
    );
    assert!(ended["ended_at"].is_string(), "{ended}");
    let again = stop(&api, &first).await;
    assert_eq!((again.status, again.json()), (200, ended));
    stop(&api, "nothing").await.problem(404, "not-found");
    api.get("/v1/recordings/nothing")
        .await
        .problem(404, "not-found");
}

#[tokio::test]
async fn a_recording_is_given_out_as_a_session_or_an_archive() {
    let api = Api::new();
    let id = begin(&api, json!({ "name": "x" })).await;
    let path = format!("/v1/recordings/{id}");
    let yaml = api.get(&path).await;
    assert_eq!(yaml.header("content-type"), "application/yaml");
    assert_eq!(yaml.header("squall-recording-state"), "recording");
    let text = String::from_utf8_lossy(&yaml.body);
    assert!(
        text.starts_with(&format!("# recording {id}: it still runs\n")),
        "{text}"
    );
    assert!(text.contains("name: \"x\""), "{text}");
    let har = api.get(&format!("{path}?format=har")).await;
    assert_eq!(har.header("content-type"), "application/json");
    assert_eq!(har.json()["log"]["version"], "1.2");
    api.get(&format!("{path}?format=pcap"))
        .await
        .problem(400, "malformed");
}

#[tokio::test]
async fn what_cannot_be_recorded_is_refused() {
    let api = Api::new();
    for (body, expected) in [
        (json!([]), &[""][..]),
        (json!({ "scope": "a b", "name": "" }), &["/scope", "/name"]),
        (json!({ "scop": "a" }), &["/scop"]),
    ] {
        let answer = api.ask("POST", "/v1/recordings", &[JSON], body.to_string());
        assert_eq!(answer.await.pointers(422, "invalid"), expected, "{body}");
    }
}

#[tokio::test]
async fn a_tape_is_put_shown_and_taken_away() {
    let api = Api::new();
    api.get(TAPE).await.problem(404, "not-found");
    let session = json!({ "id": "s", "on_miss": "passthrough", "exchanges": [
        { "match": { "url": "http://h/*" }, "body": "x" } ] });
    let put = api
        .put(TAPE, json!({ "session": session, "speed": 1.5 }))
        .await;
    assert_eq!(put.status, 200, "{put:?}");
    assert_eq!(
        api.get(TAPE).await.json(),
        json!({
            "scope": "job", "source": "session s", "on_miss": "passthrough",
            "on_exhausted": "error", "speed": 1.5, "served": 0, "missed": 0, "exhausted": 0,
            "dialled": 0, "answers": 1, "left": 1,
        })
    );
    let put = api
        .put(TAPE, json!({ "session": session, "on_miss": "error" }))
        .await;
    assert_eq!(put.json()["on_miss"], "error", "who plays it decides");
    for _ in 0..2 {
        assert_eq!(api.delete(TAPE).await.status, 204);
    }
    api.get(TAPE).await.problem(404, "not-found");
}

#[tokio::test]
async fn a_tape_that_makes_no_sense_is_refused() {
    let api = Api::new();
    for (body, expected) in [
        (json!({}), &[""][..]),
        (json!({ "recording": "a", "replay": "b" }), &[""]),
        (json!({ "recording": 1 }), &["/recording"]),
        (json!({ "recording": "nothing" }), &["/recording"]),
        (json!({ "replay": "nothing" }), &["/replay"]),
        (
            json!({ "session": { "id": "s", "exchanges": [{ "status": 1 }] }, "on_miss": "ask", "speed": -1 }),
            &[
                "/session/exchanges/0/match",
                "/session/exchanges/0/status",
                "/on_miss",
                "/speed",
            ],
        ),
        (json!({ "session": { "id": "s" }, "sped": 1 }), &["/sped"]),
    ] {
        let mut told = api.put(TAPE, body.clone()).await.pointers(422, "invalid");
        let mut expected = expected.to_vec();
        told.sort();
        expected.sort_unstable();
        assert_eq!(told, expected, "{body}");
    }
}

#[tokio::test]
async fn a_replay_session_is_a_document_with_versions() {
    let api = Api::new();
    let path = "/v1/replays/inc-1";
    let text = "id: inc-1\ninput: What?\ntool_responses:\n  - {tool: search, response: {n: 1}}\n";
    let put = api.put_yaml(path, text).await;
    assert_eq!(
        (put.status, &put.json()["version"]),
        (201, &json!(1)),
        "{put:?}"
    );
    let more = text.replace("What?", "Why?");
    let put = api.put_yaml(path, &more).await;
    assert_eq!(
        (put.status, &put.json()["version"]),
        (200, &json!(2)),
        "{put:?}"
    );
    assert_eq!(api.get(path).await.json()["input"], "Why?");
    let first = api.get(&format!("{path}?version=1")).await;
    assert_eq!(String::from_utf8_lossy(&first.body), text);
    assert_eq!(
        api.get("/v1/replays").await.json()["items"][0]["id"],
        "inc-1"
    );
    let tape = api.put(TAPE, json!({ "replay": "inc-1" })).await;
    assert_eq!(
        (&tape.json()["source"], &tape.json()["answers"]),
        (&json!("replay inc-1"), &json!(1))
    );
    assert_eq!(api.delete(path).await.status, 204);
    api.get(path).await.problem(404, "not-found");

    let wrong = "id: inc-1\ntool_response: []\non_miss: maybe\n";
    let mut told = api.put_yaml(path, wrong).await.pointers(422, "invalid");
    told.sort();
    assert_eq!(told, ["/on_miss", "/tool_response"]);
}
