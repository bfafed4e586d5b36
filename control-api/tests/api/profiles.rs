use axum::body::Body;
use serde_json::json;

use crate::bench::Api;

const OUTAGE: &str = "\
# Kept as it is.
description: The search API is down.
chaos:
  tool_faults: [{tool: search, mode: error}]
";

#[tokio::test]
async fn a_profile_of_nothing_is_shown_as_a_profile() {
    let api = Api::new();
    for text in ["# nothing yet\n", "{}"] {
        let put = api.put_yaml("/v1/profiles/mine", text).await;
        assert!([200, 201].contains(&put.status), "{put:?}");
        let shown = api.get("/v1/profiles/mine").await;
        assert_eq!(shown.json(), json!({ "name": "mine" }), "{text}");
    }
}

#[tokio::test]
async fn built_in_profiles_are_listed_and_cannot_be_deleted() {
    let api = Api::new();
    let list = api.get("/v1/profiles").await.json();
    let items = list["items"].as_array().expect("items");
    let outage = items
        .iter()
        .find(|item| item["name"] == "api_outage")
        .expect("it is built in");
    assert_eq!(outage["source"], "builtin");
    assert!(
        outage["rules"].as_u64().is_some_and(|rules| rules > 0),
        "{outage}"
    );
    assert!(
        outage["description"]
            .as_str()
            .is_some_and(|text| !text.is_empty()),
        "{outage}"
    );
    api.delete("/v1/profiles/api_outage")
        .await
        .problem(409, "conflict");
    let unknown = api
        .delete("/v1/profiles/api_outag")
        .await
        .problem(404, "not-found");
    assert_eq!(
        unknown["detail"],
        "there is no profile `api_outag`, did you mean `api_outage`?"
    );
}

#[tokio::test]
async fn a_profile_is_put_shown_in_both_forms_and_deleted() {
    let api = Api::new();
    let put = api.put_yaml("/v1/profiles/mine", OUTAGE).await;
    assert_eq!(put.status, 201, "{put:?}");
    assert_eq!(
        put.json(),
        json!({ "name": "mine", "source": "api", "rules": 1 })
    );
    let shown = api.get("/v1/profiles/mine").await;
    assert_eq!(shown.header("squall-profile-source"), "api");
    assert_eq!(shown.header("etag"), put.header("etag"));
    assert_eq!(
        shown.json(),
        json!({
            "name": "mine",
            "description": "The search API is down.",
            "chaos": { "tool_faults": [{ "tool": "search", "mode": "error" }] },
        })
    );
    let yaml = api.get_yaml("/v1/profiles/mine").await;
    assert_eq!(yaml.header("content-type"), "application/yaml");
    assert_eq!(yaml.body, OUTAGE);
    let again = api.put("/v1/profiles/mine", shown.json()).await;
    assert_eq!(
        again.status, 200,
        "what is shown can be put back: {again:?}"
    );
    assert_eq!(api.delete("/v1/profiles/mine").await.status, 204);
    api.get("/v1/profiles/mine").await.problem(404, "not-found");
}

#[tokio::test]
async fn a_profile_of_the_api_stands_over_a_built_in_one_until_it_is_deleted() {
    let api = Api::new();
    let built_in = api.get("/v1/profiles/api_outage").await;
    assert_eq!(
        api.put_yaml("/v1/profiles/api_outage", OUTAGE).await.status,
        201
    );
    assert_eq!(
        api.get("/v1/profiles/api_outage")
            .await
            .header("squall-profile-source"),
        "api"
    );
    assert_eq!(api.delete("/v1/profiles/api_outage").await.status, 204);
    let back = api.get("/v1/profiles/api_outage").await;
    assert_eq!(
        (back.header("etag"), back.body.clone()),
        (built_in.header("etag"), built_in.body.clone())
    );
}

#[tokio::test]
async fn what_is_wrong_with_a_profile_is_said_with_its_place() {
    let api = Api::new();
    let slip = json!({ "chaos": { "tool_faults": [{ "tool": "x", "mode": "eror" }] } });
    let answer = api.put("/v1/profiles/p", slip).await;
    assert_eq!(
        answer.pointers(422, "invalid"),
        ["/chaos/tool_faults/0/mode"]
    );
    for (name, document) in [
        ("p", json!({ "name": "q", "chaos": {} })),
        ("none", json!({ "chaos": {} })),
        ("inline", json!({ "chaos": {} })),
        ("a%20b", json!({ "chaos": {} })),
    ] {
        let answer = api.put(&format!("/v1/profiles/{name}"), document).await;
        assert_eq!(answer.pointers(422, "invalid"), ["/name"], "{name}");
    }
    let unknown = json!({ "extends": ["no_such_profile"], "chaos": {} });
    api.put("/v1/profiles/p", unknown)
        .await
        .problem(422, "invalid");
    api.get("/v1/profiles/p").await.problem(404, "not-found");
}

#[tokio::test]
async fn edits_are_guarded_by_versions() {
    let api = Api::new();
    let path = "/v1/profiles/mine";
    let put = async |headers: &[(&str, &str)], body: &str| {
        let mut headers = headers.to_vec();
        headers.push(("content-type", "application/yaml"));
        api.ask("PUT", path, &headers, body.to_owned()).await
    };
    put(&[("if-match", "\"x\"")], OUTAGE)
        .await
        .problem(412, "precondition-failed");
    let first = put(&[("if-none-match", "*")], OUTAGE).await;
    assert_eq!(first.status, 201);
    put(&[("if-none-match", "*")], OUTAGE)
        .await
        .problem(412, "precondition-failed");
    let tag = first.header("etag").to_owned();
    let edited = OUTAGE.replace("down", "slow");
    assert_eq!(put(&[("if-match", &tag)], &edited).await.status, 200);
    put(&[("if-match", &tag)], OUTAGE)
        .await
        .problem(412, "precondition-failed");
    let both = format!(
        "\"x\", W/{}",
        put(&[("if-match", "*")], &edited).await.header("etag")
    );
    let unchanged = api.ask("GET", path, &[("if-none-match", &both)], "").await;
    assert_eq!((unchanged.status, unchanged.body.len()), (304, 0));
    let stale = api
        .ask("DELETE", path, &[("if-match", &tag)], Body::empty())
        .await;
    stale.problem(412, "precondition-failed");
    let fresh = api
        .ask("DELETE", path, &[("if-match", &both)], Body::empty())
        .await;
    assert_eq!(fresh.status, 204);
}

#[tokio::test]
async fn an_edit_of_a_profile_in_force_takes_effect_at_once() {
    let api = Api::new();
    api.put_yaml("/v1/profiles/mine", OUTAGE).await;
    let before = api
        .put("/v1/chaos", json!({ "profile": "mine" }))
        .await
        .json();
    assert_eq!(before["rules"], 1);
    let two = "chaos: {tool_faults: [{tool: a, mode: error}, {tool: b, mode: slow}]}";
    api.put_yaml("/v1/profiles/mine", two).await;
    let after = api.get("/v1/chaos").await.json();
    assert_eq!(
        (&after["rules"], &after["activation"]),
        (&json!(2), &before["activation"])
    );
}

const WITH_VARIABLES: [(&str, &str); 1] = [("content-type", "application/vnd.squall.profile+json")];

#[tokio::test]
async fn what_the_variables_of_a_profile_stand_for_is_sent_beside_it_and_not_shown() {
    let api = Api::new();
    let put = async |key: &str| {
        let text = "description: knows ${KEY}\ntool_faults: [{ mode: error, message: '${KEY}' }]\n";
        let body = json!({ "document": text, "variables": { "KEY": key } }).to_string();
        let answer = api
            .ask("PUT", "/v1/profiles/p", &WITH_VARIABLES, body)
            .await;
        assert!(answer.status < 300, "{answer:?}");
        answer.header("etag").to_owned()
    };
    let first = put("hunter2").await;
    for path in ["/v1/profiles", "/v1/profiles/p"] {
        let shown = api.get(path).await;
        let text = String::from_utf8_lossy(&shown.body).into_owned();
        assert!(!text.contains("hunter2"), "{text}");
    }
    let shown = api.get("/v1/profiles/p").await;
    assert_eq!(shown.json()["tool_faults"][0]["message"], "${KEY}");
    assert_eq!(shown.header("etag"), first);
    assert_eq!(put("hunter2").await, first);
    assert_ne!(put("hunter3").await, first);
}

#[tokio::test]
async fn a_variable_that_is_not_sent_is_named_and_chaos_takes_none() {
    let api = Api::new();
    let body = |document: &str| json!({ "document": document, "variables": {} }).to_string();
    let sent = body("tool_faults: [{ mode: error, message: '${PATH}' }]");
    let answer = api
        .ask("PUT", "/v1/profiles/p", &WITH_VARIABLES, sent)
        .await;
    assert_eq!(answer.pointers(422, "invalid"), ["/tool_faults/0/message"]);
    let sent = body("tool_faults: [{ mode: error, message: '${PATH:-x}' }]");
    let answer = api
        .ask("PUT", "/v1/profiles/p", &WITH_VARIABLES, sent)
        .await;
    assert_eq!(answer.status, 201, "{answer:?}");
    let answer = api
        .ask("PUT", "/v1/profiles/p", &WITH_VARIABLES, "{}")
        .await;
    answer.problem(422, "invalid");
    let answer = api
        .ask("PUT", "/v1/chaos", &WITH_VARIABLES, body("profile: none"))
        .await;
    answer.problem(415, "unsupported-type");
}
