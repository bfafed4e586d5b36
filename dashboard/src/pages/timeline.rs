//! The timeline of a recording or of a stored session, and the form that plays it.

use axum::extract::Path;
use axum::response::{IntoResponse as _, Response};
use http::StatusCode;
use maud::{Markup, html};
use serde_json::Value;
use squall_harness::session;
use squall_journal::tape::{RecordedExchange, Session};
use squall_journal::timestamp;

use super::recordings::scrolled;
use crate::api::{ApiError, encoded};
use crate::layout;
use crate::text;
use crate::visit::{PageContent, PageResult, Visit};

/// Calls that the page shows.
const MOST: usize = 500;

/// Longest response that the page shows, in characters.
const LONGEST: usize = 2_000;

/// A recorded call.
struct TimelineCall {
    name: String,
    /// Milliseconds from the first call.
    at: u64,
    took: u64,
    status: u64,
    faults: String,
    response: String,
}

/// A recording, at the times at which its calls were made.
pub(crate) async fn recorded(visit: Visit, Path(id): Path<String>) -> PageResult {
    let path = format!("/v1/recordings/{}?format=har", encoded(&id));
    let archive: Value = visit.api.get(&path).await?;
    let entries = archive["log"]["entries"].as_array();
    let mut calls: Vec<_> = entries.into_iter().flatten().map(of_entry).collect();
    calls.sort_by_key(|call| call.at);
    let first = calls.first().map_or(0, |call| call.at);
    for call in &mut calls {
        call.at -= first;
    }
    let about = html! {
        @if let Some(comment) = archive["log"]["comment"].as_str() { p.note { (comment) } }
        p.soft { "Each call at its time. Secrets are redacted." }
    };
    Ok(page(&visit, "recording", &id, &about, &calls))
}

fn of_entry(entry: &Value) -> TimelineCall {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let at = entry["startedDateTime"].as_str().unwrap_or_default();
    let faults = entry["_squall"]["faults"].as_array().into_iter().flatten();
    let request = &entry["request"];
    TimelineCall {
        name: format!("{} {}", text(&request["method"]), text(&request["url"])),
        at: timestamp::parse(at).unwrap_or(0),
        took: entry["time"].as_u64().unwrap_or(0),
        status: entry["response"]["status"].as_u64().unwrap_or(0),
        faults: faults.map(text).collect::<Vec<_>>().join(", "),
        response: text(&entry["response"]["content"]["text"]),
    }
}

/// A stored session. It has no times, so each call begins when the one before it has ended.
pub(crate) async fn stored(visit: Visit, Path(id): Path<String>) -> PageResult {
    let path = format!("/v1/replays/{}", encoded(&id));
    let text = visit.api.text(&path).await?;
    let session = session::parse(&id, &text).map_err(|errors| {
        let first = errors.first().map(ToString::to_string);
        let detail = format!("the session cannot be read: {}", first.unwrap_or_default());
        ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, detail)
    })?;
    let mut calls = calls(&session);
    let mut end = 0;
    for call in &mut calls {
        call.at = end;
        end += call.took;
    }
    let about = html! {
        dl.facts {
            @if let Some(name) = &session.name { dt { "Name" } dd { (name) } }
            @if let Some(source) = &session.source { dt { "Source" } dd { (source) } }
            @for turn in &session.input { dt { "Prompt" } dd { (turn) } }
            @if let Some(failure) = &session.expected_failure { dt { "Failure" } dd { (failure) } }
            @if let Some(contract) = &session.contract { dt { "Contract" } dd { (contract) } }
        }
        p.soft { "Responses of models, tools and requests, each in recorded order. A session has no times of requests: each call is drawn after the one before it." }
    };
    Ok(page(&visit, "replay", &id, &about, &calls))
}

fn calls(session: &Session) -> Vec<TimelineCall> {
    let of_exchange = |exchange: &RecordedExchange, name: String| {
        let answer = &exchange.answer;
        TimelineCall {
            name,
            at: 0,
            took: answer.latency_ms,
            status: answer.status.into(),
            faults: String::new(),
            response: String::from_utf8_lossy(&answer.content.whole()).into_owned(),
        }
    };
    let models = session.llm_responses.iter().map(|exchange| {
        let model = exchange.matching.model.as_deref().unwrap_or("any model");
        of_exchange(exchange, model.to_owned())
    });
    let tools = session.tool_responses.iter().map(|tool| TimelineCall {
        name: tool.tool.clone(),
        at: 0,
        took: tool.latency_ms,
        status: tool.status.into(),
        faults: String::new(),
        response: tool.response.to_string(),
    });
    let requests = session.exchanges.iter().map(|exchange| {
        let matching = &exchange.matching;
        let method = matching.method.as_ref().map(ToString::to_string);
        let (method, url) = (method.as_deref(), matching.url.as_deref());
        let name = format!("{} {}", method.unwrap_or("*"), url.unwrap_or("*"));
        of_exchange(exchange, name)
    });
    models.chain(tools).chain(requests).collect()
}

fn page(visit: &Visit, kind: &str, id: &str, about: &Markup, calls: &[TimelineCall]) -> Response {
    let body = html! {
        (about)
        @if visit.caller.may_change() { (play_form(visit, kind, id)) }
        h2 { "Timeline" }
        @if calls.is_empty() { p.soft { "It has no calls." } } @else { (timeline(calls)) }
        @if calls.len() > MOST { p.soft { (text::counted((calls.len() - MOST) as u64, "more call")) " not shown." } }
    };
    let title = match kind {
        "replay" => "Session",
        _ => "Recording",
    };
    PageContent {
        title: format!("{title} {id}"),
        nav: "/recordings",
        assets: &[],
        body,
    }
    .into_response()
}

fn play_form(visit: &Visit, kind: &str, id: &str) -> Markup {
    html! {
        form.fields method="post" action="/recordings/play" {
            (layout::csrf(visit))
            input type="hidden" name="kind" value=(kind);
            input type="hidden" name="id" value=(id);
            label { span { "Play as the tape of scope" } input name="scope" required spellcheck="false" value=(visit.caller.default_scope); }
            label {
                span { "A request that was not recorded" }
                select name="on_miss" {
                    option value="error" { "is rejected" }
                    option value="passthrough" { "goes upstream" }
                    option value="nearest" { "gets the nearest response" }
                }
            }
            label {
                span { "Speed" }
                select name="speed" { option value="" { "at once" } option value="recorded" { "as recorded" } }
            }
            button { "Play" }
        }
    }
}

fn timeline(calls: &[TimelineCall]) -> Markup {
    let end = calls.iter().map(|call| call.at + call.took).max();
    #[expect(clippy::cast_precision_loss, reason = "milliseconds of a recording")]
    let share = |ms: u64| 100.0 * ms as f64 / end.unwrap_or(0).max(1) as f64;
    #[expect(clippy::cast_precision_loss, reason = "milliseconds of a recording")]
    let shown = |ms: u64| text::milliseconds(ms as f64);
    let rows = html! {
        @for call in calls.iter().take(MOST) {
            tr {
                td { (shown(call.at)) }
                td.request {
                    (call.name)
                    @if !call.response.is_empty() {
                        details { summary { "Response" } pre tabindex="0" { (call.response.chars().take(LONGEST).collect::<String>()) } }
                    }
                }
                td { span class={ "status " (if (1..400).contains(&call.status) { "good" } else { "bad" }) } {
                    @if call.status == 0 { "none" } @else { (call.status) }
                } }
                td { (shown(call.took)) }
                td.bar-of {
                    svg.timeline viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true" {
                        rect.waited x=(format!("{:.3}", share(call.at))) y="0" width=(format!("{:.3}", share(call.took).max(0.4))) height="4" {}
                    }
                }
                td { @if !call.faults.is_empty() { span.tag.on { (call.faults) } } }
            }
        }
    };
    scrolled(
        "Calls",
        &["Begins", "Call", "Status", "Took", "Timeline", "Faults"],
        &rows,
    )
}
