//! Runs: create, list, show, approve and cancel.

pub(crate) mod order;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header::LOCATION;
use http::{HeaderValue, StatusCode};
use squall_harness::run::{ComparisonRecord, DocumentVersion, RunKind, RunRecord, RunState};
use squall_harness::scores;

use super::path::Name;
use crate::access::Caller;
use crate::document::RequestDocument;
use crate::page::{self, ListPage};
use crate::problem::{ApiProblem, ProblemDetail};
use crate::query::Params;
use crate::runs::{self, RunOrder};
use crate::state::ApiState;
use crate::store::RunFilter;
use crate::tasks;

/// States for the filter.
const STATES: &str =
    "queued, awaiting_approval, running, passed, failed, inconclusive, errored or cancelled";
const KINDS: &str = "chaos, contract, mutation, replay, explore, load, ci or verify";

/// Runs, newest first.
pub(super) async fn list(
    State(state): State<ApiState>,
    caller: Caller,
    mut params: Params,
) -> Result<Json<ListPage<RunRecord>>, ApiProblem> {
    let limit = page::limit(&mut params);
    let filter = RunFilter {
        state: params.read("state", STATES, RunState::parse),
        kind: params.read("kind", KINDS, RunKind::parse),
        name: params.take("suite"),
        part_of: params.take("part_of"),
        before: page::before_id(&mut params).map(|id| id.to_string()),
    };
    params.finish()?;
    let found = (state.runs.list(caller.workspace(), &filter, limit + 1)).await?;
    let Json(page) = page::newest(found, limit, |last| last.id.clone());
    Ok(Json(ListPage {
        items: page.items.into_iter().map(without_cells).collect(),
        next_cursor: page.next_cursor,
    }))
}

/// Lists leave out what grows with the invocations: cells, distributions, and the points of explorations.
fn without_cells(mut run: RunRecord) -> RunRecord {
    run.cells.clear();
    run.distributions.clear();
    run.exploration = None;
    run
}

/// Creates a run.
pub(super) async fn create(
    State(state): State<ApiState>,
    caller: Caller,
    params: Params,
    document: RequestDocument,
) -> Result<Response, ApiProblem> {
    params.finish()?;
    let spec = order::read(&state, caller.workspace(), &document).await?;
    if spec.spreads {
        can_be_spread(&state, &spec.name).await?;
    }
    let order = RunOrder {
        workspace: caller.workspace(),
        by: caller.token_name(),
        posted: spec.spreads.then_some(&document.text),
        spec,
        is_approved: false,
    };
    let run = state.runs.add(order).await?;
    caller.changed(None, Some(&run), describe(&run));
    let location = format!("/v1/runs/{}", run.id);
    let location = HeaderValue::from_str(&location).expect("hex digits are a header value");
    Ok((StatusCode::CREATED, [(LOCATION, location)], Json(run)).into_response())
}

/// Fails if no daemon would execute the scenarios of a spread run.
async fn can_be_spread(state: &ApiState, suite: &str) -> Result<(), ApiProblem> {
    let Some(fleet) = &state.fleet else {
        return Err(ApiProblem::conflict(
            "a run is spread over daemons that share a PostgreSQL, and this one has a store of its own; leave \
             `spread` out, or send the run to a daemon of a fleet",
        ));
    };
    if fleet.is_taken(suite).await? {
        return Ok(());
    }
    Err(ApiProblem::conflict(format!(
        "no daemon of the fleet executes scenarios of the suite `{suite}`; leave `spread` out, or list the suite in \
         `fleet.runs` of the daemons' configurations"
    )))
}

/// One run.
pub(super) async fn show(
    State(state): State<ApiState>,
    caller: Caller,
    Name(id): Name,
    params: Params,
) -> Result<Json<RunRecord>, ApiProblem> {
    params.finish()?;
    find(&state, &caller, &id).await.map(Json)
}

/// A finished run compared with an earlier one.
pub(super) async fn compare(
    State(state): State<ApiState>,
    caller: Caller,
    Name(id): Name,
    mut params: Params,
) -> Result<Json<ComparisonRecord>, ApiProblem> {
    let with = params.take("with");
    params.finish()?;
    let now = find(&state, &caller, &id).await?;
    let with = with.ok_or_else(|| {
        let error = ProblemDetail::parameter(
            "with",
            "`with` is missing; write `?with=` and the id of a run",
        );
        ApiProblem::malformed(error.detail.clone()).with_errors(vec![error])
    })?;
    let before = find(&state, &caller, &with).await?;
    if let Some(run) = [&before, &now].into_iter().find(|run| !run.state.is_over()) {
        let run_state = run.state.as_str();
        let detail = format!(
            "the run `{}` is {run_state}; there is nothing to compare yet",
            run.id
        );
        return Err(ApiProblem::conflict(detail));
    }
    Ok(Json(
        tasks::blocking(move || scores::of_runs(&before, &now)).await,
    ))
}

/// Approves a run that awaits approval.
pub(super) async fn approve(
    State(state): State<ApiState>,
    caller: Caller,
    Name(id): Name,
    params: Params,
) -> Result<Json<RunRecord>, ApiProblem> {
    params.finish()?;
    // A run that cannot be read can be approved all the same.
    let before = find(&state, &caller, &id).await.ok();
    let by = caller.token_name();
    let run = state.runs.approve(caller.workspace(), &id, by).await?;
    caller.changed(before.as_ref(), Some(&run), describe(&run));
    Ok(Json(run))
}

/// Cancels a run, its chaos first.
pub(super) async fn cancel(
    State(state): State<ApiState>,
    caller: Caller,
    Name(id): Name,
    params: Params,
) -> Result<Json<RunRecord>, ApiProblem> {
    params.finish()?;
    let (before, run) = state.runs.cancel(caller.workspace(), &id).await?;
    caller.changed(Some(&before), Some(&run), describe(&run));
    Ok(Json(run))
}

/// A run, for the audit log.
fn describe(run: &RunRecord) -> String {
    let version = |one: &DocumentVersion| {
        let version = one.shown_version().map(|version| format!(" v{version}"));
        format!(
            ", {} `{}`{}",
            one.kind,
            one.name,
            version.unwrap_or_default()
        )
    };
    let documents: String = run.documents.iter().map(version).collect();
    let (kind, state) = (run.kind.as_str(), run.state.as_str());
    format!("run {}, {kind} `{}`, {state}{documents}", run.id, run.name)
}

/// A run of the caller's workspace.
pub(super) async fn find(
    state: &ApiState,
    caller: &Caller,
    id: &str,
) -> Result<RunRecord, ApiProblem> {
    let found = state.runs.find(caller.workspace(), id).await?;
    found.ok_or_else(|| runs::unknown(id))
}

/// Ids of the runs that the exchanges in a run's evidence belong to: the run, or the one that it is part of, and the
/// interrupted runs that it continues.
pub(super) async fn with_continued(
    state: &ApiState,
    caller: &Caller,
    run: &RunRecord,
) -> Result<Vec<String>, ApiProblem> {
    let resumed = |run: &RunRecord| run.exploration.as_ref()?.resumed.clone();
    let mut ids = vec![run.whole().to_owned()];
    let mut next = resumed(run);
    while let Some(id) = next.take() {
        if let Some(earlier) = state.runs.find(caller.workspace(), &id).await? {
            next = resumed(&earlier);
            ids.push(id);
        }
    }
    Ok(ids)
}
