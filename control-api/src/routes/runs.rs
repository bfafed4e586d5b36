//! Runs: create, list, show, approve and cancel.

mod order;

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header::LOCATION;
use http::{HeaderMap, HeaderValue, StatusCode};
use squall_harness::run::{DocumentVersion, RunKind, RunRecord, RunState};

use super::path::Name;
use super::run_events;
use crate::access::Caller;
use crate::document::Document;
use crate::page::{self, Page};
use crate::problem::Problem;
use crate::query::Params;
use crate::runs::{NotAdded, NotChanged};
use crate::state::ApiState;
use crate::store::RunFilter;

/// `Retry-After` while too many runs are unfinished.
const FULL: Duration = Duration::from_secs(5);

/// States for the filter.
const STATES: &str =
    "queued, awaiting_approval, running, passed, failed, inconclusive, errored or cancelled";
const KINDS: &str = "chaos, contract, mutation, replay, ci or verify";

/// Runs, newest first.
pub(super) async fn list(
    State(state): State<ApiState>,
    caller: Caller,
    mut params: Params,
) -> Result<Json<Page<RunRecord>>, Problem> {
    let limit = page::limit(&mut params);
    let filter = RunFilter {
        state: params.read("state", STATES, RunState::parse),
        kind: params.read("kind", KINDS, RunKind::parse),
        before: page::before_id(&mut params).map(|id| id.to_string()),
    };
    params.finish()?;
    let found = (state.runs.list(caller.workspace(), &filter, limit + 1)).await?;
    let Json(page) = page::newest(found, limit, |last| last.id.clone());
    Ok(Json(Page {
        items: page.items.into_iter().map(without_cells).collect(),
        next_cursor: page.next_cursor,
    }))
}

/// Lists leave out cells: they hold all evidence.
fn without_cells(mut run: RunRecord) -> RunRecord {
    run.cells.clear();
    run
}

/// Creates a run.
pub(super) async fn create(
    State(state): State<ApiState>,
    caller: Caller,
    params: Params,
    document: Document,
) -> Result<Response, Problem> {
    params.finish()?;
    let posted = document.tree()?;
    let spec = order::read(&state, &caller, &posted).await?;
    let added = state.runs.add(caller.workspace(), spec).await;
    let run = added.map_err(|error| match error {
        NotAdded::Wrong(wrong) => Problem::invalid(wrong),
        NotAdded::Full(over) => Problem::too_many(over.to_string(), FULL),
        NotAdded::Store(error) => error.into(),
    })?;
    caller.changed(None, Some(&run), told(&run));
    let location = format!("/v1/runs/{}", run.id);
    let location = HeaderValue::from_str(&location).expect("hex digits are a header value");
    Ok((StatusCode::CREATED, [(LOCATION, location)], Json(run)).into_response())
}

/// One run.
pub(super) async fn show(
    State(state): State<ApiState>,
    caller: Caller,
    Name(id): Name,
    params: Params,
) -> Result<Json<RunRecord>, Problem> {
    params.finish()?;
    find(&state, &caller, &id).await.map(Json)
}

/// Approves a run that awaits approval.
pub(super) async fn approve(
    State(state): State<ApiState>,
    caller: Caller,
    Name(id): Name,
    params: Params,
) -> Result<Json<RunRecord>, Problem> {
    params.finish()?;
    // A run that cannot be read can be approved all the same.
    let before = find(&state, &caller, &id).await.ok();
    let approved = state
        .runs
        .approve(caller.workspace(), &id, caller.token_name())
        .await;
    let run = approved.map_err(|error| not_changed(error, &id))?;
    caller.changed(before.as_ref(), Some(&run), told(&run));
    Ok(Json(run))
}

/// Cancels a run, its chaos first.
pub(super) async fn cancel(
    State(state): State<ApiState>,
    caller: Caller,
    Name(id): Name,
    params: Params,
) -> Result<Json<RunRecord>, Problem> {
    params.finish()?;
    let cancelled = state.runs.cancel(caller.workspace(), &id).await;
    let (before, run) = cancelled.map_err(|error| not_changed(error, &id))?;
    caller.changed(Some(&before), Some(&run), told(&run));
    Ok(Json(run))
}

/// The events of a run, from its beginning.
pub(super) async fn events(
    state: State<ApiState>,
    caller: Caller,
    Name(id): Name,
    params: Params,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    params.finish()?;
    let run = find(&state, &caller, &id).await?;
    Ok(run_events::stream(&state, &caller, run, &headers).into_response())
}

/// A run, for the audit log.
fn told(run: &RunRecord) -> String {
    let told = |one: &DocumentVersion| {
        let version = one.told_version().map(|version| format!(" v{version}"));
        format!(
            ", {} `{}`{}",
            one.kind,
            one.name,
            version.unwrap_or_default()
        )
    };
    let documents: String = run.documents.iter().map(told).collect();
    let (kind, state) = (run.kind.as_str(), run.state.as_str());
    format!("run {}, {kind} `{}`, {state}{documents}", run.id, run.name)
}

/// A run of the caller's workspace.
pub(super) async fn find(
    state: &ApiState,
    caller: &Caller,
    id: &str,
) -> Result<RunRecord, Problem> {
    let found = state.runs.find(caller.workspace(), id).await?;
    found.ok_or_else(|| unknown(id))
}

fn unknown(id: &str) -> Problem {
    let shown: String = id.chars().take(40).collect();
    Problem::not_found(format!("there is no run `{shown}`"))
}

fn not_changed(error: NotChanged, id: &str) -> Problem {
    match error {
        NotChanged::Unknown => unknown(id),
        NotChanged::Conflict(why) => Problem::conflict(why),
        NotChanged::Store(error) => error.into(),
    }
}
