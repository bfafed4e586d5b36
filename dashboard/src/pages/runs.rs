//! Runs: the list, the form that starts one, and the comparison of two.

use axum::response::IntoResponse as _;
use http::{Method, StatusCode};
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::{Value, json};
use squall_harness::report::{html as report, score};
use squall_harness::run::{ComparisonRecord, RunKind, RunRecord, RunState};

use crate::api::{ApiClient, ApiError, List, encoded, with_query};
use crate::layout;
use crate::visit::{PageContent, PageResult, Visit, see_other};

const FILTERS: [&str; 3] = ["suite", "kind", "state"];

/// A name in a list of documents.
#[derive(Debug, Deserialize)]
struct Named {
    name: String,
}

async fn names(api: &ApiClient, kind: &str) -> Result<Vec<String>, ApiError> {
    let list: List<Named> = api.get(&format!("/v1/{kind}?limit=1000")).await?;
    Ok(list.items.into_iter().map(|one| one.name).collect())
}

pub(crate) async fn show(visit: Visit) -> PageResult {
    list(&visit, None).await
}

async fn list(visit: &Visit, error: Option<&ApiError>) -> PageResult {
    let filters = FILTERS.map(|name| visit.param(name).map(|value| (name, value)));
    let mut query: Vec<_> = filters.into_iter().flatten().collect();
    let is_filtered = !query.is_empty();
    let with_cursor = visit.param("cursor").map(|cursor| ("cursor", cursor));
    query.extend(with_cursor);
    let runs: List<RunRecord> = visit.api.get(&with_query("/v1/runs", &query)).await?;
    query.retain(|(name, _)| *name != "cursor");
    if let Some(cursor) = &runs.next_cursor {
        query.push(("cursor", cursor));
    }
    let body = html! {
        @if let Some(error) = error { (layout::problem(error)) }
        @if visit.caller.may_change() { (start_form(visit, error.is_some()).await?) }
        (filter_form(visit, is_filtered))
        @if runs.items.is_empty() {
            p.soft { @if is_filtered { "No run matches." } @else { "There are no runs yet." } }
        } @else {
            form action="/runs/compare" {
                div.scroll role="region" aria-label="Runs" tabindex="0" { (table(&runs.items)) }
                p { button.quiet { "Compare two" } " " span.soft { "Choose two runs that are over." } }
            }
        }
        @if runs.next_cursor.is_some() { p { a href=(with_query("/runs", &query)) { "Older runs" } } }
    };
    let page = PageContent {
        title: "Runs".to_owned(),
        nav: "/runs",
        assets: &[],
        body,
    };
    let status = error.map_or(StatusCode::OK, ApiError::status);
    Ok((status, page).into_response())
}

fn table(runs: &[RunRecord]) -> Markup {
    let has_tokens = runs.iter().any(|run| run.created_by.is_some());
    html! {
        table {
            thead {
                tr {
                    th scope="col" { "Compare" }
                    th scope="col" { "Suite" } th scope="col" { "Kind" } th scope="col" { "Verdict" }
                    th.number scope="col" { "Score" } th.wide scope="col" { "Created (UTC)" }
                    @if has_tokens { th.wide scope="col" { "By" } }
                    th scope="col" { "Trend" }
                }
            }
            tbody {
                @for run in runs {
                    tr {
                        td {
                            @if run.state.is_over() {
                                input type="checkbox" name="run" value=(run.id)
                                    aria-label={ "Compare the run of " (run.name) " of " (time(&run.created_at)) };
                            }
                        }
                        td { a href=(path(&run.id)) { (run.name) } }
                        td { (run.kind.as_str()) }
                        td { (state(run.state)) }
                        td.number { @match run.score { Some(found) => (score(found)), None => "–" } }
                        td.time.wide { (time(&run.created_at)) }
                        @if has_tokens { td.wide { (run.created_by.as_deref().unwrap_or_default()) } }
                        td { a href=(with_query("/runs/trend", &[("suite", &run.name)])) aria-label={ "Trend of " (run.name) } { "Trend" } }
                    }
                }
            }
        }
    }
}

/// The page of a run.
pub(super) fn path(id: &str) -> String {
    format!("/runs/{}", encoded(id))
}

/// A state as a coloured label.
pub(super) fn state(state: RunState) -> Markup {
    let class = match state {
        RunState::Passed => "good",
        RunState::Failed | RunState::Errored => "bad",
        RunState::Running | RunState::AwaitingApproval | RunState::Inconclusive => "on",
        RunState::Queued | RunState::Cancelled => "",
    };
    html! { span class={ "tag " (class) } { (state.as_str().replace('_', " ")) } }
}

/// Date and time of an RFC 3339 time, to the second.
pub(super) fn time(at: &str) -> String {
    at.get(..19).unwrap_or(at).replace('T', " ")
}

fn filter_form(visit: &Visit, is_filtered: bool) -> Markup {
    let value = |name| visit.param(name).unwrap_or_default();
    let kinds = RunKind::NAMES.iter().map(|(name, _)| *name);
    let states = RunState::NAMES.iter().map(|(name, _)| *name);
    html! {
        form.filters action="/runs" role="search" aria-label="Filter runs" {
            label { span { "Suite" } input name="suite" value=(value("suite")) spellcheck="false"; }
            label { span { "Kind" } (choice("kind", "any", kinds, value("kind"))) }
            label { span { "State" } (choice("state", "any", states, value("state"))) }
            button.quiet { "Filter" }
            @if is_filtered { a.button.quiet href="/runs" { "Clear" } }
        }
    }
}

fn choice<'a>(
    name: &str,
    none: &str,
    values: impl Iterator<Item = &'a str>,
    chosen: &str,
) -> Markup {
    html! {
        select name=(name) {
            @if !none.is_empty() { option value="" { (none) } }
            @for value in values {
                option value=(value) selected[value == chosen] { (value.replace('_', " ")) }
            }
        }
    }
}

/// `again` keeps what was entered.
async fn start_form(visit: &Visit, again: bool) -> Result<Markup, ApiError> {
    let suites = names(&visit.api, "suites").await?;
    let profiles = names(&visit.api, "profiles").await?;
    let value = |name| if again { visit.field(name) } else { "" };
    let kinds = RunKind::NAMES.iter().map(|(name, _)| *name);
    let kind = if again { value("kind") } else { "ci" };
    Ok(html! {
        section.card aria-labelledby="start" {
            h2 #start { "Start a run" }
            @if suites.is_empty() {
                p.soft {
                    "No suite is stored. Store one with " code { "curl -T suite.yaml " (origin(visit)) "/v1/suites/NAME" } "."
                }
            } @else {
                form.fields method="post" action="/runs" {
                    (layout::csrf(visit))
                    label {
                        span { "Suite" }
                        select name="suite_name" required {
                            @for name in &suites { option selected[name == value("suite_name")] { (name) } }
                        }
                    }
                    label { span { "Kind" } (choice("kind", "", kinds, kind)) }
                    label {
                        span { "Profile" }
                        select name="profile" {
                            option value="" { "the suite's own" }
                            @for name in &profiles { option value=(name) selected[name == value("profile")] { (name) } }
                        }
                    }
                    label { span { "Seed" } input name="seed" value=(value("seed")) inputmode="numeric" pattern="[0-9]*" placeholder="the suite's own"; }
                    button { "Start" }
                }
            }
        }
    })
}

/// The address by which the visitor reaches the daemon.
fn origin(visit: &Visit) -> String {
    let host = visit.parts.headers.get(http::header::HOST);
    let host = host.and_then(|host| host.to_str().ok()).unwrap_or("HOST");
    format!("http://{host}")
}

pub(crate) async fn start(visit: Visit) -> PageResult {
    let mut options = json!({});
    if !visit.field("profile").is_empty() {
        options["profile"] = json!(visit.field("profile"));
    }
    let seed = visit.field("seed");
    if !seed.is_empty() {
        // What is no number is the API's to reject.
        options["seed"] = seed
            .parse::<u64>()
            .map_or_else(|_| json!(seed), Value::from);
    }
    let run = json!({
        "kind": visit.field("kind"),
        "suite_name": visit.field("suite_name"),
        "options": options,
    });
    match visit.api.send(Method::POST, "/v1/runs", Some(&run)).await {
        Ok(run) => Ok(see_other(&path(run["id"].as_str().unwrap_or_default()))),
        Err(error) => list(&visit, Some(&error)).await,
    }
}

/// Two runs compared, the later one with the earlier one.
pub(crate) async fn compare(visit: Visit) -> PageResult {
    let chosen = visit.query.iter().filter(|(name, _)| name == "run");
    let mut chosen: Vec<_> = chosen.map(|(_, id)| &**id).collect();
    // Ids sort by creation time.
    chosen.sort_unstable();
    let [before, after] = *chosen else {
        let detail = format!("Choose two runs to compare; {} are chosen.", chosen.len());
        return list(
            &visit,
            Some(&ApiError::new(StatusCode::BAD_REQUEST, detail)),
        )
        .await;
    };
    let comparison = format!("/v1/runs/{}/comparison", encoded(after));
    let comparison: ComparisonRecord = (visit.api)
        .get(&with_query(&comparison, &[("with", before)]))
        .await?;
    let earlier = one(&visit.api, before).await?;
    let mut later = one(&visit.api, after).await?;
    later.comparison = Some(comparison);
    let both = [earlier, later];
    let [earlier, later] = &both;
    let body = html! {
        @if (earlier.kind, &earlier.name) != (later.kind, &later.name) {
            p.note { "These runs are not of one kind and suite. Cells are the same if their invariants and scenarios have the same names." }
        }
        div.scroll role="region" aria-label="Runs" tabindex="0" {
            table {
                thead { tr { th scope="col" { "Run" } th scope="col" { "Suite" } th scope="col" { "Kind" } th scope="col" { "Verdict" } th.number scope="col" { "Score" } th scope="col" { "Created (UTC)" } } }
                tbody {
                    @for (name, run) in ["Earlier", "Later"].into_iter().zip(&both) {
                        tr {
                            th scope="row" { (name) }
                            td { a href=(path(&run.id)) { (run.name) } }
                            td { (run.kind.as_str()) }
                            td { (state(run.state)) }
                            td.number { @match run.score { Some(found) => (score(found)), None => "–" } }
                            td.time { (time(&run.created_at)) }
                        }
                    }
                }
            }
        }
        div.report { h2 { "Differences" } (report::compared(later)) }
    };
    Ok(PageContent {
        title: "Two runs compared".to_owned(),
        nav: "/runs",
        assets: &["report.css"],
        body,
    }
    .into_response())
}

/// One run.
pub(super) async fn one(api: &ApiClient, id: &str) -> Result<RunRecord, ApiError> {
    api.get(&format!("/v1/runs/{}", encoded(id))).await
}
