//! What is of another workspace is not there.

use serde_json::{Value, json};
use squall_control_api::JournalOptions;
use squall_control_api::access::{Token, TokenRole};
use squall_tests::postgres::Postgres;

use crate::bench::{Answer, Api, ask, eventually};
use crate::store::Ground;
use crate::store_runs;

/// The admins of two workspaces and of the default one; each is its own secret.
fn tokens() -> Vec<Token> {
    let admin =
        |workspace: &str| Token::new("admin", TokenRole::Admin, workspace).of_workspace(workspace);
    ["default", "blue", "red"].map(admin).into()
}

async fn get(api: &Api, secret: &str, path: &str) -> Answer {
    ask(api, secret, "GET", path, &Value::Null).await
}

fn rules() -> Value {
    json!({ "tool_faults": [{ "mode": "error" }] })
}

/// Names of the things in a list.
async fn names(api: &Api, secret: &str, path: &str, member: &str) -> Vec<String> {
    get(api, secret, path).await.items(member)
}

async fn put(api: &Api, secret: &str, path: &str, body: Value) -> Answer {
    let put = ask(api, secret, "PUT", path, &body).await;
    assert!(put.status < 300, "{path}: {put:?}");
    put
}

/// An API in which blue has one of everything; the exchange's id.
async fn blue(ground: &Ground<'_>) -> (Api, String) {
    let options = JournalOptions::default();
    let api = Api::with_journal(ground.open().await, 1, options).await;
    api.state.access.configure(tokens());
    let suite = json!({
        "agent": { "endpoint": "http://h/" },
        "golden_prompts": ["hello"],
        "invariants": [{ "type": "completes" }],
    });
    let contract = json!({ "invariants": [{ "id": "done", "type": "completes" }] });
    for (path, body) in [
        ("/v1/profiles/azure", json!({ "chaos": rules() })),
        ("/v1/suites/azure", suite),
        ("/v1/contracts/azure", contract),
        ("/v1/replays/azure", json!({ "id": "azure" })),
        ("/v1/scopes/blue.job/tape", json!({ "replay": "azure" })),
        ("/v1/chaos", json!({ "profile": "azure" })),
        ("/v1/scopes/blue.job/chaos", json!({ "profile": "azure" })),
    ] {
        put(&api, "blue", path, body).await;
    }
    let note = api.note(Some("blue.job"), "https://h/");
    let id = note.id.to_string();
    // The second one takes the place of the first in memory, which is then in the store only.
    api.record([note, api.note(Some("blue"), "https://h/")]);
    (api, id)
}

/// Routes that tell nothing of anybody, or only of whoever asks; what the latter do to others is told by
/// the tests below.
const ABOUT_ONESELF: [&str; 15] = [
    "GET /v1/caller",
    "GET /v1/audit/verify",
    "GET /healthz",
    "GET /readyz",
    "GET /metrics",
    "GET /ca.pem",
    "GET /proxy.pac",
    "GET /openapi.json",
    "GET /docs",
    "GET /v1/chaos",
    "PUT /v1/chaos",
    "DELETE /v1/chaos",
    "GET /v1/events",
    "POST /v1/tokens",
    "PUT /v1/profiles/{name}",
];

/// A path with blue's name in it.
fn azure(path: &str) -> String {
    let parts = path.split('/');
    let parts = parts.map(|part| if part.starts_with('{') { "azure" } else { part });
    parts.collect::<Vec<_>>().join("/")
}

/// Every route, asked with a token of another workspace, as the docs list them. A new route is given
/// its line here.
#[tokio::test]
#[expect(clippy::too_many_lines, reason = "a flat list of routes")]
async fn a_foreign_token_finds_nothing_on_any_route() {
    let ground = Ground::sqlite();
    let (api, id) = blue(&ground).await;
    let exchange = format!("/v1/exchanges/{id}");
    eventually("the exchange in the store", async || {
        let found = get(&api, "blue", &exchange).await;
        (found.status == 200).then_some(())
    })
    .await;
    let named = json!({ "name": "blue" });
    let begun = ask(&api, "blue", "POST", "/v1/recordings", &named).await;
    let recording = begun.json()["id"].as_str().expect("an id").to_owned();
    let theirs = store_runs::run("azure", "test");
    store_runs::add(&api.state.store, "blue", &theirs, 60_000).await;
    let docs = include_str!("../../../docs/api.md");
    let lines = docs
        .lines()
        .skip_while(|line| *line != "| request | role |");
    let routes = lines
        .skip(2)
        .map_while(|line| line.strip_prefix("| `")?.split_once('`'));
    for secret in ["red", "default"] {
        let empty = async |path: &str, member: &str| {
            let path = format!("{path}?limit=1000");
            let found = names(&api, secret, &path, member).await;
            assert!(
                !found
                    .iter()
                    .any(|name| name.contains("blue") || name == "azure"),
                "{found:?}"
            );
        };
        let missing = async |method: &str, path: &str, body: Value| {
            let answer = ask(&api, secret, method, path, &body).await;
            answer.problem(404, "not-found");
        };
        for (route, _) in routes.clone() {
            let chaos = json!({ "profile": "none" });
            match route {
                _ if ABOUT_ONESELF.contains(&route) => {}
                "GET /v1/audit" | "GET /v1/tokens" | "DELETE /v1/tokens/{name}"
                    if secret == "default" => {}
                "GET /v1/audit" => empty("/v1/audit", "workspace").await,
                "GET /v1/profiles" => empty("/v1/profiles", "name").await,
                "GET /v1/profiles/{name}" => {
                    missing("GET", "/v1/profiles/azure", Value::Null).await;
                    missing("GET", "/v1/profiles/azure?version=1", Value::Null).await;
                    missing("GET", "/v1/profiles/blue%2Fazure", Value::Null).await;
                }
                "DELETE /v1/profiles/{name}" => {
                    missing("DELETE", "/v1/profiles/azure", Value::Null).await;
                }
                // Daemons that share a store have a test of their own.
                "GET /v1/fleet" => {}
                "GET /v1/scopes" => empty("/v1/scopes", "scope").await,
                "GET /v1/scopes/{scope}/chaos" => {
                    missing("GET", "/v1/scopes/blue/chaos", Value::Null).await;
                    missing("GET", "/v1/scopes/blue.job/chaos", Value::Null).await;
                }
                "PUT /v1/scopes/{scope}/chaos" => {
                    missing("PUT", "/v1/scopes/blue.new/chaos", chaos).await;
                }
                "DELETE /v1/scopes/{scope}/chaos" => {
                    missing("DELETE", "/v1/scopes/blue/chaos", Value::Null).await;
                }
                "GET /v1/scopes/{scope}/tape" | "DELETE /v1/scopes/{scope}/tape" => {
                    let (method, _) = route.split_once(' ').expect("a method and a path");
                    missing(method, "/v1/scopes/blue.job/tape", Value::Null).await;
                }
                "PUT /v1/scopes/{scope}/tape" => {
                    let session = json!({ "session": { "id": "s" } });
                    missing("PUT", "/v1/scopes/blue.job/tape", session).await;
                }
                "POST /v1/recordings" => {
                    missing("POST", "/v1/recordings", json!({ "scope": "blue" })).await;
                }
                "GET /v1/recordings/{id}" | "POST /v1/recordings/{id}/stop" => {
                    let recording = recording.as_str();
                    let (method, path) = route.split_once(' ').expect("a method and a path");
                    missing(method, &path.replace("{id}", recording), Value::Null).await;
                }
                // Blue's run is known by this name, which is no other's id.
                "POST /v1/runs/{id}/approve" | "POST /v1/runs/{id}/cancel" => {
                    let (_, path) = route.split_once(' ').expect("a method and a path");
                    let theirs = ask(&api, "blue", "POST", &azure(path), &json!({})).await;
                    theirs.problem(409, "conflict");
                    missing("POST", &azure(path), json!({})).await;
                }
                "GET /v1/runs/{id}/events" => {
                    missing("GET", "/v1/runs/azure/events", Value::Null).await;
                }
                "GET /v1/exchanges" => {
                    empty("/v1/exchanges", "scope").await;
                    let asked = names(&api, secret, "/v1/exchanges?scope=blue", "id").await;
                    assert_eq!(asked, [""; 0]);
                }
                "GET /v1/exchanges/{id}" => {
                    missing("GET", &format!("/v1/exchanges/{id}"), Value::Null).await;
                }
                "GET /v1/clients" => {
                    let theirs = get(&api, "blue", "/v1/clients").await.json();
                    assert_eq!(theirs["items"][0]["exchanges"], 2);
                    assert_eq!(
                        get(&api, secret, "/v1/clients").await.json()["items"],
                        json!([])
                    );
                }
                "POST /v1/profiles/{name}/dry-run" => {
                    let (_, path) = route.split_once(' ').expect("a method and a path");
                    let theirs = ask(&api, "blue", "POST", &azure(path), &json!({}))
                        .await
                        .json();
                    assert_eq!(theirs["exchanges"], 1);
                    let own = ask(&api, secret, "POST", &azure(path), &json!({}))
                        .await
                        .json();
                    assert_eq!(own["exchanges"], 0);
                }
                "GET /v1/tokens" => empty("/v1/tokens", "workspace").await,
                "DELETE /v1/tokens/{name}" => {
                    missing("DELETE", "/v1/tokens/admin?workspace=blue", Value::Null).await;
                }
                // What is under a name of its own: blue's is called azure.
                other => {
                    let (method, path) = other.split_once(' ').expect("a method and a path");
                    let is_list = method == "GET" && !path.contains('{');
                    if is_list {
                        let member = if path == "/v1/recordings" {
                            "id"
                        } else {
                            "name"
                        };
                        empty(path, member).await;
                        let all = get(&api, secret, path).await.json().to_string();
                        assert!(!all.contains(&recording), "{all}");
                    } else if method != "PUT" && path.contains('{') {
                        let path = azure(path);
                        assert_ne!(get(&api, "blue", &path).await.status, 404, "{path}");
                        missing(method, &path, Value::Null).await;
                    }
                }
            }
        }
    }
    let tape = get(&api, "blue", "/v1/scopes/blue.job/tape").await;
    assert_eq!(tape.status, 200, "{tape:?}");
    let held = get(&api, "blue", "/v1/scopes/blue.job/chaos").await.json();
    assert_eq!(
        (&held["profile"], &held["inherited"]),
        (&json!("azure"), &json!(false))
    );
    assert_eq!(
        names(&api, "blue", "/v1/exchanges", "scope").await,
        ["blue", "blue.job"]
    );
}

#[tokio::test]
async fn chaos_without_a_scope_is_the_workspace_s() {
    let api = Api::with_tokens(tokens());
    let inline = json!({ "chaos": rules() });
    let put = ask(&api, "blue", "PUT", "/v1/chaos", &inline).await.json();
    assert_eq!(put["scope"], "blue");
    let inherited = get(&api, "blue", "/v1/scopes/blue.any/chaos").await.json();
    assert_eq!(
        (&inherited["inherited"], &inherited["profile"]),
        (&json!(true), &json!("inline"))
    );
    for secret in ["default", "red"] {
        let other = get(&api, secret, "/v1/chaos").await.json();
        assert_eq!(other["profile"], "none", "{secret}");
    }
    assert_eq!(names(&api, "red", "/v1/scopes", "scope").await, ["red"]);
    for (secret, scope) in [("red", "red"), ("red", "red.a"), ("default", "other")] {
        let path = format!("/v1/scopes/{scope}/chaos");
        assert_eq!(ask(&api, secret, "PUT", &path, &inline).await.status, 200);
    }
    let ended = ask(&api, "red", "DELETE", "/v1/chaos?all=true", &Value::Null).await;
    assert_eq!(ended.status, 204);
    for (scope, profile) in [
        ("red", "none"),
        ("red.a", "none"),
        ("blue.any", "inline"),
        ("other", "inline"),
    ] {
        assert_eq!(api.state.chaos.look(scope).profile, profile, "{scope}");
    }
    // The brake of the daemon is the default workspace's.
    let all = "/v1/chaos?all=true";
    let ended = ask(&api, "default", "DELETE", all, &Value::Null).await;
    assert_eq!(ended.status, 204);
    assert_eq!(api.state.chaos.look("blue").profile, "none");
}

#[tokio::test]
async fn a_profile_of_the_same_name_is_another_in_another_workspace() {
    let server = Postgres::start();
    for ground in [Ground::sqlite(), Ground::postgres(&server, "squall")] {
        let api = Api::with_store(ground.open().await).await;
        api.state.access.configure(tokens());
        let path = "/v1/profiles/api_outage";
        let tag = |answer: &Answer| answer.header("etag").to_owned();
        let everybody_s = tag(&get(&api, "red", path).await);
        put(&api, "blue", path, json!({ "chaos": rules() })).await;
        assert_ne!(tag(&get(&api, "blue", path).await), everybody_s);
        let extends = json!({ "extends": ["api_outage"] });
        for secret in ["blue", "red", "default"] {
            let mine = put(&api, secret, "/v1/profiles/mine", extends.clone()).await;
            assert_eq!(mine.header("squall-profile-version"), "1");
            let mine = json!({ "profile": "mine" });
            let chaos = put(&api, secret, "/v1/chaos", mine).await.json();
            assert_eq!(chaos["rules"] == 1, secret == "blue", "{secret}: {chaos}");
        }
        let more =
            json!({ "chaos": { "tool_faults": [{ "mode": "error" }, { "mode": "empty" }] } });
        ask(&api, "blue", "PUT", path, &more).await;
        assert_eq!(get(&api, "blue", "/v1/chaos").await.json()["rules"], 2);
        let deleted = ask(&api, "red", "DELETE", path, &Value::Null).await;
        deleted.problem(409, "conflict");
        // After a restart everything is where it was.
        let again = Api::with_store(ground.open().await).await;
        again.state.access.configure(tokens());
        assert_eq!(tag(&get(&again, "red", path).await), everybody_s);
        let own = get(&again, "blue", path).await;
        assert_eq!(own.header("squall-profile-version"), "2");
        let deleted = ask(&again, "blue", "DELETE", path, &Value::Null).await;
        assert_eq!(deleted.status, 204);
        assert_eq!(tag(&get(&again, "blue", path).await), everybody_s);
    }
}

#[tokio::test]
async fn lists_of_the_store_hold_a_workspace_s_exchanges_only() {
    let server = Postgres::start();
    for ground in [Ground::sqlite(), Ground::postgres(&server, "squall")] {
        let options = JournalOptions::default();
        let api = Api::with_journal(ground.open().await, 1, options).await;
        api.state.access.configure(tokens());
        let scopes = [
            "blue", "blue.a", "blue-a", "bluer", "red.blue", "default", "red",
        ];
        api.record(scopes.map(|scope| api.note(Some(scope), "https://h/")));
        let seen = async |secret: &str| {
            let mut all = Vec::new();
            let mut cursor = String::new();
            loop {
                let path = format!("/v1/exchanges?limit=1{cursor}");
                let page = get(&api, secret, &path).await;
                all.extend(page.items("scope"));
                match page.json()["next_cursor"].as_str() {
                    Some(next) => cursor = format!("&cursor={next}"),
                    None => break,
                }
            }
            all.reverse();
            all
        };
        assert_eq!(seen("blue").await, ["blue", "blue.a"]);
        assert_eq!(seen("red").await, ["red.blue", "red"]);
        assert_eq!(seen("default").await, ["blue-a", "bluer", "default"]);
    }
}

#[tokio::test]
async fn a_stream_reports_its_workspace_only() {
    let api = Api::with_tokens(tokens());
    let bearer = [("authorization", "Bearer red")];
    let mut stream = api.stream("/v1/events", &bearer).await;
    let notes = ["blue.a", "default", "red.a"].map(|scope| api.note(Some(scope), "https://h/"));
    api.record(notes);
    for secret in ["blue", "red"] {
        put(&api, secret, "/v1/chaos", json!({ "profile": "none" })).await;
    }
    let events = stream.until("\"change\"").await;
    let names: Vec<_> = events.iter().map(|event| event.name.as_str()).collect();
    assert_eq!(names, ["exchange", "chaos"]);
    assert_eq!(events[0].json()["scope"], "red.a");
    assert_eq!(events[1].json()["now"]["scope"], "red");
}

#[tokio::test]
async fn an_open_stream_of_the_default_workspace_reports_nothing_of_one_made_later() {
    let of = |workspace: &str| Token::new("t", TokenRole::Admin, workspace).of_workspace(workspace);
    let api = Api::with_tokens(vec![of("default")]);
    let bearer = [("authorization", "Bearer default")];
    let mut stream = api.stream("/v1/events", &bearer).await;
    api.state.access.configure(vec![of("default"), of("later")]);
    for secret in ["later", "default"] {
        put(&api, secret, "/v1/chaos", json!({ "profile": "none" })).await;
    }
    let events = stream.until("\"change\"").await;
    assert_eq!(events.len(), 1, "{events:?}");
    assert_eq!(events[0].json()["now"]["scope"], "default");
}
