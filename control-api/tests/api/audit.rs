//! The audit log: who changed what, and that nobody can change that unseen.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use squall_control_api::access::{Token, TokenRole};
use squall_control_api::audit::AuditEntry;
use squall_control_api::store::Store;
use squall_proxy::chaos::ChaosRequest;
use squall_tests::postgres::Postgres;

use crate::bench::{Api, ask, eventually};
use crate::store::Ground;

/// Everything that a secret of these tests is recognised by.
const SECRET: &str = "hunter2";

fn tokens() -> Vec<Token> {
    vec![
        Token::new("boss", TokenRole::Admin, SECRET),
        Token::new("eye", TokenRole::Viewer, "eye"),
        Token::new("blue", TokenRole::Admin, "blue").of_workspace("blue"),
    ]
}

async fn open(store: Store) -> Api {
    let api = Api::with_store(store).await;
    api.state.access.configure(tokens());
    api
}

/// The entries, oldest first.
async fn entries(api: &Api, secret: &str, query: &str) -> Vec<Value> {
    let path = format!("/v1/audit?limit=1000{query}");
    let list = ask(api, secret, "GET", &path, &Value::Null).await;
    let mut items = list.json()["items"].as_array().expect("a list").clone();
    items.reverse();
    items
}

async fn verdict(api: &Api, query: &str) -> Value {
    let path = format!("/v1/audit/verify{query}");
    ask(api, SECRET, "GET", &path, &Value::Null).await.json()
}

fn text<'a>(entry: &'a Value, member: &str) -> &'a str {
    entry[member].as_str().unwrap_or("-")
}

/// One call of each kind, as boss.
async fn change_things(api: &Api) {
    let none = json!({ "profile": "none" });
    let profile = json!({ "chaos": { "tool_faults": [{ "mode": "error", "message": SECRET }] } });
    let token = json!({ "name": "ci", "role": "viewer" });
    let suite = json!({
        "agent": { "endpoint": "http://h/" },
        "golden_prompts": ["hello"],
        "invariants": [{ "type": "completes" }],
    });
    for (method, path, body, status) in [
        ("PUT", "/v1/chaos", &none, 200),
        ("PUT", "/v1/scopes/job/chaos", &none, 200),
        ("DELETE", "/v1/scopes/job/chaos", &Value::Null, 204),
        ("DELETE", "/v1/chaos?all=true", &Value::Null, 204),
        ("PUT", "/v1/profiles/mine", &profile, 201),
        ("PUT", "/v1/profiles/mine", &none, 422),
        ("DELETE", "/v1/profiles/mine", &Value::Null, 204),
        ("PUT", "/v1/suites/mine", &suite, 201),
        ("DELETE", "/v1/suites/mine", &Value::Null, 204),
        ("POST", "/v1/tokens", &token, 201),
        ("DELETE", "/v1/tokens/ci", &Value::Null, 204),
    ] {
        let answer = ask(api, SECRET, method, path, body).await;
        assert_eq!(answer.status, status, "{method} {path}: {answer:?}");
    }
}

#[tokio::test]
async fn entries_of_tapes_and_recordings_say_which_and_what_became_of_them() {
    let ground = Ground::sqlite();
    let api = open(ground.open().await).await;
    let begun = ask(
        &api,
        SECRET,
        "POST",
        "/v1/recordings",
        &json!({ "scope": "job" }),
    )
    .await;
    let id = text(&begun.json(), "id").to_owned();
    let stop = format!("/v1/recordings/{id}/stop");
    ask(&api, SECRET, "POST", &stop, &Value::Null).await;
    let (tape, session) = (
        "/v1/scopes/job/tape",
        json!({ "session": { "id": "incident" } }),
    );
    ask(&api, SECRET, "PUT", tape, &session).await;
    ask(&api, SECRET, "PUT", tape, &json!({ "recording": id })).await;
    ask(&api, SECRET, "DELETE", tape, &Value::Null).await;
    let recording = format!("recording {id} of job, 0 exchanges");
    let by_session = "session incident, on_miss error, on_exhausted error".to_owned();
    let by_recording = format!("recording {id}, on_miss error, on_exhausted error");
    let entries = entries(&api, SECRET, "").await;
    let told = entries.iter().map(|entry| {
        let changes = (entry["before"].is_string(), entry["after"].is_string());
        (text(entry, "detail").to_owned(), changes)
    });
    assert_eq!(
        told.collect::<Vec<_>>(),
        [
            (recording.clone(), (false, true)),
            (recording, (true, true)),
            (by_session, (false, true)),
            (by_recording.clone(), (true, true)),
            (by_recording, (true, false)),
        ]
    );
}

#[tokio::test]
#[rustfmt::skip]
async fn every_change_is_an_entry_with_who_what_and_how_it_came_out() {
    let server = Postgres::start();
    for ground in [Ground::sqlite(), Ground::postgres(&server, "squall")] {
        let api = open(ground.open().await).await;
        change_things(&api).await;
        let entries = entries(&api, SECRET, "").await;
        let told: Vec<_> = entries
            .iter()
            .map(|entry| {
                let changes = (entry["before"].is_string(), entry["after"].is_string());
                (text(entry, "action"), text(entry, "target"), text(entry, "outcome"), changes)
            })
            .collect();
        let (scope, profile) = ("/v1/scopes/{scope}/chaos", "/v1/profiles/{name}");
        let [put_scope, end_scope] = ["PUT", "DELETE"].map(|method| format!("{method} {scope}"));
        let [put, delete] = ["PUT", "DELETE"].map(|method| format!("{method} {profile}"));
        let mine = "/v1/profiles/mine";
        assert_eq!(
            told,
            [
                ("PUT /v1/chaos", "/v1/chaos", "done", (true, true)),
                (&*put_scope, "/v1/scopes/job/chaos", "done", (true, true)),
                (&*end_scope, "/v1/scopes/job/chaos", "done", (true, true)),
                ("DELETE /v1/chaos", "/v1/chaos", "done", (true, true)),
                (&*put, mine, "done", (false, true)),
                (&*put, mine, "refused", (false, false)),
                (&*delete, mine, "done", (true, false)),
                ("PUT /v1/suites/{name}", "/v1/suites/mine", "done", (false, true)),
                ("DELETE /v1/suites/{name}", "/v1/suites/mine", "done", (true, false)),
                ("POST /v1/tokens", "/v1/tokens", "done", (false, true)),
                ("DELETE /v1/tokens/{name}", "/v1/tokens/ci", "done", (true, false)),
            ]
        );
        assert_eq!(entries[4]["after"], entries[6]["before"]);
        assert_eq!(entries[9]["after"], entries[10]["before"]);
        for (number, entry) in (1..).zip(&entries) {
            assert_eq!(
                (&entry["number"], text(entry, "actor")),
                (&json!(number), "boss")
            );
            assert!(!entry.to_string().contains(SECRET), "{entry}");
        }
        let whole = verdict(&api, "").await;
        assert_eq!(
            (&whole["valid"], &whole["entries"]),
            (&json!(true), &json!(11)),
            "{whole}"
        );
        // After a restart the chain goes on where it was.
        let again = open(ground.open().await).await;
        change_things(&again).await;
        let query = format!("?head={}", text(&whole, "head"));
        let whole = verdict(&again, &query).await;
        assert_eq!(
            (&whole["valid"], &whole["entries"]),
            (&json!(true), &json!(22)),
            "{whole}"
        );
        let unknown = verdict(&again, &format!("?head={}", "f".repeat(64))).await;
        assert_eq!(unknown["valid"], json!(false), "{unknown}");
    }
}

#[tokio::test]
async fn what_is_changed_behind_its_back_is_found() {
    let server = Postgres::start();
    for (number, (sql, entry)) in (1..).zip([
        ("UPDATE audit SET actor = 'eye' WHERE number = 3", 3),
        ("UPDATE audit SET before = NULL WHERE number = 1", 1),
        ("DELETE FROM audit WHERE number = 4", 4),
        ("DELETE FROM audit WHERE number > 7", 8),
        ("UPDATE audit SET number = number + 1 WHERE number = 11", 11),
        ("UPDATE audit SET hash = previous WHERE number = 2", 2),
        ("UPDATE audit_head SET number = 9", 10),
        ("UPDATE audit_head SET hash = ''", 11),
        ("DELETE FROM audit_head", 11),
        ("DELETE FROM audit", 1),
    ]) {
        for ground in [
            Ground::sqlite(),
            Ground::postgres(&server, &format!("squall{number}")),
        ] {
            let api = open(ground.open().await).await;
            change_things(&api).await;
            assert_eq!(verdict(&api, "").await["valid"], json!(true));
            ground.sql(sql).await;
            let found = verdict(&api, "").await;
            assert_eq!(
                (&found["valid"], &found["problem"]["entry"]),
                (&json!(false), &json!(entry)),
                "{sql}: {found}"
            );
        }
    }
}

#[tokio::test]
async fn several_daemons_on_one_store_make_one_chain() {
    let server = Postgres::start();
    let ground = Ground::postgres(&server, "squall");
    let apis = [
        open(ground.open().await).await,
        open(ground.open().await).await,
    ];
    let none = json!({ "profile": "none" });
    let asked = (0..40).map(|number| {
        let api = &apis[number % 2];
        let path = format!("/v1/scopes/job-{number}/chaos");
        let none = &none;
        async move { ask(api, SECRET, "PUT", &path, none).await.status }
    });
    let answers = futures_util::future::join_all(asked).await;
    assert!(answers.iter().all(|status| *status == 200), "{answers:?}");
    let whole = verdict(&apis[0], "").await;
    assert_eq!(
        (&whole["valid"], &whole["entries"]),
        (&json!(true), &json!(40)),
        "{whole}"
    );
}

#[tokio::test]
async fn whoever_goes_away_leaves_an_entry_of_what_was_begun() {
    let ground = Ground::sqlite();
    let api = open(ground.open().await).await;
    for _ in 0..3 {
        let none = json!({ "profile": "none" });
        let asked = Box::pin(ask(&api, SECRET, "PUT", "/v1/chaos", &none));
        // Asked, and gone.
        futures_util::future::select(asked, std::future::ready(())).await;
    }
    eventually("the entries", async || {
        (entries(&api, SECRET, "").await.len() == 3).then_some(())
    })
    .await;
}

#[tokio::test]
async fn changes_without_a_call_and_denied_calls_have_one_entry() {
    let ground = Ground::sqlite();
    let api = open(ground.open().await).await;
    let audit = Arc::clone(&api.state.audit);
    audit.witness(&api.state.chaos);
    let stopping = api.state.stopping.clone();
    tokio::spawn(Arc::clone(&audit).keep_writing(stopping.clone()));
    tokio::spawn(Arc::clone(&api.state.chaos).keep_time(stopping));
    let short = ChaosRequest {
        ttl: Some(Duration::from_millis(1)),
        ..ChaosRequest::profile("api_outage")
    };
    api.state.chaos.put("job", short).expect("a profile");
    let ended = eventually("the end of its time", async || {
        let found = entries(&api, SECRET, "&actor=squall").await;
        found
            .into_iter()
            .find(|entry| entry["action"] == "chaos ended")
    })
    .await;
    assert_eq!(
        (text(&ended, "target"), text(&ended, "detail")),
        ("job", "its time to live is over")
    );
    for _ in 0..50 {
        let unknown = ask(&api, "nobody", "PUT", "/v1/chaos", &Value::Null).await;
        assert!([401, 429].contains(&unknown.status), "{unknown:?}");
        ask(&api, "eye", "PUT", "/v1/chaos", &Value::Null)
            .await
            .problem(403, "forbidden");
    }
    audit.record(AuditEntry {
        action: "reload".to_owned(),
        target: "squall.yaml".to_owned(),
        outcome: "refused".to_owned(),
        detail: "1 broken".to_owned(),
        ..AuditEntry::default()
    });
    audit.stop().await;
    let denied = entries(&api, SECRET, "&action=denied").await;
    assert!((1..=2).contains(&denied.len()), "{denied:?}");
    let counted: u32 = denied
        .iter()
        .map(|entry| {
            let words = text(entry, "detail").split([' ', ',']);
            words
                .filter_map(|word| word.parse::<u32>().ok())
                .sum::<u32>()
        })
        .sum();
    assert_eq!(counted, 100);
    assert_eq!(entries(&api, SECRET, "&action=reload").await.len(), 1);
    assert_eq!(verdict(&api, "").await["valid"], json!(true));
}

#[tokio::test]
async fn chaos_that_is_ended_by_itself_has_the_digests_of_before_and_after() {
    let ground = Ground::sqlite();
    let api = open(ground.open().await).await;
    let audit = Arc::clone(&api.state.audit);
    audit.witness(&api.state.chaos);
    let outage = json!({ "profile": "api_outage" });
    for path in ["/v1/scopes/job/chaos", "/v1/chaos"] {
        ask(&api, SECRET, "PUT", path, &outage).await;
    }
    let halted = Some("safety.halt: 9 faults within 60 s");
    assert_eq!(api.state.chaos.end_all(halted), 2);
    audit.stop().await;
    let all = entries(&api, SECRET, "").await;
    let of = |target: &str| {
        let found = all.iter().find(|entry| entry["target"] == target);
        found.expect("an entry")
    };
    for (scope, path) in [("job", "/v1/scopes/job/chaos"), ("default", "/v1/chaos")] {
        let (put, ended) = (of(path), of(scope));
        assert_eq!(ended["before"], put["after"], "{scope}");
        assert_eq!(text(ended, "after").len(), 64, "{ended}");
        assert_ne!(ended["after"], ended["before"], "{scope}");
    }
}

#[tokio::test]
async fn a_workspace_s_admin_reads_its_own_entries() {
    let api = Api::with_tokens(tokens());
    let none = json!({ "profile": "none" });
    for secret in [SECRET, "blue"] {
        ask(&api, secret, "PUT", "/v1/chaos", &none).await;
    }
    let own = entries(&api, "blue", "").await;
    assert_eq!(own.len(), 1, "{own:?}");
    assert_eq!(
        (text(&own[0], "actor"), text(&own[0], "workspace")),
        ("blue", "blue")
    );
    assert_eq!(entries(&api, "blue", "&workspace=default").await.len(), 0);
    assert_eq!(entries(&api, SECRET, "").await.len(), 2);
    let verify = ask(&api, "blue", "GET", "/v1/audit/verify", &Value::Null).await;
    verify.problem(403, "forbidden");
}

#[tokio::test]
async fn chaos_ends_while_the_store_is_away_and_its_entry_comes_later() {
    let mut server = Postgres::start();
    let url = server.database("squall");
    let place = squall_control_api::store::StorePlace::parse(&url, "/".as_ref(), "/".as_ref());
    let store = Store::open(place.expect("a URL")).await.expect("it opens");
    let api = open(store).await;
    let stopping = api.state.stopping.clone();
    tokio::spawn(Arc::clone(&api.state.audit).keep_writing(stopping));
    let outage = json!({ "profile": "api_outage" });
    assert_eq!(
        ask(&api, SECRET, "PUT", "/v1/chaos", &outage).await.status,
        200
    );
    server.stop();
    for _ in 0..3 {
        let ended = ask(&api, SECRET, "DELETE", "/v1/chaos?all=true", &Value::Null).await;
        assert_eq!(ended.status, 204);
    }
    assert_eq!(api.state.chaos.look("default").profile, "none");
    // Chaos is switched in memory: it goes on too, for as long as its entries find room.
    assert_eq!(
        ask(&api, SECRET, "PUT", "/v1/chaos", &outage).await.status,
        200
    );
    for number in 0..1_200 {
        api.state.audit.record(AuditEntry {
            action: "test".to_owned(),
            target: number.to_string(),
            ..AuditEntry::default()
        });
    }
    let refused = ask(&api, SECRET, "PUT", "/v1/chaos", &outage).await;
    refused.problem(503, "not-ready");
    let ended = ask(&api, SECRET, "DELETE", "/v1/chaos", &Value::Null).await;
    assert_eq!(ended.status, 204);
    server.start_again();
    eventually("the entries that waited", async || {
        let path = "/v1/audit?action=lost";
        let list = ask(&api, SECRET, "GET", path, &Value::Null).await;
        (list.status == 200 && !list.json()["items"].as_array()?.is_empty()).then_some(())
    })
    .await;
    let whole = verdict(&api, "").await;
    assert_eq!(
        (&whole["valid"], &whole["entries"]),
        (&json!(true), &json!(1002)),
        "{whole}"
    );
    let ended = entries(&api, SECRET, "&action=DELETE%20/v1/chaos").await;
    assert_eq!(ended.len(), 3, "{ended:?}");
}
