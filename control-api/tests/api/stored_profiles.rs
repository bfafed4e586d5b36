//! Profiles that were put outlive the daemon.

use serde_json::json;
use squall_control_api::WITH_VARIABLES;
use squall_control_api::store::{
    DEFAULT_WORKSPACE, DocumentKey, DocumentKind, DocumentText, Store, StorePlace,
};
use squall_tests::postgres::Postgres;

use crate::bench::{Api, eventually};
use crate::store::Ground;

const MINE: &str = "/v1/profiles/mine";

const SLOW: &str = "# Kept.\nchaos: { tool_faults: [{ mode: slow, delay_ms: 10 }] }\n";

const DOWN: &str = "chaos: { tool_faults: [{ mode: error }] }\n";

/// A daemon that is started on what is there.
async fn start(ground: &Ground<'_>) -> Api {
    Api::with_store(ground.open().await).await
}

#[tokio::test]
async fn what_was_put_is_there_after_a_restart_and_what_was_deleted_is_not() {
    let ground = Ground::sqlite();
    let api = start(&ground).await;
    let put = api.put_yaml(MINE, SLOW).await;
    assert_eq!(
        (put.status, put.header("squall-profile-version")),
        (201, "1")
    );
    api.put_yaml("/v1/profiles/gone", DOWN).await;
    api.put_yaml("/v1/profiles/api_outage", DOWN).await;
    assert_eq!(api.delete("/v1/profiles/gone").await.status, 204);

    let api = start(&ground).await;
    let shown = api.get_yaml(MINE).await;
    assert_eq!((shown.status, &shown.body[..]), (200, SLOW.as_bytes()));
    assert_eq!(shown.header("etag"), put.header("etag"));
    assert_eq!(shown.header("squall-profile-source"), "api");
    assert_eq!(shown.header("squall-profile-version"), "1");
    api.get("/v1/profiles/gone").await.problem(404, "not-found");
    let over = api.get("/v1/profiles/api_outage").await;
    assert_eq!(over.header("squall-profile-source"), "api");
    let guarded = [
        ("if-match", put.header("etag")),
        ("content-type", "application/yaml"),
    ];
    assert_eq!(api.ask("PUT", MINE, &guarded, DOWN).await.status, 200);
    api.ask("PUT", MINE, &guarded, SLOW)
        .await
        .problem(412, "precondition-failed");
    assert_eq!(api.delete(MINE).await.status, 204);

    let api = start(&ground).await;
    api.get(MINE).await.problem(404, "not-found");
    let again = api.put_yaml(MINE, SLOW).await;
    assert_eq!(
        (again.status, again.header("squall-profile-version")),
        (201, "4"),
        "a deletion is a version too"
    );
}

#[tokio::test]
async fn every_version_can_be_read() {
    let api = Api::new();
    for (text, version) in [(SLOW, "1"), (DOWN, "2"), (DOWN, "2"), (SLOW, "3")] {
        let put = api.put_yaml(MINE, text).await;
        assert_eq!(put.header("squall-profile-version"), version);
    }
    assert_eq!(api.delete(MINE).await.status, 204);
    for (version, text) in [(1, SLOW), (2, DOWN), (3, SLOW)] {
        let shown = api.get(&format!("{MINE}?version={version}")).await;
        assert_eq!((shown.status, &shown.body[..]), (200, text.as_bytes()));
        assert_eq!(shown.header("content-type"), "application/yaml");
    }
    for version in ["4", "5"] {
        let answer = api.get(&format!("{MINE}?version={version}")).await;
        answer.problem(404, "not-found");
    }
    api.get(&format!("{MINE}?version=0"))
        .await
        .problem(400, "malformed");
    let built_in = api.get("/v1/profiles/api_outage?version=1").await;
    built_in.problem(404, "not-found");
}

#[tokio::test]
async fn what_is_refused_is_not_stored() {
    let ground = Ground::sqlite();
    let api = start(&ground).await;
    api.put_yaml(MINE, DOWN).await;
    assert_eq!(
        api.put("/v1/chaos", json!({ "profile": "mine" }))
            .await
            .status,
        200
    );
    let circle = "extends: [mine]\nchaos: {}\n";
    api.put_yaml(MINE, circle).await.problem(422, "invalid");
    api.put_yaml(MINE, "chaos: { tool_faults: [{ mode: eror }] }")
        .await
        .problem(422, "invalid");
    let none_of_it = [("if-none-match", "*"), ("content-type", "application/yaml")];
    api.ask("PUT", MINE, &none_of_it, SLOW)
        .await
        .problem(412, "precondition-failed");
    let api = start(&ground).await;
    let shown = api.get_yaml(MINE).await;
    assert_eq!(
        (shown.header("squall-profile-version"), &shown.body[..]),
        ("1", DOWN.as_bytes())
    );
}

#[tokio::test]
async fn profiles_find_those_they_extend_whatever_they_are_called() {
    let ground = Ground::sqlite();
    let api = start(&ground).await;
    api.put_yaml("/v1/profiles/z", DOWN).await;
    for (name, extended) in [("m", "z"), ("a", "m"), ("b", "a")] {
        let text = format!("extends: [{extended}]\nchaos: {{}}\n");
        let put = api.put_yaml(&format!("/v1/profiles/{name}"), &text).await;
        assert_eq!(put.status, 201, "{put:?}");
    }
    let api = start(&ground).await;
    let in_force = api.put("/v1/chaos", json!({ "profile": "b" })).await.json();
    assert_eq!(in_force["rules"], 1, "{in_force}");
    assert!(api.state.profiles.broken().is_empty());
}

#[tokio::test]
async fn what_variables_stand_for_is_not_stored_and_its_profile_waits_to_be_put_again() {
    let ground = Ground::sqlite();
    let api = start(&ground).await;
    let document = json!({
        "document": "chaos: { tool_faults: [{ mode: error, message: \"${WORDS:-none} ${MORE:-of it}\" }] }",
        "variables": { "WORDS": "a-secret-of-mine" },
    });
    let put = async |api: &Api| {
        // It is not in force before.
        let headers = [("content-type", WITH_VARIABLES), ("if-none-match", "*")];
        api.ask("PUT", MINE, &headers, document.to_string()).await
    };
    let first = put(&api).await;
    assert_eq!(first.status, 201, "{first:?}");
    let Ground::Sqlite(dir) = &ground else {
        unreachable!()
    };
    for entry in std::fs::read_dir(dir.path()).expect("a list") {
        let bytes = std::fs::read(entry.expect("a file").path()).expect("its bytes");
        let found = bytes
            .windows(16)
            .any(|window| window == b"a-secret-of-mine");
        assert!(!found, "a value is in the store");
    }

    let api = start(&ground).await;
    api.get(MINE).await.problem(404, "not-found");
    let broken = api.state.profiles.broken();
    let told = broken.first().map_or("", |broken| broken.error.as_str());
    for word in [
        "profile `mine`, version 1",
        "does not have those of WORDS;",
        "squall profile put",
    ] {
        assert!(told.contains(word), "{broken:?}");
    }
    assert_eq!(put(&api).await.status, 201);
    assert!(api.state.profiles.broken().is_empty());
    assert_eq!(api.get(MINE).await.header("squall-profile-version"), "1");

    let api = start(&ground).await;
    assert_eq!(
        api.delete(MINE).await.status,
        204,
        "it can be deleted as it is"
    );
    assert!(start(&ground).await.state.profiles.broken().is_empty());
}

#[tokio::test]
async fn an_unreachable_store_is_reported_and_changes_nothing() {
    let mut server = Postgres::start();
    let url = server.database("squall");
    let place = StorePlace::parse(&url, "/".as_ref(), "/".as_ref()).expect("a URL");
    let store = Store::open(place).await.expect("it opens");
    let api = Api::with_store(store).await;
    assert_eq!(api.put_yaml(MINE, SLOW).await.status, 201);
    server.stop();
    let refused = api
        .put_yaml(MINE, DOWN)
        .await
        .problem(503, "store-unavailable");
    let detail = refused["detail"].as_str().unwrap_or_default();
    assert!(detail.contains("does not answer"), "{detail}");
    api.delete(MINE).await.problem(503, "store-unavailable");
    api.get(&format!("{MINE}?version=1"))
        .await
        .problem(503, "store-unavailable");
    let shown = api.get_yaml(MINE).await;
    assert_eq!((shown.status, &shown.body[..]), (200, SLOW.as_bytes()));
    assert_eq!(
        api.put("/v1/chaos", json!({ "profile": "mine" }))
            .await
            .status,
        200
    );
    server.start_again();
    assert_eq!(
        api.put_yaml(MINE, DOWN)
            .await
            .header("squall-profile-version"),
        "2"
    );
}

#[tokio::test]
async fn daemons_that_share_a_store_do_not_overwrite_each_other() {
    let server = Postgres::start();
    let ground = Ground::postgres(&server, "squall");
    let (one, other) = (start(&ground).await, start(&ground).await);
    let first = one.put_yaml(MINE, SLOW).await;
    assert_eq!(first.status, 201);
    let second = other.put_yaml(MINE, DOWN).await;
    assert_eq!(
        (second.status, second.header("squall-profile-version")),
        (200, "2"),
        "the other one's is known when it is put over"
    );
    let guarded = [
        ("if-match", first.header("etag")),
        ("content-type", "application/yaml"),
    ];
    let late = one.ask("PUT", MINE, &guarded, SLOW).await;
    late.problem(412, "precondition-failed");
    assert_eq!(one.get(MINE).await.header("etag"), second.header("etag"));
    assert_eq!(other.delete(MINE).await.status, 204);
    one.delete(MINE).await.problem(404, "not-found");
}

/// A daemon that hears of the others.
async fn start_and_follow(ground: &Ground<'_>) -> Api {
    let api = start(ground).await;
    let (profiles, state) = (api.state.profiles.clone(), &api.state);
    tokio::spawn(profiles.follow(state.tokens.clone(), state.stopping.clone()));
    api
}

/// The text of a profile once it is `expected`.
async fn shows(api: &Api, path: &str, expected: Option<&str>) {
    eventually(&format!("{path} as {expected:?}"), async || {
        let shown = api.get_yaml(path).await;
        let text = String::from_utf8_lossy(&shown.body).into_owned();
        let is_so = match expected {
            Some(expected) => text == expected,
            None => shown.status == 404,
        };
        is_so.then_some(())
    })
    .await;
}

#[tokio::test]
async fn what_one_daemon_puts_the_others_have_and_use() {
    let server = Postgres::start();
    let ground = Ground::postgres(&server, "squall");
    let (one, other) = (
        start_and_follow(&ground).await,
        start_and_follow(&ground).await,
    );
    one.put_yaml(MINE, SLOW).await;
    shows(&other, MINE, Some(SLOW)).await;
    let in_force = other
        .put("/v1/chaos", json!({ "profile": "mine" }))
        .await
        .json();
    assert_eq!(in_force["rules"], 1);
    let two = "chaos: { tool_faults: [{ mode: error, tool: a }, { mode: error, tool: b }] }\n";
    one.put_yaml(MINE, two).await;
    let again = eventually("the rules of another daemon's edit", async || {
        let now = other.get("/v1/chaos").await.json();
        (now["rules"] == 2).then_some(now)
    });
    let again = again.await;
    assert_eq!(again["activation"], in_force["activation"], "it goes on");
    assert_eq!(
        one.get("/v1/chaos").await.json()["profile"],
        "none",
        "chaos is each daemon's own"
    );
    one.delete(MINE).await;
    shows(&other, MINE, None).await;
    assert_eq!(
        other.get("/v1/chaos").await.json()["rules"],
        2,
        "what is in force stays"
    );
}

#[tokio::test]
async fn an_unusable_version_is_reported_and_the_last_usable_one_stays() {
    let server = Postgres::start();
    let ground = Ground::postgres(&server, "squall");
    let (one, other) = (
        start_and_follow(&ground).await,
        start_and_follow(&ground).await,
    );
    one.put_yaml(MINE, DOWN).await;
    shows(&other, MINE, Some(DOWN)).await;
    let document = json!({
        "document": "chaos: { tool_faults: [{ mode: error, message: \"${WORDS}\" }] }",
        "variables": { "WORDS": "x" },
    });
    let headers = [("content-type", WITH_VARIABLES)];
    let put = one.ask("PUT", MINE, &headers, document.to_string()).await;
    assert_eq!(put.status, 200, "{put:?}");
    let broken = eventually("a complaint", async || other.state.profiles.broken().pop());
    let broken = broken.await;
    assert!(
        broken.error.contains("does not have those of WORDS"),
        "{broken:?}"
    );
    shows(&other, MINE, Some(DOWN)).await;
    one.put_yaml(MINE, SLOW).await;
    shows(&other, MINE, Some(SLOW)).await;
    assert!(other.state.profiles.broken().is_empty());
}

#[tokio::test]
async fn what_was_written_while_nothing_was_heard_is_caught_up_with() {
    let mut server = Postgres::start();
    let url = server.database("squall");
    let place = StorePlace::parse(&url, "/".as_ref(), "/".as_ref()).expect("a URL");
    let store = Store::open(place.clone()).await.expect("it opens");
    let api = Api::with_store(store).await;
    let (profiles, state) = (api.state.profiles.clone(), &api.state);
    tokio::spawn(profiles.follow(state.tokens.clone(), state.stopping.clone()));
    api.put_yaml(MINE, SLOW).await;
    server.stop();
    let broken = eventually("deafness", async || api.state.profiles.broken().pop());
    let broken = broken.await;
    assert!(broken.error.contains("are not received"), "{broken:?}");
    server.start_again();
    let other = Api::with_store(Store::open(place).await.expect("it opens")).await;
    assert_eq!(other.put_yaml(MINE, DOWN).await.status, 200);
    shows(&api, MINE, Some(DOWN)).await;
    eventually("ears", async || {
        api.state.profiles.broken().is_empty().then_some(())
    })
    .await;
}

#[tokio::test]
async fn what_is_stored_and_goes_over_a_limit_is_not_in_force_and_can_be_replaced() {
    let ground = Ground::sqlite();
    let store = ground.open().await;
    let key = DocumentKey {
        workspace: DEFAULT_WORKSPACE.to_owned(),
        kind: DocumentKind::Profile,
        name: "mine".to_owned(),
    };
    let globs = "{a,b}".repeat(40);
    let text = DocumentText {
        body: format!("tool_faults: [{{ mode: empty, tool: '{globs}' }}]\n"),
        variables: None,
    };
    let written = store.write(&key, Some(&text), 0, 1, None).await;
    written.expect("written");
    let api = start(&ground).await;
    let broken = api.state.profiles.broken();
    let told = broken.first().map_or("", |broken| broken.error.as_str());
    assert!(told.contains("profile `mine`, version 1"), "{broken:?}");
    assert!(told.contains("more than 25000 globs"), "{broken:?}");
    api.get(MINE).await.problem(404, "not-found");
    assert_eq!(api.put_yaml(MINE, SLOW).await.status, 201);
    assert!(start(&ground).await.state.profiles.broken().is_empty());
}
