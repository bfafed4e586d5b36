//! Chaos in force.

use axum::Json;
use axum::extract::State;
use http::{HeaderMap, StatusCode};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use squall_journal::activation::ActivationRecord;
use squall_profiles::profile::NONE;
use squall_proxy::chaos::{ChaosRequest, PutError, RuleSource};

use super::path::Scope;
use super::versions;
use crate::access::Caller;
use crate::chaos_request;
use crate::document::RequestDocument;
use crate::nearest::no_profile;
use crate::page::{self, ListPage};
use crate::problem::ApiProblem;
use crate::query::Params;
use crate::state::ApiState;
use crate::store::{ALL_SCOPES, FleetSwitch};

/// Chaos in force for a scope in one daemon.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "InForce")]
pub(super) struct InForce {
    #[serde(flatten)]
    record: ActivationRecord,
    /// Id of that daemon, the same after a restart.
    daemon: String,
    /// The token that switched it, `-` without tokens; `null` if it was no request to this daemon since its start.
    by: Option<String>,
}

impl InForce {
    fn of(state: &ApiState, record: ActivationRecord) -> Self {
        let daemon = state.runs.daemon().to_owned();
        let by = state.switchers.of(&record);
        Self { record, daemon, by }
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
    let fleet = params.switch("fleet");
    params.finish()?;
    if !all {
        let scope = caller.default_scope();
        end_one(&state, &caller, scope);
        return ended(&state, &caller, scope, fleet).await;
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
    ended(&state, &caller, ALL_SCOPES, fleet).await
}

/// After the chaos of a scope has ended here: ends it in the other daemons too, for a request with `fleet`. It then has
/// ended here even if the store is away.
async fn ended(
    state: &ApiState,
    caller: &Caller,
    scope: &str,
    fleet: bool,
) -> Result<StatusCode, ApiProblem> {
    let Some(fleet) = state.fleet.as_ref().filter(|_| fleet) else {
        return Ok(StatusCode::NO_CONTENT);
    };
    let switch = FleetSwitch {
        workspace: caller.workspace(),
        scope,
        body: None,
        actor: caller.name(),
        ttl: None,
    };
    let entry = caller.entry(state.audit.now());
    let switched = async {
        state.store.switch_fleet(&switch, entry.as_ref()).await?;
        caller.set_written();
        // Later requests must not be undone by this one.
        fleet.sync().await
    };
    switched.await.map_err(|error| {
        ApiProblem::not_ready(format!(
            "chaos has ended in this daemon, but perhaps not in the others: {error}; repeat the request"
        ))
    })?;
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
    mut params: Params,
    headers: HeaderMap,
    document: RequestDocument,
) -> Result<Json<InForce>, ApiProblem> {
    let is_fleets = params.switch("fleet");
    params.finish()?;
    versions::check_unversioned(&headers, "what is in force")?;
    let (mut request, has_profile) = document.fields(|fields| {
        let request = chaos_request::read(fields, &state.trust)?;
        Some((request, fields.has("profile")))
    })?;
    request.rules = chaos_request::of_workspace(caller.workspace(), request.rules);
    check_extends(&caller, &request.rules)?;
    let before = state.chaos.look(&scope);
    let put = if is_fleets {
        put_for_fleet(&state, &caller, &scope, &document, &request).await?
    } else {
        state.chaos.put(&scope, request)
    };
    match put {
        Ok(record) => {
            if !is_fleets {
                let detail = format!("profile {}, seed {}", record.profile, record.seed);
                caller.changed(Some(&before), Some(&record), detail);
            }
            state.switchers.add(&state.chaos, &record, caller.name());
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

/// Puts chaos in force in every daemon of the fleet; returns when this one has applied it.
async fn put_for_fleet(
    state: &ApiState,
    caller: &Caller,
    scope: &str,
    document: &RequestDocument,
    request: &ChaosRequest,
) -> Result<Result<ActivationRecord, PutError>, ApiProblem> {
    let Some(fleet) = &state.fleet else {
        return Err(ApiProblem::conflict(format!(
            "daemons that share a PostgreSQL form a fleet, and this one's store is {}; set `store.url`",
            state.store.place()
        )));
    };
    let mut body = document.tree()?.value.to_json();
    let secrets = body.as_object_mut().and_then(|body| body.remove("secrets"));
    if secrets.is_some_and(|secrets| secrets != json!({})) {
        let detail = "the store has the fleet's chaos, and never values of variables: set them in each daemon's \
                      environment, and list them in `api.env`";
        return Err(ApiProblem::invalid_at("/secrets", detail));
    }
    if let Err(error) = state.chaos.check(scope, request) {
        return Ok(Err(error));
    }
    let seed = request.seed.unwrap_or_else(|| state.chaos.seed());
    body["seed"] = json!(seed);
    body["ttl"] = Value::Null;
    let detail = format!(
        "profile {}, seed {seed}, for the fleet",
        request.rules.name()
    );
    caller.changed(None, Some(&body), detail);
    let switch = FleetSwitch {
        workspace: caller.workspace(),
        scope,
        body: Some(&body.to_string()),
        actor: caller.name(),
        ttl: [request.ttl, state.chaos.longest()]
            .into_iter()
            .flatten()
            .min(),
    };
    let entry = caller.entry(state.audit.now());
    state.store.switch_fleet(&switch, entry.as_ref()).await?;
    caller.set_written();
    if let Err(error) = fleet.sync().await {
        tracing::warn!("the fleet's chaos is written, and not yet applied here: {error}");
    }
    Ok(Ok(state.chaos.look(scope)))
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
    mut params: Params,
) -> Result<StatusCode, ApiProblem> {
    let fleet = params.switch("fleet");
    params.finish()?;
    end_one(&state, &caller, &scope);
    ended(&state, &caller, &scope, fleet).await
}
