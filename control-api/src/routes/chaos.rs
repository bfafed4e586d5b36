//! Chaos in force.

use axum::Json;
use axum::extract::State;
use http::{HeaderMap, StatusCode};
use schemars::JsonSchema;
use serde::Serialize;
use squall_journal::activation::ActivationRecord;
use squall_profiles::profile::NONE;
use squall_proxy::chaos::{PutError, RuleSource};

use super::path::Scope;
use super::{chaos_request, versions};
use crate::access::Caller;
use crate::document::RequestDocument;
use crate::nearest::no_profile;
use crate::page::{self, ListPage};
use crate::problem::ApiProblem;
use crate::query::Params;
use crate::state::ApiState;
use crate::store::DEFAULT_WORKSPACE;

/// Chaos in force for a scope in one daemon.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "InForce")]
pub(super) struct InForce {
    #[serde(flatten)]
    record: ActivationRecord,
    /// Id of that daemon, the same after a restart.
    daemon: String,
}

impl InForce {
    fn of(state: &ApiState, record: ActivationRecord) -> Self {
        let daemon = state.runs.daemon().to_owned();
        Self { record, daemon }
    }
}

/// Ends the default scope's chaos; with `all=true` that of every scope at once. A workspace's token ends the
/// chaos of its workspace.
pub(super) async fn end_default(
    State(state): State<ApiState>,
    caller: Caller,
    mut params: Params,
) -> Result<StatusCode, ApiProblem> {
    let all = params.switch("all");
    params.finish()?;
    if !all {
        end_one(&state, &caller, caller.default_scope());
        return Ok(StatusCode::NO_CONTENT);
    }
    let before = in_force(&state, &caller);
    if caller.is_of_default_workspace() {
        state.chaos.end_all(None);
    } else {
        state.chaos.end_all_of(caller.workspace());
    }
    let which: Vec<_> = before
        .iter()
        .map(|one| format!("{} under {}", one.scope, one.profile))
        .collect();
    let detail = match which.as_slice() {
        [] => "there was nothing to end".to_owned(),
        which => format!("all chaos has ended: {}", which.join(", ")),
    };
    caller.changed(Some(&before), Some(&in_force(&state, &caller)), detail);
    Ok(StatusCode::NO_CONTENT)
}

/// The activations that the caller can end at once.
fn in_force(state: &ApiState, caller: &Caller) -> Vec<ActivationRecord> {
    let mut listed = state.chaos.list();
    listed.retain(|one| {
        let is_ended = caller.is_of_default_workspace() || caller.scopes().hold(&one.scope);
        is_ended && !one.inherited && one.profile != NONE
    });
    listed
}

/// Known scopes: those with chaos of their own, and those seen under the default scope.
pub(super) async fn list(
    State(state): State<ApiState>,
    caller: Caller,
    mut params: Params,
) -> Result<Json<ListPage<InForce>>, ApiProblem> {
    let limit = page::limit(&mut params);
    let after = page::after_name(&mut params);
    params.finish()?;
    let (mut scopes, seen) = (state.chaos.list(), caller.scopes());
    scopes.retain(|scope| seen.hold(&scope.scope));
    // A workspace's default scope is always listed.
    let own = caller.default_scope();
    if !scopes.iter().any(|scope| scope.scope == own) {
        scopes.push(state.chaos.look(own));
    }
    scopes.sort_unstable_by(|a, b| a.scope.cmp(&b.scope));
    let scopes = scopes.into_iter().map(|record| InForce::of(&state, record));
    Ok(page::by_name(
        scopes.collect(),
        |scope: &InForce| &scope.record.scope,
        after.as_deref(),
        limit,
    ))
}

/// The chaos in force for one scope: its own or inherited.
pub(super) async fn show(
    State(state): State<ApiState>,
    Scope(scope): Scope,
    params: Params,
) -> Result<Json<InForce>, ApiProblem> {
    params.finish()?;
    Ok(Json(InForce::of(&state, state.chaos.look(&scope))))
}

/// Puts chaos in force for one scope, and replaces what was in force.
pub(super) async fn put(
    State(state): State<ApiState>,
    caller: Caller,
    Scope(scope): Scope,
    params: Params,
    headers: HeaderMap,
    document: RequestDocument,
) -> Result<Json<InForce>, ApiProblem> {
    params.finish()?;
    versions::check_unversioned(&headers, "what is in force")?;
    let (mut request, has_profile) = document.fields(|fields| {
        let request = chaos_request::read(fields, &state.trust)?;
        Some((request, fields.has("profile")))
    })?;
    request.rules = seen_by(&caller, request.rules);
    check_extends(&caller, &request.rules)?;
    let before = state.chaos.look(&scope);
    match state.chaos.put(&scope, request) {
        Ok(record) => {
            let detail = format!("profile {}, seed {}", record.profile, record.seed);
            caller.changed(Some(&before), Some(&record), detail);
            Ok(Json(InForce::of(&state, record)))
        }
        Err(PutError::UnknownProfile(name)) => {
            let detail = no_profile(&state.library(caller.workspace()), &name);
            Err(ApiProblem::invalid_at("/profile", detail))
        }
        Err(PutError::Profile(error)) => {
            let pointer = if has_profile { "/profile" } else { "/chaos" };
            Err(ApiProblem::invalid_at(pointer, error.to_string()))
        }
        Err(PutError::Quota(over)) => Err(ApiProblem::conflict(over.to_string())),
    }
}

fn end_one(state: &ApiState, caller: &Caller, scope: &str) {
    let before = state.chaos.look(scope);
    let detail = if state.chaos.end(scope) {
        format!("profile {} has ended", before.profile)
    } else {
        "there was nothing to end".to_owned()
    };
    caller.changed(Some(&before), Some(&state.chaos.look(scope)), detail);
}

/// A profile's name is looked up in the caller's workspace.
fn seen_by(caller: &Caller, rules: RuleSource) -> RuleSource {
    match (caller.workspace(), rules) {
        (DEFAULT_WORKSPACE, rules) => rules,
        (workspace, RuleSource::Profile(profile)) => RuleSource::OfWorkspace {
            workspace: workspace.to_owned(),
            profile,
        },
        (_, rules) => rules,
    }
}

/// What an inline profile extends is looked up in the default workspace, so other workspaces may not use it.
fn check_extends(caller: &Caller, rules: &RuleSource) -> Result<(), ApiProblem> {
    let extends = matches!(rules, RuleSource::Inline(profile) if !profile.extends.is_empty());
    if !extends || caller.is_of_default_workspace() {
        return Ok(());
    }
    let detail =
        "in a workspace a profile that is not stored extends none; put it, and name it here";
    Err(ApiProblem::invalid_at("/profile/extends", detail))
}

/// Ends one scope's own chaos; it then inherits again.
pub(super) async fn end(
    State(state): State<ApiState>,
    caller: Caller,
    Scope(scope): Scope,
    params: Params,
) -> Result<StatusCode, ApiProblem> {
    params.finish()?;
    end_one(&state, &caller, &scope);
    Ok(StatusCode::NO_CONTENT)
}
