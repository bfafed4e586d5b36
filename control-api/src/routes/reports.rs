//! What a run came to, in the form that is asked for.

use std::time::Instant;

use axum::Extension;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::HeaderValue;
use http::header::{
    CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use squall_harness::report::{Format, Report, page_policy, wanted};
use squall_harness::run::{RunRecord, RunState};
use squall_journal::id::ExchangeId;
use squall_journal::record::ExchangeRecord;
use squall_journal::timestamp;

use super::path::RunName;
use super::runs::unknown;
use crate::ApiState;
use crate::access::Caller;
use crate::openapi::Operation;
use crate::problem::Problem;
use crate::query::Params;

/// The report of a run that is over.
pub(super) async fn show(
    State(state): State<ApiState>,
    Extension(caller): Extension<Caller>,
    RunName(id): RunName,
    mut params: Params,
) -> Result<Response, Problem> {
    let format = params.read("format", "html, json, junit or markdown", Format::parse);
    params.finish()?;
    let format = format.unwrap_or(Format::Json);
    let found = state.runs.find(caller.workspace(), &id).await;
    let found = found.map_err(|error| Problem::store(&error))?;
    let run = found.ok_or_else(|| unknown(&id))?;
    if !run.state.is_over() {
        return Err(not_over(run.state));
    }
    let exchanges = exchanges(&state, &run).await?;
    let id = run.id.clone();
    // Pages of megabytes are not made where everybody waits.
    let drawn = tokio::task::spawn_blocking(move || {
        let made_at = timestamp::rfc3339(state.recorder.unix_ms(Instant::now()));
        let redactor = state.recorder.redactor();
        Report::new(run, exchanges, made_at, redactor).render(format)
    });
    let text = drawn
        .await
        .map_err(|error| Problem::internal(format!("the report could not be drawn: {error}")))?;
    Ok(answer(&id, format, text))
}

pub(super) fn show_operation() -> Operation {
    Operation::new("show_run_report", "What a run that is over came to")
        .about(
            "The run with the exchanges that its evidence names, at most 1,000: those of failed cells first. `html` is a \
             page that needs nothing from elsewhere and runs nothing, `junit` has a test case for each cell, `markdown` \
             fits a comment on a pull request.",
        )
        .query::<Format>("format", "Its form; `json` if absent")
        .answers::<Report>(200, "The report")
        .or_as::<String>("text/html")
        .or_as::<String>("application/xml")
        .or_as::<String>("text/markdown")
        .problems([404, 409])
        .asks_store()
}

fn not_over(state: RunState) -> Problem {
    Problem::conflict(format!(
        "the run is {}; its report is there when it is over, which /v1/runs/{{id}}/events tells",
        state.as_str()
    ))
}

/// Exchanges of the run that its evidence names, from memory or from the store.
async fn exchanges(state: &ApiState, run: &RunRecord) -> Result<Vec<ExchangeRecord>, Problem> {
    state.settled().await;
    let (mut found, mut elsewhere) = (Vec::new(), Vec::new());
    for id in wanted(run).iter().filter_map(|id| id.parse().ok()) {
        match state.recorder.exchange(id) {
            Some(note) => found.push(note.to_record()),
            None => elsewhere.push(id),
        }
    }
    found.extend(stored(state, &elsewhere).await?);
    // A run tells of its own traffic only, whatever its evidence says.
    found.retain(|exchange| exchange.run.as_ref() == Some(&run.id));
    Ok(found)
}

async fn stored(state: &ApiState, ids: &[ExchangeId]) -> Result<Vec<ExchangeRecord>, Problem> {
    match &state.journal {
        Some(journal) if !ids.is_empty() => {
            let stored = journal.exchanges(ids).await;
            stored.map_err(|error| Problem::store(&error))
        }
        _ => Ok(Vec::new()),
    }
}

fn answer(id: &str, format: Format, text: String) -> Response {
    let file = format!("inline; filename=\"squall-{id}.{}\"", format.extension());
    let file = HeaderValue::from_str(&file).unwrap_or(HeaderValue::from_static("inline"));
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static(format.media_type())),
        (CONTENT_DISPOSITION, file),
        (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    ];
    let mut response = (headers, text).into_response();
    if format == Format::Html {
        let policy = HeaderValue::from_str(&page_policy()).expect("ASCII");
        response
            .headers_mut()
            .insert(CONTENT_SECURITY_POLICY, policy);
    }
    response
}
