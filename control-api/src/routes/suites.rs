//! Suites: an agent, what it is asked, and what is demanded of its answers.

use axum::Extension;
use axum::Json;
use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, StatusCode};

use super::documents::{self, Documents, Listed};
use super::path::DocumentName;
use crate::ApiState;
use crate::access::Caller;
use crate::document::{Document, SUITE_WITH_VARIABLES, WithVariables};
use crate::openapi::Operation;
use crate::page::Page;
use crate::problem::Problem;
use crate::query::Params;
use crate::runs::documents::SuiteDocument;
use crate::store::DocumentKind;

/// Suites by name.
pub(super) async fn list(
    State(state): State<ApiState>,
    Extension(caller): Extension<Caller>,
    params: Params,
) -> Result<Json<Page<Listed>>, Problem> {
    let suites = Documents::of(&state, &caller, DocumentKind::Suite);
    suites.list(params).await
}

pub(super) fn list_operation() -> Operation {
    Operation::new("list_suites", "Suites by name")
        .pages::<Listed>("Suites")
        .asks_store()
}

/// One suite.
pub(super) async fn show(
    State(state): State<ApiState>,
    Extension(caller): Extension<Caller>,
    DocumentName(name): DocumentName,
    params: Params,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let suites = Documents::of(&state, &caller, DocumentKind::Suite);
    suites.show(&name, params, &headers).await
}

pub(super) fn show_operation() -> Operation {
    let operation = Operation::new("show_suite", "One suite, as the document it was written as");
    documents::shown::<SuiteDocument>(operation)
}

/// Puts a suite; runs that are under way keep the version they began with.
pub(super) async fn put(
    State(state): State<ApiState>,
    Extension(caller): Extension<Caller>,
    DocumentName(name): DocumentName,
    params: Params,
    headers: HeaderMap,
    document: Document,
) -> Result<Response, Problem> {
    let suites = Documents::of(&state, &caller, DocumentKind::Suite);
    suites.put(name, params, headers, document).await
}

pub(super) fn put_operation() -> Operation {
    documents::taken::<SuiteDocument>(Operation::new(
        "put_suite",
        "Puts a suite, as its newest version",
    ))
    .takes_as::<WithVariables>(SUITE_WITH_VARIABLES)
}

/// Deletes a suite; its versions stay.
pub(super) async fn delete(
    State(state): State<ApiState>,
    Extension(caller): Extension<Caller>,
    DocumentName(name): DocumentName,
    params: Params,
    headers: HeaderMap,
) -> Result<StatusCode, Problem> {
    let suites = Documents::of(&state, &caller, DocumentKind::Suite);
    suites.delete(name, params, headers).await
}

pub(super) fn delete_operation() -> Operation {
    documents::deleted(Operation::new("delete_suite", "Deletes a suite"))
}
