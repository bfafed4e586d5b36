//! What is in force.

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use squall_journal::activation::ActivationRecord;
use squall_proxy::chaos::{DEFAULT_SCOPE, PutError, Wanted};

use super::chaos_request;
use super::path::Scope;
use crate::ApiState;
use crate::document::Document;
use crate::nearest::nearest;
use crate::openapi::Operation;
use crate::page::{self, Page};
use crate::problem::{Detail, Problem};
use crate::query::Params;

/// What is in force for everything that is in no named scope.
pub(super) async fn show_default(
    state: State<ApiState>,
    params: Params,
) -> Result<Json<ActivationRecord>, Problem> {
    show(state, Scope(DEFAULT_SCOPE.to_owned()), params).await
}

pub(super) fn show_default_operation() -> Operation {
    Operation::new(
        "show_chaos",
        "What is in force for everything that is in no named scope",
    )
    .answers::<ActivationRecord>(200, "What is in force")
}

/// Puts chaos in force for everything that is in no named scope.
pub(super) async fn put_default(
    state: State<ApiState>,
    params: Params,
    document: Document,
) -> Result<Json<ActivationRecord>, Problem> {
    put(state, Scope(DEFAULT_SCOPE.to_owned()), params, document).await
}

pub(super) fn put_default_operation() -> Operation {
    Operation::new(
        "put_chaos",
        "Puts chaos in force for everything that is in no named scope",
    )
    .takes::<chaos_request::ChaosRequest>()
    .answers::<ActivationRecord>(200, "What is in force from now on")
}

/// Ends the default scope's chaos; with `all=true` every scope's, in one swap.
pub(super) async fn end_default(
    State(state): State<ApiState>,
    mut params: Params,
) -> Result<StatusCode, Problem> {
    let all = params.switch("all");
    params.finish()?;
    if all {
        state.chaos.end_all(None);
    } else {
        state.chaos.end(DEFAULT_SCOPE);
    }
    Ok(StatusCode::NO_CONTENT)
}

pub(super) fn end_default_operation() -> Operation {
    Operation::new(
        "end_chaos",
        "Ends the default scope's chaos, or every scope's",
    )
    .query::<bool>("all", "Ends every scope's, in one swap")
    .empty(204, "There is none any more, or there was none")
}

/// Scopes that are known: those with chaos of their own and those seen under the default one.
pub(super) async fn list(
    State(state): State<ApiState>,
    mut params: Params,
) -> Result<Json<Page<ActivationRecord>>, Problem> {
    let limit = page::limit(&mut params);
    let cursor = params.take("cursor");
    params.finish()?;
    let mut scopes = state.chaos.list();
    scopes.sort_unstable_by(|a, b| a.scope.cmp(&b.scope));
    Ok(page::by_name(
        scopes,
        |scope| &scope.scope,
        cursor.as_deref(),
        limit,
    ))
}

pub(super) fn list_operation() -> Operation {
    Operation::new("list_scopes", "Scopes that are known, by name")
        .pages::<ActivationRecord>("What is in force for each")
}

/// What is in force for one scope, its own or the default one's.
pub(super) async fn show(
    State(state): State<ApiState>,
    Scope(scope): Scope,
    params: Params,
) -> Result<Json<ActivationRecord>, Problem> {
    params.finish()?;
    Ok(Json(state.chaos.look(&scope)))
}

pub(super) fn show_operation() -> Operation {
    Operation::new(
        "show_scope_chaos",
        "What is in force for one scope, its own or the default one's",
    )
    .answers::<ActivationRecord>(200, "What is in force")
}

/// Puts chaos in force for one scope, in place of what was there.
pub(super) async fn put(
    State(state): State<ApiState>,
    Scope(scope): Scope,
    params: Params,
    document: Document,
) -> Result<Json<ActivationRecord>, Problem> {
    params.finish()?;
    let sent = document.value()?;
    let request = state
        .trust
        .variables(|variables| chaos_request::read(&sent, variables))
        .map_err(Problem::invalid)?;
    let is_inline = matches!(request.rules, Wanted::Inline(_));
    state.chaos.read_vocabularies(&request.rules).await;
    match state.chaos.put(&scope, request) {
        Ok(record) => Ok(Json(record)),
        Err(PutError::UnknownProfile(name)) => {
            let library = state.chaos.library();
            let listed = library.list();
            let names = listed.iter().map(|profile| profile.name.as_str());
            let mut detail = format!("there is no profile `{name}`");
            if let Some(nearest) = nearest(&name, names) {
                detail = format!("{detail}, did you mean `{nearest}`?");
            }
            Err(Problem::invalid(vec![Detail::at("/profile", detail)]))
        }
        Err(PutError::Profile(error)) => {
            let pointer = if is_inline { "/chaos" } else { "/profile" };
            Err(Problem::invalid(vec![Detail::at(
                pointer,
                error.to_string(),
            )]))
        }
    }
}

pub(super) fn put_operation() -> Operation {
    Operation::new(
        "put_scope_chaos",
        "Puts chaos in force for one scope, in place of what was there",
    )
    .takes::<chaos_request::ChaosRequest>()
    .answers::<ActivationRecord>(200, "What is in force from now on")
}

/// Ends one scope's own chaos: it is under the default one again.
pub(super) async fn end(
    State(state): State<ApiState>,
    Scope(scope): Scope,
    params: Params,
) -> Result<StatusCode, Problem> {
    params.finish()?;
    state.chaos.end(&scope);
    Ok(StatusCode::NO_CONTENT)
}

pub(super) fn end_operation() -> Operation {
    Operation::new(
        "end_scope_chaos",
        "Ends one scope's own chaos: it is under the default one again",
    )
    .empty(204, "It has none of its own any more, or had none")
}
