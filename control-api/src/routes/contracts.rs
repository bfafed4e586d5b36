//! Contracts: a suite's `contract:` block under a name of its own.

use axum::Extension;
use axum::Json;
use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, StatusCode};

use super::documents::{self, Documents, Listed};
use super::path::DocumentName;
use crate::ApiState;
use crate::access::Caller;
use crate::document::Document;
use crate::openapi::Operation;
use crate::page::Page;
use crate::problem::Problem;
use crate::query::Params;
use crate::runs::documents::ContractDocument;
use crate::store::DocumentKind;

/// Contracts by name.
pub(super) async fn list(
    State(state): State<ApiState>,
    Extension(caller): Extension<Caller>,
    params: Params,
) -> Result<Json<Page<Listed>>, Problem> {
    let contracts = Documents::of(&state, &caller, DocumentKind::Contract);
    contracts.list(params).await
}

pub(super) fn list_operation() -> Operation {
    Operation::new("list_contracts", "Contracts by name")
        .pages::<Listed>("Contracts")
        .asks_store()
}

/// One contract.
pub(super) async fn show(
    State(state): State<ApiState>,
    Extension(caller): Extension<Caller>,
    DocumentName(name): DocumentName,
    params: Params,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let contracts = Documents::of(&state, &caller, DocumentKind::Contract);
    contracts.show(&name, params, &headers).await
}

pub(super) fn show_operation() -> Operation {
    let operation = Operation::new(
        "show_contract",
        "One contract, as the document it was written as",
    );
    documents::shown::<ContractDocument>(operation)
}

/// Puts a contract; runs that are under way keep the version they began with.
pub(super) async fn put(
    State(state): State<ApiState>,
    Extension(caller): Extension<Caller>,
    DocumentName(name): DocumentName,
    params: Params,
    headers: HeaderMap,
    document: Document,
) -> Result<Response, Problem> {
    let contracts = Documents::of(&state, &caller, DocumentKind::Contract);
    contracts.put(name, params, headers, document).await
}

pub(super) fn put_operation() -> Operation {
    documents::taken::<ContractDocument>(Operation::new(
        "put_contract",
        "Puts a contract, as its newest version",
    ))
}

/// Deletes a contract; its versions stay.
pub(super) async fn delete(
    State(state): State<ApiState>,
    Extension(caller): Extension<Caller>,
    DocumentName(name): DocumentName,
    params: Params,
    headers: HeaderMap,
) -> Result<StatusCode, Problem> {
    let contracts = Documents::of(&state, &caller, DocumentKind::Contract);
    contracts.delete(name, params, headers).await
}

pub(super) fn delete_operation() -> Operation {
    documents::deleted(Operation::new("delete_contract", "Deletes a contract"))
}
