//! The daemon itself: how it does, what it counts, how to point programs at it.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_TYPE, HOST};
use http::{HeaderMap, HeaderValue};
use serde_json::{Value, json};

use crate::ApiState;
use crate::problem::Problem;

/// The process answers.
pub(super) async fn healthz() -> Json<Value> {
    Json(json!({ "status": "ok" }))
}

/// Traffic can come in; files that are broken are named either way.
pub(super) async fn readyz(State(state): State<ApiState>) -> Result<Json<Value>, Problem> {
    let readiness = (state.readiness)();
    let mut details = json!(readiness);
    if !readiness.ready {
        return Err(Problem::not_ready("the listeners are not up").with_more(details));
    }
    details["status"] = json!("ready");
    Ok(Json(details))
}

/// Prometheus' text format.
pub(super) async fn metrics(State(state): State<ApiState>) -> Result<Response, Problem> {
    state.settled().await;
    let text = state
        .metrics
        .render()
        .map_err(|error| Problem::internal(error.to_string()))?;
    Ok(typed("text/plain; version=0.0.4; charset=utf-8", text))
}

/// The interception CA's certificate.
pub(super) async fn ca_pem(State(state): State<ApiState>) -> Response {
    typed("application/x-pem-file", (state.ca_pem)())
}

/// What browsers and operating systems are pointed at: everything goes through the proxy.
pub(super) async fn proxy_pac(State(state): State<ApiState>, headers: HeaderMap) -> Response {
    let proxy = match state.proxy.ip() {
        // The proxy is wherever the API was reached.
        address if address.is_unspecified() => {
            let host = headers
                .get(HOST)
                .and_then(|host| host.to_str().ok())
                .unwrap_or("127.0.0.1");
            let host = match host.rfind(':') {
                Some(colon) if !host[colon..].contains(']') => &host[..colon],
                _ => host,
            };
            format!("{host}:{}", state.proxy.port())
        }
        _ => state.proxy.to_string(),
    };
    let script = format!(
        "function FindProxyForURL(url, host) {{ return {}; }}\n",
        json!(format!("PROXY {proxy}"))
    );
    typed("application/x-ns-proxy-autoconfig", script)
}

fn typed(content_type: &'static str, body: impl IntoResponse) -> Response {
    let mut response = body.into_response();
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
