//! One run: its progress while it lasts, then its report.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::Path;
use axum::response::IntoResponse as _;
use axum::response::sse::{Event, KeepAlive, Sse};
use http::Method;
use maud::{Markup, html};
use serde_json::Value;
use squall_harness::report::{self, Report, ReportFormat};
use squall_harness::run::{CellRecord, RunKind, RunRecord, RunState};
use tokio::time::{Instant, timeout_at};

use super::live::event;
use super::runs::{one, path, state, time};
use crate::api::{ApiError, Events, encoded, with_query};
use crate::layout;
use crate::text;
use crate::visit::{PageContent, PageResult, Visit, see_other};

/// Time between two updates of a page.
const INTERVAL: Duration = Duration::from_millis(300);

pub(crate) async fn show(visit: Visit, Path(id): Path<String>) -> PageResult {
    let run = one(&visit.api, &id).await?;
    let body = if run.state.is_over() {
        over(&report_of(&visit, &id).await?)
    } else {
        html! {
            div #run sse-connect={ (path(&id)) "/stream" } {
                span hidden sse-swap="done" hx-target="#run" hx-swap="outerHTML" {}
                div sse-swap="run" hx-swap="morph:innerHTML" { (so_far(&visit, &run, None)) }
            }
        }
    };
    Ok(PageContent {
        title: run.name,
        nav: "/runs",
        assets: &["report.css"],
        body,
    }
    .into_response())
}

async fn report_of(visit: &Visit, id: &str) -> Result<Report, ApiError> {
    let path = format!("/v1/runs/{}/report?format=json", encoded(id));
    visit.api.get(&path).await
}

/// A run that is over, with its report.
fn over(found: &Report) -> Markup {
    let run = &found.run;
    let sections = report::html::sections(found);
    html! {
        div #run {
            (facts(run))
            div.report { (report::html::lead(run)) }
            div.actions {
                @for (name, _) in ReportFormat::NAMES {
                    a.button.quiet href={ (path(&run.id)) "/report?format=" (name) } download[*name != "html"] {
                        @if *name == "html" { "Report" } @else { (name) }
                    }
                }
                a.button.quiet href=(with_query("/runs/trend", &[("suite", &run.name)])) { "Trend of the suite" }
            }
            div.report {
                @for (id, heading, part) in sections { section aria-labelledby=(id) { h2 id=(id) { (heading) } (part) } }
            }
        }
    }
}

fn facts(run: &RunRecord) -> Markup {
    html! {
        p {
            @if !run.state.is_over() { (state(run.state)) " " }
            (run.kind.as_str()) " · seed " (run.seed) " · created " (time(&run.created_at)) " UTC"
            @if let Some(by) = &run.created_by { " by " (by) }
            @if let Some(by) = &run.approved_by { " · approved by " (by) }
            " · " a href=(with_query("/live", &[("run", &run.id)])) { "exchanges" }
        }
    }
}

/// A run that is not over; `progress` has the finished and all invocations.
fn so_far(visit: &Visit, run: &RunRecord, progress: Option<(u64, u64)>) -> Markup {
    let path = path(&run.id);
    let may_approve = run.state == RunState::AwaitingApproval;
    html! {
        (facts(run))
        @if visit.caller.may_change() {
            div.actions {
                @if may_approve {
                    form method="post" action={ (path) "/approve" } { (layout::csrf(visit)) button { "Approve" } }
                }
                form method="post" action={ (path) "/cancel" } { (layout::csrf(visit)) button.quiet { "Cancel" } }
            }
        }
        @if let Some(reason) = &run.reason { p.note { (text::marked(reason)) } }
        p #progress role="status" {
            @match (run.state, progress) {
                (RunState::AwaitingApproval, _) => "The run waits for an approval.",
                (RunState::Queued, _) => "The run waits for its turn.",
                (_, Some((done, of))) => { "Invocation " (text::number(done)) " of " (text::number(of)) },
                _ => "The run has started.",
            }
        }
        @if let Some((done, of)) = progress { progress value=(done) max=(of.max(1)) aria-labelledby="progress" {} }
        div.report { (report::html::so_far(run)) }
        @if !run.cells.is_empty() { p.soft { "The evidence of the cells appears when the run is over." } }
    }
}

/// A run as its events describe it.
struct FollowedRun {
    visit: Visit,
    events: Events,
    run: RunRecord,
    progress: Option<(u64, u64)>,
    next: Instant,
    is_over: bool,
}

/// Server-sent events: `run`, its progress and matrix; `done`, its report when it is over.
pub(crate) async fn stream(visit: Visit, Path(id): Path<String>) -> PageResult {
    let run = one(&visit.api, &id).await?;
    let events = format!("/v1/runs/{}/events", encoded(&id));
    let following = FollowedRun {
        events: visit.api.events(&events).await?,
        // The events have all cells.
        run: RunRecord {
            cells: Vec::new(),
            ..run
        },
        visit,
        progress: None,
        next: Instant::now(),
        is_over: false,
    };
    let events = futures_util::stream::unfold(following, |mut following| async {
        let event = following.next().await?;
        Some((Ok::<_, Infallible>(event), following))
    });
    Ok(Sse::new(events)
        .keep_alive(KeepAlive::default())
        .into_response())
}

impl FollowedRun {
    async fn next(&mut self) -> Option<Event> {
        if self.is_over {
            return None;
        }
        let mut read = Some(self.events.next().await?);
        while let Some((name, data)) = read {
            if name == "done" {
                self.is_over = true;
                let report = report_of(&self.visit, &self.run.id).await.ok()?;
                return Some(event("done", &over(&report)));
            }
            self.apply(&name, data);
            read = match timeout_at(self.next, self.events.next()).await {
                Ok(read) => Some(read?),
                Err(_) => None,
            };
        }
        self.next = Instant::now() + INTERVAL;
        if self.run.kind == RunKind::Explore
            && let Ok(run) = one(&self.visit.api, &self.run.id).await
        {
            // Events have no exploration.
            self.run.exploration = run.exploration;
        }
        let markup = so_far(&self.visit, &self.run, self.progress);
        Some(event("run", &markup))
    }

    fn apply(&mut self, name: &str, data: Value) {
        match name {
            "state" => {
                let state = data["state"].as_str().and_then(RunState::parse);
                self.run.state = state.unwrap_or(self.run.state);
                self.run.reason = data["reason"].as_str().map(str::to_owned);
            }
            "progress" => self.progress = data["done"].as_u64().zip(data["of"].as_u64()),
            "cell" => {
                if let Ok(cell) = serde_json::from_value::<CellRecord>(data) {
                    // The matrix shows no evidence.
                    self.run.cells.push(CellRecord {
                        evidence: Vec::new(),
                        ..cell
                    });
                }
            }
            _ => {}
        }
    }
}

/// The report in a format, as the API writes it.
pub(crate) async fn report(visit: Visit, Path(id): Path<String>) -> PageResult {
    let report = format!("/v1/runs/{}/report", encoded(&id));
    let format = visit.param("format").unwrap_or("html");
    visit
        .api
        .download(&with_query(&report, &[("format", format)]))
        .await
}

/// Approves or cancels a run.
pub(crate) async fn change(visit: Visit, Path((id, change)): Path<(String, String)>) -> PageResult {
    let api = format!("/v1/runs/{}/{}", encoded(&id), encoded(&change));
    visit.api.send(Method::POST, &api, None).await?;
    Ok(see_other(&path(&id)))
}
