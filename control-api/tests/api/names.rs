//! Names, ids and cursors that nothing can have: the same answer on both databases.

use serde_json::{Value, json};
use squall_control_api::JournalOptions;
use squall_tests::postgres::Postgres;

use crate::bench::Api;
use crate::store::Ground;

/// Over a store that keeps everything; no stream is left open.
async fn api(ground: &Ground<'_>) -> Api {
    let api = Api::with_journal(ground.open().await, 1, JournalOptions::default()).await;
    api.state.stopping.cancel();
    api
}

/// Every operation with a NUL in each of its parameters in turn: method and path.
fn with_nul(document: &Value) -> Vec<(String, String)> {
    let mut asked = Vec::new();
    for (path, methods) in document["paths"].as_object().expect("paths") {
        let named = path.replace(['{', '}'], "");
        for (method, operation) in methods.as_object().expect("methods") {
            let method = method.to_uppercase();
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            for parameter in parameters {
                let name = parameter["name"].as_str().expect("a name");
                match parameter["in"].as_str() {
                    Some("path") => {
                        let part = format!("{{{name}}}");
                        for nul in ["%00", "a%00b"] {
                            let path = path.replace(&part, nul);
                            asked.push((method.clone(), format!("{path}?")));
                            asked.push((method.clone(), format!("{path}?version=1")));
                        }
                    }
                    Some("query") => {
                        asked.push((method.clone(), format!("{named}?{name}=%00")));
                        asked.push((method.clone(), format!("{named}?{name}=a%00b")));
                    }
                    _ => {}
                }
            }
        }
    }
    asked
}

/// Documents that name what nothing can be called.
#[rustfmt::skip]
fn documents_with_nul() -> Vec<(&'static str, &'static str, Value)> {
    let suite = json!({
        "agent": { "endpoint": "http://127.0.0.1:9/" },
        "golden_prompts": ["Weather?"],
        "invariants": [{ "type": "completes" }],
    });
    let mut contracted = suite.clone();
    contracted["contract"] = json!("\0");
    let run = |options: Value| json!({ "kind": "chaos", "suite": suite, "options": options });
    let replay = json!({ "id": "r", "input": "Weather?", "contract": "\0" });
    let token = json!({ "name": "a\0", "role": "viewer" });
    vec![
        ("POST", "/v1/runs", json!({ "kind": "verify", "suite_name": "\0" })),
        ("POST", "/v1/runs", json!({ "kind": "verify", "suite": contracted })),
        ("POST", "/v1/runs", run(json!({ "contract": "a\0" }))),
        ("POST", "/v1/runs", run(json!({ "baseline": "\0" }))),
        ("POST", "/v1/runs", run(json!({ "profile": "\0" }))),
        ("PUT", "/v1/scopes/s/tape", json!({ "recording": "\0" })),
        ("PUT", "/v1/scopes/s/tape", json!({ "replay": "a\0" })),
        ("PUT", "/v1/replays/r", replay),
        ("PUT", "/v1/profiles/p", json!({ "extends": "\0" })),
        ("PUT", "/v1/chaos", json!({ "profile": "\0" })),
        ("POST", "/v1/recordings", json!({ "name": "a\0" })),
        ("POST", "/v1/recordings", json!({ "scope": "a\0" })),
        ("POST", "/v1/tokens", token),
    ]
}

#[tokio::test]
async fn nothing_has_a_nul_in_its_name_whatever_keeps_it() {
    let server = Postgres::start();
    let (sqlite, postgres) = (Ground::sqlite(), Ground::postgres(&server, "squall"));
    let (first, second) = (api(&sqlite).await, api(&postgres).await);
    let document = first.get("/openapi.json").await.json();
    let asked = with_nul(&document);
    assert!(asked.len() > 150, "{}", asked.len());
    let json = [("content-type", "application/json")];
    for (method, path) in asked {
        let mut told = Vec::new();
        for api in [&first, &second] {
            let answer = api.ask(&method, &path, &json, "{}").await;
            assert!(answer.status < 500, "{method} {path}: {answer:?}");
            let is_named = path
                .split('?')
                .next()
                .is_some_and(|path| path.contains("%00"));
            if is_named {
                assert!(
                    [400, 404, 422].contains(&answer.status),
                    "{method} {path}: {answer:?}"
                );
            }
            told.push(answer.status);
        }
        assert_eq!(told[0], told[1], "{method} {path}");
    }
    for (method, path, document) in documents_with_nul() {
        for api in [&first, &second] {
            let answer = api.ask(method, path, &json, document.to_string()).await;
            assert_eq!(answer.status, 422, "{method} {path} {document}: {answer:?}");
        }
    }
    assert_eq!(second.get("/v1/suites/%00").await.status, 404);
    assert_eq!(second.delete("/v1/replays/%00").await.status, 404);
    assert_eq!(second.get("/v1/profiles/a%00?version=1").await.status, 404);
}

#[tokio::test]
async fn no_list_takes_a_cursor_that_no_page_gave_out() {
    let api = Api::new();
    let document = api.get("/openapi.json").await.json();
    let mut lists = 0;
    for (path, methods) in document["paths"].as_object().expect("paths") {
        let parameters = methods["get"]["parameters"]
            .as_array()
            .into_iter()
            .flatten();
        if !parameters.into_iter().any(|one| one["name"] == "cursor") {
            continue;
        }
        lists += 1;
        let path = path.replace(['{', '}'], "");
        for cursor in [
            "",
            "zz",
            "%00",
            "a%00",
            "after.",
            "after.%00",
            "after.a%20b",
            "-1",
            "%FF",
        ] {
            let refused = api.get(&format!("{path}?cursor={cursor}")).await;
            assert_eq!(refused.status, 400, "{path}, `{cursor}`: {refused:?}");
        }
    }
    assert_eq!(lists, 12);
}

#[tokio::test]
async fn why_the_store_refused_is_for_the_log() {
    let server = Postgres::start();
    for ground in [Ground::sqlite(), Ground::postgres(&server, "squall")] {
        let api = api(&ground).await;
        ground.sql("DROP TABLE documents").await;
        let problem = api.get("/v1/suites/a").await.problem(500, "internal");
        let detail = problem["detail"].as_str().expect("why");
        assert!(detail.contains("with the id "), "{detail}");
        let place = api.state.store.place().to_string();
        for secret in [place.as_str(), "documents", "127.0.0.1", "squall.db"] {
            assert!(!problem.to_string().contains(secret), "{secret}: {problem}");
        }
    }
}
