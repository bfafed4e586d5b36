use std::sync::Arc;

use squall_control_api::{BrokenFile, Readiness, router};
use tower::ServiceExt;

use crate::bench::Api;

#[tokio::test]
async fn the_daemon_says_that_it_lives_and_what_listens() {
    let api = Api::new();
    assert_eq!(
        api.get("/healthz").await.json(),
        serde_json::json!({ "status": "ok" })
    );
    let ready = api.get("/readyz").await;
    assert_eq!(ready.status, 200);
    assert_eq!(
        ready.json(),
        serde_json::json!({
            "status": "ready",
            "listeners": [{ "name": "proxy", "address": "127.0.0.1:7070" }],
            "broken": [],
        })
    );
}

#[tokio::test]
async fn broken_files_are_named_whether_traffic_comes_in_or_not() {
    let mut state = Api::new().state;
    for (ready, status) in [(true, 200), (false, 503)] {
        state.readiness = Arc::new(move || Readiness {
            ready,
            listeners: Vec::new(),
            broken: vec![BrokenFile {
                file: "p.yaml".into(),
                error: "p.yaml:3:1: what".into(),
            }],
        });
        let request = http::Request::builder()
            .uri("/readyz")
            .header("host", "localhost")
            .body(axum::body::Body::empty())
            .expect("a request");
        let response = router(state.clone())
            .oneshot(request)
            .await
            .expect("an answer");
        assert_eq!(response.status(), status);
        let body = http_body_util::BodyExt::collect(response.into_body())
            .await
            .expect("a body");
        let body: serde_json::Value = serde_json::from_slice(&body.to_bytes()).expect("JSON");
        assert_eq!(body["broken"][0]["error"], "p.yaml:3:1: what", "{body}");
    }
}

#[tokio::test]
#[rustfmt::skip]
async fn files_for_clients_have_their_types() {
    let api = Api::new();
    for (path, content_type, begins) in [
        ("/metrics", "text/plain; version=0.0.4; charset=utf-8", "# HELP squall_"),
        ("/ca.pem", "application/x-pem-file", "-----BEGIN CERTIFICATE-----"),
        ("/proxy.pac", "application/x-ns-proxy-autoconfig", "function FindProxyForURL"),
    ] {
        let answer = api.get(path).await;
        assert_eq!(
            (answer.status, answer.header("content-type")),
            (200, content_type),
            "{path}"
        );
        assert!(answer.body.starts_with(begins.as_bytes()), "{path}");
    }
    let pac = api.get("/proxy.pac").await;
    assert!(String::from_utf8_lossy(&pac.body).contains("\"PROXY 127.0.0.1:7070\""));
}

#[tokio::test]
async fn a_proxy_on_every_address_is_where_the_api_was_reached() {
    let mut api = Api::new();
    api.state.proxy = "0.0.0.0:9000".parse().expect("an address");
    let request = http::Request::builder()
        .uri("/proxy.pac")
        .header("host", "[::1]:7071")
        .body(axum::body::Body::empty())
        .expect("a request");
    let response = router(api.state).oneshot(request).await.expect("an answer");
    let body = http_body_util::BodyExt::collect(response.into_body())
        .await
        .expect("a body");
    assert!(String::from_utf8_lossy(&body.to_bytes()).contains("\"PROXY [::1]:9000\""));
}
