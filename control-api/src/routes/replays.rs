//! Replay sessions: incidents, and the answers that were recorded with them.

use axum::Extension;
use axum::Json;
use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, StatusCode};
use serde_json::Value;

use super::documents::{self, Documents, Listed};
use super::path::DocumentName;
use crate::ApiState;
use crate::access::Caller;
use crate::document::LongDocument;
use crate::openapi::Operation;
use crate::page::Page;
use crate::problem::{Detail, Problem};
use crate::query::Params;
use crate::runs::documents::ReplayDocument;
use crate::store::DocumentKind;

/// Replay sessions by id.
pub(super) async fn list(
    State(state): State<ApiState>,
    Extension(caller): Extension<Caller>,
    params: Params,
) -> Result<Json<Page<Listed>>, Problem> {
    let replays = Documents::of(&state, &caller, DocumentKind::Replay);
    replays.list(params).await
}

pub(super) fn list_operation() -> Operation {
    Operation::new("list_replays", "Replay sessions by id")
        .pages::<Listed>("Replays")
        .asks_store()
}

/// One replay session.
pub(super) async fn show(
    State(state): State<ApiState>,
    Extension(caller): Extension<Caller>,
    DocumentName(name): DocumentName,
    params: Params,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let replays = Documents::of(&state, &caller, DocumentKind::Replay);
    replays.show(&name, params, &headers).await
}

pub(super) fn show_operation() -> Operation {
    let operation = Operation::new(
        "show_replay",
        "One replay session, as the document it was written as",
    );
    documents::shown::<ReplayDocument>(operation)
}

/// Puts a replay; runs that are under way keep the version they began with.
pub(super) async fn put(
    State(state): State<ApiState>,
    Extension(caller): Extension<Caller>,
    DocumentName(name): DocumentName,
    params: Params,
    headers: HeaderMap,
    LongDocument(document): LongDocument,
) -> Result<Response, Problem> {
    let tree = document.tree()?;
    let named = tree.get("id").and_then(Value::as_str);
    if let Some(named) = named.filter(|named| *named != name) {
        let named: String = named.chars().take(64).collect();
        let detail = format!("the document names the session `{named}`, the path `{name}`");
        return Err(Problem::invalid(vec![Detail::at("/id", detail)]));
    }
    let replays = Documents::of(&state, &caller, DocumentKind::Replay);
    replays.put(name, params, headers, document).await
}

pub(super) fn put_operation() -> Operation {
    documents::taken::<ReplayDocument>(Operation::new(
        "put_replay",
        "Puts a replay session, as its newest version",
    ))
}

/// Deletes a replay session; its versions stay.
pub(super) async fn delete(
    State(state): State<ApiState>,
    Extension(caller): Extension<Caller>,
    DocumentName(name): DocumentName,
    params: Params,
    headers: HeaderMap,
) -> Result<StatusCode, Problem> {
    let replays = Documents::of(&state, &caller, DocumentKind::Replay);
    replays.delete(name, params, headers).await
}

pub(super) fn delete_operation() -> Operation {
    documents::deleted(Operation::new("delete_replay", "Deletes a replay session"))
}
