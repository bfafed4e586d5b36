//! Tokens that the API makes.

use serde_json::json;
use squall_control_api::access::{AT_ONCE, Token, TokenRole};
use squall_tests::postgres::Postgres;

use crate::bench::{Answer, Api, EventStream, ask, eventually};
use crate::store::Ground;

const TOKENS: &str = "/v1/tokens";

async fn start(ground: &Ground<'_>) -> Api {
    Api::with_store(ground.open().await).await
}

async fn create(api: &Api, secret: &str, name: &str, role: &str) -> Answer {
    let body = json!({ "name": name, "role": role });
    ask(api, secret, "POST", TOKENS, &body).await
}

/// The secret of a token that is made.
async fn made(api: &Api, secret: &str, name: &str, role: &str) -> String {
    let made = create(api, secret, name, role).await;
    assert_eq!(made.status, 201, "{made:?}");
    made.json()["token"].as_str().expect("a secret").to_owned()
}

async fn status(api: &Api, secret: &str, path: &str) -> u16 {
    ask(api, secret, "GET", path, &json!({})).await.status
}

#[tokio::test]
async fn the_first_token_closes_the_api_and_its_secret_is_seen_once() {
    let ground = Ground::sqlite();
    let api = start(&ground).await;
    assert_eq!(api.get("/v1/chaos").await.status, 200);
    let first = create(&api, "", "ops", "admin").await;
    assert_eq!(
        (first.status, first.header("cache-control")),
        (201, "no-store")
    );
    let document = first.json();
    let secret = document["token"].as_str().expect("a secret");
    assert_eq!(
        (&document["name"], &document["role"], &document["workspace"]),
        (&json!("ops"), &json!("admin"), &json!("default"))
    );
    let refused = api.get("/v1/chaos").await;
    refused.problem(401, "unauthenticated");
    assert_eq!(refused.header("www-authenticate"), "Bearer");
    assert_eq!(status(&api, secret, "/v1/chaos").await, 200);
    let listed = ask(&api, secret, "GET", TOKENS, &json!({})).await;
    assert!(!String::from_utf8_lossy(&listed.body).contains(&secret[7..]));
    let items = &listed.json()["items"];
    assert_eq!(items[0]["created_at"], document["created_at"]);
    assert_eq!(
        (&items[0]["source"], items.as_array().map(Vec::len)),
        (&json!("api"), Some(1))
    );
}

#[tokio::test]
async fn of_many_who_make_the_first_token_at_once_one_does() {
    let api = Api::new();
    let names: Vec<String> = (0..20).map(|number| format!("ops-{number}")).collect();
    let asked = names.iter().map(|name| create(&api, "", name, "admin"));
    let mut answers = futures_util::future::join_all(asked).await;
    answers.sort_by_key(|answer| answer.status);
    assert_eq!(answers[0].status, 201);
    for refused in &answers[1..] {
        refused.problem(401, "unauthenticated");
    }
}

#[tokio::test]
async fn of_two_admins_that_revoke_each_other_one_stays() {
    let api = Api::new();
    let one = made(&api, "", "one", "admin").await;
    let two = made(&api, &one, "two", "admin").await;
    let (nothing, paths) = (json!({}), ["/v1/tokens/one", "/v1/tokens/two"]);
    let (first, second) = tokio::join!(
        ask(&api, &one, "DELETE", paths[1], &nothing),
        ask(&api, &two, "DELETE", paths[0], &nothing),
    );
    let mut statuses = [first.status, second.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [204, 401]);
}

#[tokio::test]
async fn nobody_is_locked_out_by_a_slip() {
    let ground = Ground::sqlite();
    let api = start(&ground).await;
    let viewer = create(&api, "", "eye", "viewer").await;
    assert_eq!(viewer.pointers(422, "invalid"), ["/role"]);
    let admin = made(&api, "", "ops", "admin").await;
    made(&api, &admin, "eye", "viewer").await;
    let taken = create(&api, &admin, "ops", "viewer").await;
    taken.problem(409, "conflict");
    let revoke = async |name: &str| {
        let path = format!("{TOKENS}/{name}");
        ask(&api, &admin, "DELETE", &path, &json!({})).await
    };
    revoke("ops").await.problem(409, "conflict");
    revoke("nobody").await.problem(404, "not-found");
    assert_eq!(revoke("eye").await.status, 204);
    assert_eq!(revoke("ops").await.status, 204, "the last of all");
    assert_eq!(api.get("/v1/chaos").await.status, 200, "open, as before");
}

#[tokio::test]
async fn tokens_of_the_configuration_are_listed_and_stay() {
    let api = Api::with_tokens(vec![Token::new("boss", TokenRole::Admin, "secret")]);
    create(&api, "secret", "boss", "viewer")
        .await
        .problem(409, "conflict");
    let path = "/v1/tokens/boss";
    let revoked = ask(&api, "secret", "DELETE", path, &json!({})).await;
    revoked.problem(409, "conflict");
    let other = made(&api, "secret", "other", "admin").await;
    let listed = ask(&api, &other, "GET", TOKENS, &json!({})).await.json();
    let lines: Vec<_> = listed["items"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| (one["name"].clone(), one["source"].clone()))
        .collect();
    let line = |name: &str, source: &str| (json!(name), json!(source));
    assert_eq!(lines, [line("boss", "config"), line("other", "api")]);
    let path = "/v1/tokens/other";
    assert_eq!(
        ask(&api, &other, "DELETE", path, &json!({})).await.status,
        204
    );
}

#[tokio::test]
#[rustfmt::skip]
async fn what_makes_no_token_says_where() {
    let api = Api::new();
    for (body, pointers) in [
        (json!([]), vec![""]),
        (json!({}), vec!["", ""]),
        (json!({ "name": "a b", "role": "root" }), vec!["/name", "/role"]),
        // No client can name it in a path.
        (json!({ "name": "..", "role": "admin" }), vec!["/name"]),
        (json!({ "name": "a".repeat(65), "role": "admin" }), vec!["/name"]),
        (json!({ "name": "a", "role": "admin", "roles": 1 }), vec!["/roles"]),
        (json!({ "name": "a", "role": "admin", "workspace": "a.b" }), vec!["/workspace"]),
        (
            // Nobody could make a token for the default workspace then.
            json!({ "name": "a", "role": "admin", "workspace": "w" }),
            vec!["/role"],
        ),
    ] {
        let refused = ask(&api, "", "POST", TOKENS, &body).await;
        assert_eq!(refused.pointers(422, "invalid"), pointers, "{body}");
    }
    assert_eq!(api.get("/v1/chaos").await.status, 200, "none was made");
}

async fn listen(api: &Api, secret: &str) -> EventStream {
    let bearer = format!("Bearer {secret}");
    api.stream("/v1/events", &[("authorization", &bearer)])
        .await
}

#[tokio::test]
async fn streams_end_with_what_let_them_in() {
    let api = Api::new();
    let unasked = listen(&api, "").await;
    let admin = made(&api, "", "ops", "admin").await;
    // It ends with the first token.
    unasked.rest().await;
    let viewer = made(&api, &admin, "eye", "viewer").await;
    let stream = listen(&api, &viewer).await;
    ask(&api, &admin, "DELETE", "/v1/tokens/eye", &json!({})).await;
    stream.rest().await;
}

#[tokio::test]
async fn what_one_daemon_makes_and_revokes_holds_at_the_others() {
    let server = Postgres::start();
    let ground = Ground::postgres(&server, "squall");
    let [one, other] = [start(&ground).await, start(&ground).await];
    let state = &other.state;
    tokio::spawn(
        state
            .profiles
            .clone()
            .follow(state.tokens.clone(), state.stopping.clone()),
    );
    let admin = made(&one, "", "ops", "admin").await;
    let viewer = made(&one, &admin, "eye", "viewer").await;
    eventually("the other daemon's closed door", async || {
        (status(&other, "", "/v1/chaos").await == 401).then_some(())
    })
    .await;
    eventually("the token at the other daemon", async || {
        (status(&other, &viewer, "/v1/chaos").await == 200).then_some(())
    })
    .await;
    let stream = listen(&other, &viewer).await;
    let revoked = ask(&one, &admin, "DELETE", "/v1/tokens/eye", &json!({})).await;
    assert_eq!(revoked.status, 204);
    // It ends at the other daemon too.
    stream.rest().await;
    assert_eq!(status(&other, &viewer, "/v1/chaos").await, 401);
    let taken = create(&other, &admin, "ops", "admin").await;
    taken.problem(409, "conflict");
}

#[tokio::test]
async fn a_rate_limited_token_gets_retry_after_and_can_end_chaos() {
    let api = Api::with_tokens(vec![
        Token::new("hasty", TokenRole::Operator, "fast"),
        Token::new("calm", TokenRole::Operator, "slow"),
    ]);
    let mut let_through = 0;
    let refused = loop {
        let answer = ask(&api, "fast", "GET", "/v1/scopes", &json!({})).await;
        if answer.status != 200 {
            break answer;
        }
        let_through += 1;
    };
    refused.problem(429, "rate-limited");
    assert_eq!(refused.header("retry-after"), "1");
    assert!(let_through >= AT_ONCE, "{let_through}");
    let ended = ask(&api, "fast", "DELETE", "/v1/chaos", &json!({})).await;
    assert_eq!(ended.status, 204);
    assert_eq!(status(&api, "slow", "/v1/scopes").await, 200);
}

#[tokio::test]
async fn an_admin_of_a_workspace_has_only_its_tokens_and_one_of_the_default_has_all() {
    let api = Api::new();
    let boss = made(&api, "", "ops", "admin").await;
    let of = |workspace: &str, name: &str| json!({ "name": name, "role": "admin", "workspace": workspace });
    let mut secrets = Vec::new();
    for workspace in ["one", "two"] {
        let made = ask(&api, &boss, "POST", TOKENS, &of(workspace, "ops")).await;
        assert_eq!(made.json()["workspace"], workspace, "{made:?}");
        secrets.push(made.json()["token"].as_str().expect("a secret").to_owned());
    }
    let listed = async |secret: &str, query: &str| {
        let path = format!("{TOKENS}{query}");
        let list = ask(&api, secret, "GET", &path, &json!({})).await.json();
        let items = list["items"].as_array().expect("a list").clone();
        let workspaces: Vec<_> = items.iter().map(|one| one["workspace"].clone()).collect();
        (workspaces, list["next_cursor"].clone())
    };
    let all = [json!("default"), json!("one"), json!("two")];
    assert_eq!(listed(&boss, "").await.0, all);
    assert_eq!(listed(&secrets[0], "").await.0, [json!("one")]);
    let mut cursor = String::new();
    for workspace in all {
        let (page, next) = listed(&boss, &format!("?limit=1{cursor}")).await;
        assert_eq!(page, [workspace]);
        cursor = format!("&cursor={}", next.as_str().unwrap_or_default());
    }
    let foreign = ask(&api, &secrets[0], "POST", TOKENS, &of("two", "spy")).await;
    foreign.problem(403, "forbidden");
    let own = made(&api, &secrets[0], "eye", "viewer").await;
    assert_eq!(status(&api, &own, "/v1/scopes").await, 200);
    let path = "/v1/tokens/ops?workspace=two";
    let hidden = ask(&api, &secrets[0], "DELETE", path, &json!({})).await;
    hidden.problem(404, "not-found");
    let revoked = ask(&api, &boss, "DELETE", path, &json!({})).await;
    assert_eq!(revoked.status, 204);
    assert_eq!(status(&api, &secrets[1], "/v1/scopes").await, 401);
    assert_eq!(status(&api, &secrets[0], "/v1/scopes").await, 200);
}
