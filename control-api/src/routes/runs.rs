//! Runs: asked for, watched, approved, ended.

mod order;

use std::time::Duration;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use http::header::LOCATION;
use http::{HeaderMap, HeaderValue, StatusCode};
use serde_json::{Value, json};
use squall_harness::run::{DocumentVersion, RunKind, RunRecord, RunState};

use super::events::Sent;
use super::path::RunName;
use super::run_events;
use crate::ApiState;
use crate::access::Caller;
use crate::document::Document;
use crate::openapi::{ExchangeIdText, Operation};
use crate::page::{self, Page};
use crate::problem::Problem;
use crate::query::Params;
use crate::runs::{NotAdded, NotChanged};
use crate::store::RunFilter;

/// When it is worth another try, while too many runs are not over.
const FULL: Duration = Duration::from_secs(5);

/// What runs can be filtered by.
const STATES: &str =
    "queued, awaiting_approval, running, passed, failed, inconclusive, errored or cancelled";
const KINDS: &str = "chaos, contract, mutation, replay, ci or verify";

/// Runs, newest first.
pub(super) async fn list(
    State(state): State<ApiState>,
    Extension(caller): Extension<Caller>,
    mut params: Params,
) -> Result<Json<Page<Value>>, Problem> {
    let limit = page::limit(&mut params);
    let filter = RunFilter {
        state: params.read("state", STATES, RunState::parse),
        kind: params.read("kind", KINDS, RunKind::parse),
        before: page::before_id(&mut params).map(|id| id.to_string()),
    };
    params.finish()?;
    let found = state
        .runs
        .list(caller.workspace(), &filter, limit + 1)
        .await;
    let mut found = found.map_err(|error| Problem::store(&error))?;
    let more = found.len() > limit;
    found.truncate(limit);
    let next_cursor = found.last().filter(|_| more).map(|last| last.id.clone());
    let items = found.into_iter().map(without_cells).collect();
    Ok(Json(Page { items, next_cursor }))
}

pub(super) fn list_operation() -> Operation {
    Operation::new("list_runs", "Runs, newest first, without their cells")
        .query::<RunState>("state", "Only those in this state")
        .query::<RunKind>("kind", "Only those of this kind")
        .pages_by::<ExchangeIdText, RunRecord>("Runs")
        .asks_store()
}

/// A list would be as long as all evidence together.
fn without_cells(mut run: RunRecord) -> Value {
    run.cells.clear();
    let mut run = serde_json::json!(run);
    if let Some(members) = run.as_object_mut() {
        members.shift_remove("cells");
    }
    run
}

/// Takes a run.
pub(super) async fn create(
    State(state): State<ApiState>,
    Extension(caller): Extension<Caller>,
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
        NotAdded::Store(error) => Problem::store(&error),
    })?;
    caller.changed(None, Some(&run), told(&run));
    let location = format!("/v1/runs/{}", run.id);
    let location = HeaderValue::from_str(&location).expect("hex digits are a header value");
    Ok((StatusCode::CREATED, [(LOCATION, location)], Json(run)).into_response())
}

pub(super) fn create_operation() -> Operation {
    Operation::new("create_run", "Takes a run: it is written down and queued")
        .takes::<order::RunRequest>()
        .example(json!({
            "kind": "chaos",
            "suite": {
                "agent": { "endpoint": "http://127.0.0.1:9/" },
                "golden_prompts": ["What is the weather in Paris?"],
                "invariants": [{ "type": "completes" }],
            },
            "options": { "profile": "high_latency" },
        }))
        .answers::<RunRecord>(201, "It is queued, or waits for approval")
        .with("Location", "Where it is shown")
        .problems([429])
        .asks_store()
}

/// One run.
pub(super) async fn show(
    State(state): State<ApiState>,
    Extension(caller): Extension<Caller>,
    RunName(id): RunName,
    params: Params,
) -> Result<Json<RunRecord>, Problem> {
    params.finish()?;
    let found = state.runs.find(caller.workspace(), &id).await;
    let found = found.map_err(|error| Problem::store(&error))?;
    found.map(Json).ok_or_else(|| unknown(&id))
}

pub(super) fn show_operation() -> Operation {
    Operation::new("show_run", "One run, with its cells and their evidence")
        .answers::<RunRecord>(200, "The run")
        .problems([404])
        .asks_store()
}

/// Says yes to a run that waits for it.
pub(super) async fn approve(
    State(state): State<ApiState>,
    Extension(caller): Extension<Caller>,
    RunName(id): RunName,
    params: Params,
) -> Result<Json<RunRecord>, Problem> {
    params.finish()?;
    let before = before(&state, &caller, &id).await;
    let approved = state
        .runs
        .approve(caller.workspace(), &id, caller.token_name())
        .await;
    let run = approved.map_err(|error| not_changed(error, &id))?;
    caller.changed(before.as_ref(), Some(&run), told(&run));
    Ok(Json(run))
}

pub(super) fn approve_operation() -> Operation {
    Operation::new("approve_run", "Says yes to a run that waits for it")
        .answers::<RunRecord>(200, "It runs; where too many do, it waits for its turn")
        .problems([404, 409])
        .asks_store()
}

/// Ends a run, its chaos first.
pub(super) async fn cancel(
    State(state): State<ApiState>,
    Extension(caller): Extension<Caller>,
    RunName(id): RunName,
    params: Params,
) -> Result<Json<RunRecord>, Problem> {
    params.finish()?;
    let cancelled = state.runs.cancel(caller.workspace(), &id).await;
    let (before, run) = cancelled.map_err(|error| not_changed(error, &id))?;
    caller.changed(Some(&before), Some(&run), told(&run));
    Ok(Json(run))
}

pub(super) fn cancel_operation() -> Operation {
    Operation::new("cancel_run", "Ends a run, its chaos first")
        .answers::<RunRecord>(200, "It is cancelled, or its end is being written")
        .problems([404, 409])
        .asks_store()
}

/// What happens in a run, from its beginning.
pub(super) async fn events(
    state: State<ApiState>,
    caller: Extension<Caller>,
    RunName(id): RunName,
    params: Params,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    params.finish()?;
    let found = state.runs.find(caller.workspace(), &id).await;
    let found = found.map_err(|error| Problem::store(&error))?;
    let run = found.ok_or_else(|| unknown(&id))?;
    Ok(run_events::stream(&state, &caller, run, &headers).into_response())
}

pub(super) fn events_operation() -> Operation {
    Operation::new(
        "stream_run_events",
        "What happens in a run, from its beginning, as server-sent events",
    )
    .about(
        "`state`: it has come to another state. `progress`: `done` askings of the agent `of` so many. \
         `cell`: a cell that was judged. `score`: its scores. `done`: it is over, and so is the stream.",
    )
    .header::<String>("Last-Event-ID", "Goes on after this event; from the beginning if absent")
    .answers_as::<Sent<run_events::Name>>(200, "text/event-stream", "Events, and a comment at least every 15 seconds")
    .problems([404])
    .asks_store()
}

/// A run before it is changed. No reason to refuse that where it cannot be read.
async fn before(state: &ApiState, caller: &Caller, id: &str) -> Option<RunRecord> {
    state.runs.find(caller.workspace(), id).await.ok().flatten()
}

/// Which run, for the audit log.
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

pub(super) fn unknown(id: &str) -> Problem {
    let shown: String = id.chars().take(40).collect();
    Problem::not_found(format!("there is no run `{shown}`"))
}

fn not_changed(error: NotChanged, id: &str) -> Problem {
    match error {
        NotChanged::Unknown => unknown(id),
        NotChanged::Conflict(why) => Problem::conflict(why),
        NotChanged::Store(error) => Problem::store(&error),
    }
}
