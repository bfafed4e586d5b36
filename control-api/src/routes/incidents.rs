//! Failed invocations of a run, as replay sessions.

use axum::Json;
use axum::extract::State;

use super::path::Name;
use super::runs::{find, with_continued};
use crate::access::Caller;
use crate::page::{self, ListPage};
use crate::problem::ApiProblem;
use crate::query::Params;
use crate::runs::incidents::{self, Incident};
use crate::state::ApiState;
use crate::tasks;

/// Greatest offset of a page.
const FURTHEST: usize = 1_000_000_000;

/// The failed invocations of a run, in the order of its cells.
pub(super) async fn list(
    State(state): State<ApiState>,
    caller: Caller,
    Name(id): Name,
    mut params: Params,
) -> Result<Json<ListPage<Incident>>, ApiProblem> {
    let limit = page::limit(&mut params);
    // Incidents are only ever appended, so a cursor can be the number of previous ones.
    let before = page::cursor(&mut params, |cursor| {
        cursor.parse().ok().filter(|before| *before <= FURTHEST)
    });
    params.finish()?;
    let run = find(&state, &caller, &id).await?;
    let mut recorded = Vec::new();
    for id in with_continued(&state, &caller, &run).await? {
        recorded.extend(state.store.run_exchanges(&id).await?);
    }
    let mut items = tasks::blocking(move || incidents::of(&run, &recorded)).await;
    let before = before.unwrap_or(0).min(items.len());
    items.drain(..before);
    let next_cursor = (items.len() > limit).then(|| (before + limit).to_string());
    items.truncate(limit);
    Ok(Json(ListPage { items, next_cursor }))
}
