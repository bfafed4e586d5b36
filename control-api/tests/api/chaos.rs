use std::time::Duration;

use serde_json::json;

use crate::bench::Api;

#[tokio::test]
async fn nothing_is_in_force_at_first() {
    let api = Api::new();
    let answer = api.get("/v1/chaos").await;
    assert_eq!(answer.status, 200);
    assert_eq!(
        answer.json(),
        json!({
            "scope": "default", "activation": null, "inherited": false, "profile": "none",
            "seed": 42, "key": "default", "observe": "model", "rules": 0,
            "started_at": null, "expires_at": null, "ttl": null, "ttl_from": null, "suspended": null,
            "daemon": "test", "by": null,
            "spent": {
                "calls": 0, "input_tokens": 0, "output_tokens": 0, "estimated_tokens": 0, "usd": 0.0,
            },
        })
    );
}

#[tokio::test]
async fn a_profile_is_put_shown_and_ended() {
    let api = Api::new();
    let put = api
        .put(
            "/v1/chaos",
            json!({ "profile": "api_outage", "seed": 7, "ttl": "1h", "key": "k" }),
        )
        .await;
    assert_eq!(put.status, 200, "{put:?}");
    let shown = api.get("/v1/chaos").await.json();
    assert_eq!(put.json(), shown);
    assert_eq!(
        (&shown["profile"], &shown["seed"], &shown["key"]),
        (&json!("api_outage"), &json!(7), &json!("k"))
    );
    assert_eq!(shown["by"], "-", "{shown}");
    assert!(
        shown["rules"].as_u64().is_some_and(|rules| rules > 0),
        "{shown}"
    );
    assert!(
        shown["started_at"].is_string() && shown["expires_at"].is_string(),
        "{shown}"
    );
    let deleted = api.delete("/v1/chaos").await;
    assert_eq!((deleted.status, deleted.body.len()), (204, 0));
    assert_eq!(api.get("/v1/chaos").await.json()["profile"], "none");
    assert_eq!(
        api.delete("/v1/chaos").await.status,
        204,
        "to end nothing is no error"
    );
}

#[tokio::test]
async fn the_time_to_live_that_holds_is_said_and_who_set_it() {
    for (allowed, asked, holds, from) in [
        (None, None, json!(null), json!(null)),
        (None, Some("90m"), json!("1h30m"), json!("request")),
        (Some(3600), None, json!("1h"), json!("safety.ttl")),
        (Some(3600), Some("2h"), json!("1h"), json!("safety.ttl")),
        (Some(3600), Some("10s"), json!("10s"), json!("request")),
    ] {
        let api = Api::with_ttl(allowed.map(Duration::from_secs));
        let put = api
            .put(
                "/v1/chaos",
                json!({ "profile": "api_outage", "ttl": asked }),
            )
            .await;
        let shown = put.json();
        let found = (&shown["ttl"], &shown["ttl_from"]);
        assert_eq!(found, (&holds, &from), "{allowed:?} {asked:?}");
        assert_eq!(shown["expires_at"].is_string(), holds.is_string());
        assert_eq!(shown, api.get("/v1/chaos").await.json());
        let inherited = api.get("/v1/scopes/a/chaos").await.json();
        assert_eq!(inherited["ttl"], holds);
    }
}

#[tokio::test]
#[rustfmt::skip]
async fn variables_of_inline_chaos_stand_for_what_is_sent_with_it_and_are_never_shown() {
    let api = Api::new();
    let chaos = json!({ "tool_faults": [{ "mode": "error", "message": "${WORD}" }] });
    let put = api
        .put(
            "/v1/chaos",
            json!({ "chaos": chaos, "secrets": { "WORD": "hush-hush" } }),
        )
        .await;
    assert_eq!((put.status, put.json()["rules"].clone()), (200, json!(1)));
    for path in ["/v1/chaos", "/v1/scopes", "/v1/audit"] {
        let shown = api.get(path).await;
        assert!(
            !shown.json().to_string().contains("hush-hush"),
            "{path}: {shown:?}"
        );
    }
    for (document, pointer, word) in [
        (json!({ "chaos": chaos }), "/chaos/tool_faults/0/message", "api.env"),
        (
            json!({ "chaos": chaos, "secrets": { "OTHER": "hush-hush" } }),
            "/chaos/tool_faults/0/message",
            "api.env",
        ),
        (json!({ "profile": "api_outage", "secrets": { "WORD": "hush-hush" } }), "/secrets", "profile"),
        (json!({ "chaos": chaos, "secrets": { "hush-hush": "WORD" } }), "/secrets", "member 1"),
        (json!({ "chaos": chaos, "secrets": { "WORD": 7 } }), "/secrets", "member 1"),
        (json!({ "chaos": chaos, "secrets": ["hush-hush"] }), "/secrets", "map"),
    ] {
        let refused = api.put("/v1/chaos", document).await;
        let problem = refused.problem(422, "invalid");
        let mut errors = problem["errors"].as_array().expect("errors").iter();
        assert!(errors.any(|error| error["pointer"] == pointer), "{problem}");
        let text = problem.to_string();
        assert!(text.contains(word) && !text.contains("hush-hush"), "{text}");
    }
}

#[tokio::test]
async fn no_entity_tag_can_be_that_of_chaos() {
    let api = Api::new();
    let body = json!({ "profile": "api_outage" }).to_string();
    let put = async |path: &str, tag: &str| {
        let fields = [("content-type", "application/json"), ("if-match", tag)];
        api.ask("PUT", path, &fields, body.clone()).await
    };
    for path in ["/v1/chaos", "/v1/scopes/blue/chaos"] {
        put(path, "\"x\"").await.problem(412, "precondition-failed");
        assert_eq!(api.get(path).await.json()["profile"], "none");
        assert_eq!(put(path, "*").await.status, 200);
        api.delete(path).await;
    }
}

#[tokio::test]
async fn a_document_without_a_type_is_json_and_yaml_is_read_by_its_type() {
    let api = Api::new();
    let body = r#"{"profile":"none"}"#;
    assert_eq!(api.ask("PUT", "/v1/chaos", &[], body).await.status, 200);
    let form = [("content-type", "application/x-www-form-urlencoded")];
    assert_eq!(api.ask("PUT", "/v1/chaos", &form, body).await.status, 200);
    assert_eq!(
        api.put_yaml("/v1/chaos", "profile: none\nttl: 5m\n")
            .await
            .status,
        200
    );
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_with_its_place_and_changes_nothing() {
    let api = Api::new();
    api.put("/v1/chaos", json!({ "profile": "none", "seed": 1 }))
        .await;
    let slip = json!({ "tool_faults": [{ "tool": "search", "mode": "rate_limt" }] });
    for (document, pointers) in [
        (json!({}), vec![""]),
        (json!({ "chaos": slip }), vec!["/chaos/tool_faults/0/mode"]),
        (json!({ "profile": "api_outag" }), vec!["/profile"]),
        (
            json!({ "profile": "none", "seed": "x", "extra": 1 }),
            vec!["/seed", "/extra"],
        ),
        (json!({ "profile": "none", "chaos": {} }), vec!["/chaos"]),
    ] {
        let answer = api.put("/v1/chaos", document.clone()).await;
        assert_eq!(answer.pointers(422, "invalid"), pointers, "{document}");
    }
    assert_eq!(api.get("/v1/chaos").await.json()["seed"], 1);
}

#[tokio::test]
async fn scopes_are_apart_and_all_end_in_one_call() {
    let api = Api::new();
    api.put("/v1/chaos", json!({ "profile": "api_outage" }))
        .await;
    api.put("/v1/scopes/clean/chaos", json!({ "profile": "none" }))
        .await;
    let clean = api.get("/v1/scopes/clean/chaos").await.json();
    assert_eq!(
        (&clean["profile"], &clean["inherited"]),
        (&json!("none"), &json!(false))
    );
    let other = api.get("/v1/scopes/other/chaos").await.json();
    assert_eq!(
        (&other["profile"], &other["inherited"]),
        (&json!("api_outage"), &json!(true))
    );
    assert_eq!(other["scope"], "other");
    let default = api.get("/v1/scopes/default/chaos").await.json();
    assert_eq!(default, api.get("/v1/chaos").await.json());

    assert_eq!(api.delete("/v1/scopes/clean/chaos").await.status, 204);
    assert_eq!(
        api.get("/v1/scopes/clean/chaos").await.json()["profile"],
        "api_outage"
    );
    api.put("/v1/scopes/a/chaos", json!({ "profile": "api_outage" }))
        .await;
    assert_eq!(api.delete("/v1/chaos?all=true").await.status, 204);
    for path in ["/v1/chaos", "/v1/scopes/a/chaos", "/v1/scopes/clean/chaos"] {
        assert_eq!(api.get(path).await.json()["profile"], "none", "{path}");
    }
}

#[tokio::test]
async fn the_audit_log_tells_which_chaos_was_ended_all_at_once() {
    let api = Api::new();
    for (path, profile) in [
        ("/v1/chaos", "api_outage"),
        ("/v1/scopes/y/chaos", "high_latency"),
    ] {
        let put = api.put(path, json!({ "profile": profile })).await;
        assert_eq!(put.status, 200, "{put:?}");
    }
    assert_eq!(api.delete("/v1/chaos?all=true").await.status, 204);
    let log = api.get("/v1/audit?action=DELETE%20/v1/chaos").await.json();
    let entry = &log["items"][0];
    let (before, after) = (&entry["before"], &entry["after"]);
    assert!(
        before.is_string() && after.is_string() && before != after,
        "{log:#}"
    );
    let detail = entry["detail"].as_str().expect("a text");
    for told in ["default under api_outage", "y under high_latency"] {
        assert!(detail.contains(told), "{detail}");
    }
}
