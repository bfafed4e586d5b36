//! Lists in pages, while others write.

use serde_json::{Value, json};

use crate::bench::Api;

/// Puts or makes one thing under a name.
async fn make(api: &Api, list: &str, name: &str) {
    let answer = match list {
        "/v1/scopes" => {
            api.put(
                &format!("{list}/{name}/chaos"),
                json!({ "profile": "none" }),
            )
            .await
        }
        "/v1/profiles" => {
            api.put(&format!("{list}/{name}"), json!({ "chaos": {} }))
                .await
        }
        "/v1/contracts" => {
            let contract = json!({ "invariants": [{ "id": "done", "type": "completes" }] });
            api.put(&format!("{list}/{name}"), contract).await
        }
        other => panic!("how is something put into {other}?"),
    };
    assert!([200, 201].contains(&answer.status), "{list}: {answer:?}");
}

#[tokio::test]
async fn what_was_there_is_listed_once_whatever_comes_in_between() {
    for (list, member) in [
        ("/v1/profiles", "name"),
        ("/v1/scopes", "scope"),
        ("/v1/contracts", "name"),
    ] {
        let api = Api::new();
        let there = ["m1", "m2", "m3", "m4", "m5"];
        for name in there {
            make(&api, list, name).await;
        }
        let mut turn = 0;
        let listed = api.pages(list, 2, member, async || {
            // Before the cursor, behind it, and at the end.
            turn += 1;
            if turn < 9 {
                for name in [format!("a{turn}"), format!("m2-{turn}"), format!("z{turn}")] {
                    make(&api, list, &name).await;
                }
            }
        });
        let listed = listed.await;
        for name in there {
            let times = listed.iter().filter(|one| *one == name).count();
            assert_eq!(times, 1, "{name} of {list}: {listed:?}");
        }
        let mut sorted = listed.clone();
        sorted.sort();
        sorted.dedup();
        assert_eq!(listed, sorted, "{list}");
    }
}

/// What is edited has a version, and an edit may name it: so it is described, and so it is.
#[tokio::test]
async fn every_edit_of_a_document_can_name_its_version() {
    let api = Api::new();
    let document = api.get("/openapi.json").await.json();
    let has = |operation: &Value, name: &str| {
        let parameters = operation["parameters"].as_array();
        parameters.is_some_and(|all| all.iter().any(|one| one["name"] == name))
    };
    let mut guarded = Vec::new();
    for (path, methods) in document["paths"].as_object().expect("paths") {
        // What is in force is no document: a PUT is a new activation each time, a tape a new playback.
        if !methods["put"].is_object() || path.ends_with("/chaos") || path.ends_with("/tape") {
            continue;
        }
        for method in ["put", "delete"] {
            let operation = &methods[method];
            assert!(has(operation, "If-Match"), "{method} {path}");
            assert!(operation["responses"]["412"].is_object(), "{method} {path}");
            let named = path.replace(['{', '}'], "");
            let stale = [("if-match", "\"0\""), ("content-type", "application/json")];
            let method = method.to_uppercase();
            if method == "DELETE" {
                api.ask(&method, &named, &stale, "")
                    .await
                    .problem(412, "precondition-failed");
            }
        }
        let shown = &methods["get"]["responses"]["200"]["headers"]["ETag"];
        assert!(shown.is_object(), "GET {path}");
        guarded.push(path.as_str());
    }
    let kinds = [
        "/v1/profiles/{name}",
        "/v1/suites/{name}",
        "/v1/contracts/{name}",
        "/v1/replays/{id}",
    ];
    assert_eq!(guarded, kinds);
}
