//! The caller itself: what its token allows.

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::Serialize;

use crate::access::{Caller, TokenRole};
use crate::problem::ApiProblem;
use crate::query::Params;
use crate::state::ApiState;

/// The caller of a request.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Caller")]
pub(super) struct CallerLine {
    /// Name of its token; `null` when no token is required.
    token: Option<String>,
    /// Its role; `admin` when no token is required.
    #[schemars(with = "TokenRole")]
    role: &'static str,
    /// Its workspace.
    workspace: String,
    /// The scope of `/v1/chaos` for it.
    default_scope: String,
    /// Whether the daemon belongs to a fleet.
    fleet: bool,
}

/// The caller's token, role and workspace.
pub(super) async fn show(
    State(state): State<ApiState>,
    caller: Caller,
    params: Params,
) -> Result<Json<CallerLine>, ApiProblem> {
    params.finish()?;
    Ok(Json(CallerLine {
        token: caller.token_name().map(str::to_owned),
        role: caller.role().as_str(),
        workspace: caller.workspace().to_owned(),
        default_scope: caller.default_scope().to_owned(),
        fleet: state.fleet.is_some(),
    }))
}
