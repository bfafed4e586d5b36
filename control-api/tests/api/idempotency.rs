use std::collections::BTreeMap;

use serde_json::{Value, json};
use squall_control_api::access::{Token, TokenRole};

use crate::bench::{Answer, Api};
use crate::store::Ground;

async fn make(api: &Api, bearer: &str, key: &str, body: &Value) -> Answer {
    let bearer = format!("Bearer {bearer}");
    let mut headers = vec![
        ("content-type", "application/json"),
        ("idempotency-key", key),
    ];
    if bearer.len() > "Bearer ".len() {
        headers.push(("authorization", &bearer));
    }
    api.ask("POST", "/v1/tokens", &headers, body.to_string())
        .await
}

fn admins() -> Api {
    Api::with_tokens(vec![
        Token::new("one", TokenRole::Admin, "s1"),
        Token::new("two", TokenRole::Admin, "s2"),
        Token::new("eye", TokenRole::Viewer, "s3"),
    ])
}

#[tokio::test]
async fn of_many_who_make_the_same_token_at_once_one_sees_its_secret() {
    let api = admins();
    let body = json!({ "name": "ci", "role": "operator" });
    let asked = (0..50).map(|_| make(&api, "s1", "k", &body));
    let mut statuses = BTreeMap::new();
    for answer in futures_util::future::join_all(asked).await {
        *statuses.entry(answer.status).or_insert(0) += 1;
        if answer.status != 201 {
            let problem = answer.problem(409, "conflict");
            assert!(problem.to_string().contains("was carried out"), "{problem}");
        }
    }
    assert_eq!(statuses, BTreeMap::from([(201, 1), (409, 49)]));
}

#[tokio::test]
async fn a_secret_is_not_stored() {
    let ground = Ground::sqlite();
    let api = Api::with_store(ground.open().await).await;
    let made = make(&api, "", "k", &json!({ "name": "ops", "role": "admin" })).await;
    assert_eq!(made.status, 201, "{made:?}");
    let secret = made.json()["token"].as_str().expect("a secret").to_owned();
    let files = ground.files();
    assert!(!files.is_empty());
    for file in files {
        let bytes = std::fs::read(&file).expect("a file");
        for secret in [secret.as_str(), secret.trim_start_matches("squall_")] {
            let mut windows = bytes.windows(secret.len());
            assert!(
                !windows.any(|window| window == secret.as_bytes()),
                "{file:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_key_is_its_callers_own() {
    let api = admins();
    let wrong = json!({ "name": "ci", "role": "nothing" });
    let first = make(&api, "s1", "k", &wrong).await;
    first.problem(422, "invalid");
    let again = make(&api, "s1", "k", &wrong).await;
    assert_eq!((again.body, again.status), (first.body, 422));
    let right = json!({ "name": "ci", "role": "viewer" });
    let refused = make(&api, "s1", "k", &right).await.problem(422, "invalid");
    assert_eq!(
        refused["errors"][0]["header"], "idempotency-key",
        "{refused}"
    );
    assert_eq!(make(&api, "s2", "k", &right).await.status, 201);
    // Whoever may not ask is not answered from what another was told.
    make(&api, "s3", "k", &right)
        .await
        .problem(403, "forbidden");
    make(&api, "nobody", "k", &right)
        .await
        .problem(401, "unauthenticated");
}

#[tokio::test]
async fn what_is_not_there_takes_no_key() {
    let api = Api::new();
    let key = [("idempotency-key", "k")];
    for _ in 0..2 {
        api.ask("POST", "/v1/nothing", &key, "{}")
            .await
            .problem(404, "not-found");
        api.ask("POST", "/v1/chaos", &key, "{}")
            .await
            .problem(405, "method-not-allowed");
    }
    let key = [
        ("idempotency-key", "k"),
        ("content-type", "application/json"),
    ];
    let long = vec![b' '; (1 << 20) + 1];
    api.ask("POST", "/v1/tokens", &key, long)
        .await
        .problem(413, "too-large");
}
