//! Reports of runs, in the requested format.

use std::time::Instant;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::HeaderValue;
use http::header::{CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use squall_harness::report::{Report, ReportFormat, page_policy, wanted};
use squall_harness::run::RunRecord;
use squall_journal::record::ExchangeRecord;
use squall_journal::timestamp;

use super::path::Name;
use super::runs::{find, with_continued};
use crate::access::Caller;
use crate::problem::ApiProblem;
use crate::query::Params;
use crate::state::ApiState;
use crate::tasks;

/// The report of a finished run.
pub(super) async fn show(
    State(state): State<ApiState>,
    caller: Caller,
    Name(id): Name,
    mut params: Params,
) -> Result<Response, ApiProblem> {
    let format = params.read(
        "format",
        "html, json, junit, markdown or jsonl",
        ReportFormat::parse,
    );
    params.finish()?;
    let format = format.unwrap_or(ReportFormat::Json);
    let run = find(&state, &caller, &id).await?;
    if !run.state.is_over() {
        return Err(ApiProblem::conflict(format!(
            "the run is {}; its report exists once it is over; /v1/runs/{{id}}/events reports the end",
            run.state.as_str()
        )));
    }
    let exchanges = exchanges(&state, &caller, &run).await?;
    let id = run.id.clone();
    let text = tasks::blocking(move || {
        let made_at = timestamp::rfc3339(state.recorder.unix_ms(Instant::now()));
        let redactor = state.recorder.redactor();
        Report::new(run, exchanges, made_at, redactor).render(format)
    })
    .await;
    Ok(answer(&id, format, text))
}

/// Exchanges in the run's evidence, from memory or the store.
async fn exchanges(
    state: &ApiState,
    caller: &Caller,
    run: &RunRecord,
) -> Result<Vec<ExchangeRecord>, ApiProblem> {
    state.settled().await;
    let runs = with_continued(state, caller, run).await?;
    let mut found = Vec::new();
    for id in wanted(run).iter().filter_map(|id| id.parse().ok()) {
        match (state.recorder.exchange(id), &state.journal) {
            (Some(note), _) => found.push(note.to_record()),
            (None, Some(journal)) => found.extend(journal.exchange(id).await?),
            (None, None) => {}
        }
    }
    // A report shows only exchanges of the run and of those that it continues, even if its evidence lists others.
    found.retain(|exchange| exchange.run.as_ref().is_some_and(|id| runs.contains(id)));
    Ok(found)
}

fn answer(id: &str, format: ReportFormat, text: String) -> Response {
    let file = format!("inline; filename=\"squall-{id}.{}\"", format.extension());
    let file = HeaderValue::from_str(&file).unwrap_or(HeaderValue::from_static("inline"));
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static(format.media_type())),
        (CONTENT_DISPOSITION, file),
    ];
    let mut response = (headers, text).into_response();
    if format == ReportFormat::Html {
        let policy = HeaderValue::from_str(&page_policy()).expect("ASCII");
        response
            .headers_mut()
            .insert(CONTENT_SECURITY_POLICY, policy);
    }
    response
}
