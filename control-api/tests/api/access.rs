use axum::body::Body;
use http::Request;
use squall_control_api::access::{FAILURES_AT_ONCE, Token, TokenRole};

use crate::bench::Api;

#[tokio::test]
async fn another_machines_name_is_refused_on_every_path() {
    let api = Api::new();
    for path in ["/healthz", "/v1/chaos", "/nowhere"] {
        let answer = api
            .ask("GET", path, &[("host", "rebound.example")], Body::empty())
            .await;
        answer.problem(403, "forbidden");
    }
    let nameless = Request::builder()
        .uri("/healthz")
        .body(Body::empty())
        .expect("a request");
    assert_eq!(api.send(nameless).await.status(), 400);
    let twice = Request::builder()
        .uri("/healthz")
        .header("host", "localhost")
        .header("host", "evil.example")
        .body(Body::empty())
        .expect("a request");
    assert_eq!(api.send(twice).await.status(), 400);
}

#[tokio::test]
async fn routes_require_tokens_by_role() {
    let api = Api::with_tokens(vec![
        Token::new("look", TokenRole::Viewer, "v-secret"),
        Token::new("ci", TokenRole::Operator, "o-secret"),
    ]);
    let body = r#"{"profile":"none"}"#;
    for (method, token, status) in [
        ("GET", None, 401),
        ("GET", Some("Bearer wrong"), 401),
        ("GET", Some("Bearer v-secret"), 200),
        ("PUT", Some("Bearer v-secret"), 403),
        ("PUT", Some("Bearer o-secret"), 200),
    ] {
        let mut headers = vec![
            ("host", "squall.example"),
            ("content-type", "application/json"),
        ];
        headers.extend(token.map(|token| ("authorization", token)));
        let answer = api.ask(method, "/v1/chaos", &headers, body).await;
        assert_eq!(answer.status, status, "{method} {token:?}");
        if status == 401 {
            assert_eq!(answer.header("www-authenticate"), "Bearer");
            answer.problem(401, "unauthenticated");
        }
        assert!(!String::from_utf8_lossy(&answer.body).contains("secret"));
    }
    let viewer = [
        ("host", "squall.example"),
        ("authorization", "Bearer v-secret"),
    ];
    let caller = api.ask("GET", "/v1/caller", &viewer, "").await.json();
    let expected = serde_json::json!({
        "token": "look", "role": "viewer", "workspace": "default", "default_scope": "default", "fleet": false,
    });
    assert_eq!(caller, expected);
    for path in ["/healthz", "/readyz", "/metrics", "/ca.pem", "/proxy.pac"] {
        assert_eq!(api.get(path).await.status, 200, "{path}");
    }
}

#[tokio::test]
async fn failed_authentication_is_limited_and_valid_tokens_are_admitted() {
    let api = Api::with_tokens(vec![Token::new("ops", TokenRole::Operator, "good")]);
    let ask = async |secret: &str| {
        let bearer = format!("Bearer {secret}");
        let answer = api
            .ask("GET", "/v1/chaos", &[("authorization", &bearer)], "")
            .await;
        (answer.status, answer.headers.contains_key("retry-after"))
    };
    for _ in 0..FAILURES_AT_ONCE {
        assert_eq!(ask("guess").await, (401, false));
    }
    assert_eq!(ask("guess").await, (429, true));
    assert_eq!(ask("good").await, (200, false));
}
