//! What failed in a run, as replay sessions.

use axum::extract::State;
use axum::{Extension, Json};
use schemars::JsonSchema;

use super::path::RunName;
use super::runs::unknown;
use crate::ApiState;
use crate::access::Caller;
use crate::openapi::Operation;
use crate::page::{self, Page};
use crate::problem::Problem;
use crate::query::Params;
use crate::runs::incidents::{self, Incident};

/// What the parameter `cursor` may be.
#[derive(JsonSchema)]
#[schemars(inline)]
#[expect(dead_code, reason = "says what `cursor` takes")]
struct Before(#[schemars(range(min = 0, max = FURTHEST))] u32);

/// How far behind the first a page may begin.
const FURTHEST: usize = 1_000_000_000;

/// The invocations of a run that failed, in the order of its cells.
pub(super) async fn list(
    State(state): State<ApiState>,
    Extension(caller): Extension<Caller>,
    RunName(id): RunName,
    mut params: Params,
) -> Result<Json<Page<Incident>>, Problem> {
    let limit = page::limit(&mut params);
    // Incidents only ever come behind others: how many came before says where a page begins.
    let before = page::cursor(&mut params, |cursor| {
        cursor.parse().ok().filter(|before| *before <= FURTHEST)
    });
    params.finish()?;
    let found = state.runs.find(caller.workspace(), &id).await;
    let run = found.map_err(|error| Problem::store(&error))?;
    let run = run.ok_or_else(|| unknown(&id))?;
    let recorded = state.profiles.store().run_exchanges(&run.id).await;
    let recorded = recorded.map_err(|error| Problem::store(&error))?;
    // Megabytes are not made where everybody waits.
    let made = tokio::task::spawn_blocking(move || incidents::of(&run, &recorded)).await;
    let mut items = made.map_err(|error| {
        Problem::internal(format!("the sessions of the run cannot be made: {error}"))
    })?;
    let before = before.unwrap_or(0).min(items.len());
    items.drain(..before);
    let next_cursor = (items.len() > limit).then(|| (before + limit).to_string());
    items.truncate(limit);
    Ok(Json(Page { items, next_cursor }))
}

pub(super) fn list_operation() -> Operation {
    Operation::new("list_run_incidents", "What failed in a run, as replay sessions")
        .about(
            "One for each invocation that failed: what the agent was asked, what it was answered on the way (answers that \
             faults made are among them), and which demands it did not meet. Of a run that is not over, those so far.",
        )
        .pages_by::<Before, Incident>("Its failed invocations")
        .problems([404])
        .asks_store()
}
