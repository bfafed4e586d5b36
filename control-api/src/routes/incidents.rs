//! What failed in a run, as replay sessions.

use axum::Json;
use axum::extract::State;

use super::path::Name;
use super::runs::find;
use crate::access::Caller;
use crate::page::{self, Page};
use crate::problem::Problem;
use crate::query::Params;
use crate::runs::incidents::{self, Incident};
use crate::state::ApiState;
use crate::tasks;

/// How far behind the first a page may begin.
const FURTHEST: usize = 1_000_000_000;

/// The invocations of a run that failed, in the order of its cells.
pub(super) async fn list(
    State(state): State<ApiState>,
    caller: Caller,
    Name(id): Name,
    mut params: Params,
) -> Result<Json<Page<Incident>>, Problem> {
    let limit = page::limit(&mut params);
    // Incidents only ever come behind others: how many came before says where a page begins.
    let before = page::cursor(&mut params, |cursor| {
        cursor.parse().ok().filter(|before| *before <= FURTHEST)
    });
    params.finish()?;
    let run = find(&state, &caller, &id).await?;
    let recorded = state.profiles.store().run_exchanges(&run.id).await?;
    let mut items = tasks::blocking(move || incidents::of(&run, &recorded)).await;
    let before = before.unwrap_or(0).min(items.len());
    items.drain(..before);
    let next_cursor = (items.len() > limit).then(|| (before + limit).to_string());
    items.truncate(limit);
    Ok(Json(Page { items, next_cursor }))
}
