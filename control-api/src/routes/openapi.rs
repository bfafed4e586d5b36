//! The API's description of itself.

use std::sync::OnceLock;

use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::HeaderValue;
use http::header::CONTENT_TYPE;
use serde_json::Value;

use super::table;
use crate::openapi::{JSON, Operation, document};

/// The OpenAPI document of every route. It is made when it is first asked for.
pub(super) async fn show() -> Response {
    static TEXT: OnceLock<Bytes> = OnceLock::new();
    let text = TEXT.get_or_init(|| description().to_string().into());
    let content_type = [(CONTENT_TYPE, HeaderValue::from_static(JSON))];
    (content_type, text.clone()).into_response()
}

pub(super) fn description() -> Value {
    let routes = table().into_iter();
    document(routes.map(|route| (route.rule, (route.operation)())))
}

pub(super) fn show_operation() -> Operation {
    Operation::new("openapi", "This description, OpenAPI 3.1").answers::<Value>(200, "OpenAPI 3.1")
}
