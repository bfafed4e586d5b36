//! The daemon: health, metrics, the CA and the proxy's address for clients.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_TYPE, HOST};
use http::{HeaderMap, HeaderValue};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use crate::problem::ApiProblem;
use crate::readiness::Readiness;
use crate::state::ApiState;

/// The daemon responds.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Health {
    /// `ok`.
    status: &'static str,
}

/// Readiness, with listeners and broken files.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Readiness")]
pub(super) struct Ready {
    #[serde(flatten)]
    readiness: Readiness,
    /// `ready`.
    status: &'static str,
}

/// Reports that the process responds.
pub(super) async fn healthz() -> Json<Health> {
    Json(Health { status: "ok" })
}

/// Reports whether traffic is accepted; the response lists broken files either way.
pub(super) async fn readyz(State(state): State<ApiState>) -> Result<Json<Ready>, ApiProblem> {
    let readiness = (state.readiness)();
    if !readiness.ready {
        let details = json!(readiness);
        return Err(ApiProblem::not_ready("the listeners are not up").with_more(details));
    }
    Ok(Json(Ready {
        readiness,
        status: "ready",
    }))
}

/// Prometheus' text format.
pub(super) async fn metrics(State(state): State<ApiState>) -> Result<Response, ApiProblem> {
    state.settled().await;
    let text = state
        .metrics
        .render()
        .map_err(|error| ApiProblem::internal(error.to_string()))?;
    Ok(typed(PROMETHEUS, text))
}

const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The interception CA's certificate.
pub(super) async fn ca_pem(State(state): State<ApiState>) -> Response {
    typed(PEM, (state.ca_pem)())
}

const PEM: &str = "application/x-pem-file";

/// Proxy auto-configuration for browsers and operating systems: all traffic uses the proxy.
pub(super) async fn proxy_pac(State(state): State<ApiState>, headers: HeaderMap) -> Response {
    let proxy = match state.proxy.ip() {
        // Bound to all addresses, the proxy is reachable at the host of this request.
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
    typed(PAC, script)
}

const PAC: &str = "application/x-ns-proxy-autoconfig";

fn typed(content_type: &'static str, body: impl IntoResponse) -> Response {
    let mut response = body.into_response();
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
