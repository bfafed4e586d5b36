//! Recordings, replay sessions, the tapes that scopes play, and runs that replay or explore.

use axum::response::IntoResponse as _;
use http::Method;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::json;
use squall_harness::report::score;
use squall_harness::run::RunRecord;

use super::runs;
use crate::api::{List, encoded, with_query};
use crate::layout;
use crate::text;
use crate::visit::{PageContent, PageResult, Visit, see_other};

/// A recording, as the API lists it.
#[derive(Debug, Deserialize)]
struct RecordingRow {
    id: String,
    name: Option<String>,
    scope: Option<String>,
    state: String,
    started_at: String,
    exchanges: u64,
}

/// A stored replay session, as the API lists it.
#[derive(Debug, Deserialize)]
struct SessionRow {
    name: String,
    version: i64,
    updated_at: String,
}

/// A tape that a scope plays.
#[derive(Debug, Deserialize)]
struct TapeRow {
    scope: String,
    source: String,
    served: u64,
    missed: u64,
    left: u64,
}

pub(crate) async fn show(visit: Visit) -> PageResult {
    let cursor = visit.param("cursor").map(|cursor| ("cursor", cursor));
    let query: Vec<_> = cursor.into_iter().collect();
    let recordings = with_query("/v1/recordings", &query);
    let recordings: List<RecordingRow> = visit.api.get(&recordings).await?;
    let stored: List<SessionRow> = visit.api.get("/v1/replays?limit=1000").await?;
    let tapes: List<TapeRow> = visit.api.get("/v1/tapes?limit=1000").await?;
    let replays: List<RunRecord> = visit.api.get("/v1/runs?kind=replay&limit=20").await?;
    let explorations: List<RunRecord> = visit.api.get("/v1/runs?kind=explore&limit=20").await?;
    let older = recordings.next_cursor.as_deref();
    let older = older.map(|cursor| with_query("/recordings", &[("cursor", cursor)]));
    let body = html! {
        @if !tapes.items.is_empty() { h2 { "Playing" } (playing(&visit, &tapes.items)) }
        h2 { "Recordings" }
        @if visit.caller.may_change() {
            form.fields method="post" action="/recordings" {
                (layout::csrf(&visit))
                label { span { "Scope" } input name="scope" placeholder="all scopes" spellcheck="false"; }
                label { span { "Name" } input name="name" spellcheck="false"; }
                button { "Record" }
            }
        }
        (recorded(&visit, &recordings.items))
        @if let Some(older) = older { p { a href=(older) { "Older recordings" } } }
        h2 { "Replay sessions" }
        (sessions(&stored.items))
        h2 { "Runs that replay" }
        (of_kind(&replays.items, "replay", "It shows where the agent differs from the recorded sessions."))
        h2 { "Explorations" }
        (of_kind(&explorations.items, "explore", "It has a heat map of faults and calls."))
    };
    Ok(PageContent {
        title: "Recordings".to_owned(),
        nav: "/recordings",
        assets: &[],
        body,
    }
    .into_response())
}

/// A table, scrollable by keyboard.
pub(super) fn scrolled(label: &str, columns: &[&str], rows: &Markup) -> Markup {
    html! {
        div.scroll role="region" aria-label=(label) tabindex="0" {
            table {
                thead { tr { @for column in columns { th scope="col" { (column) } } } }
                tbody { (rows) }
            }
        }
    }
}

/// The tapes, with a button that stops each.
fn playing(visit: &Visit, tapes: &[TapeRow]) -> Markup {
    let rows = html! {
        @for tape in tapes {
            tr {
                td { (tape.scope) }
                td { (tape.source) }
                td { (text::number(tape.served)) " served, " (text::number(tape.missed)) " missed, " (text::number(tape.left)) " left" }
                td {
                    @if visit.caller.may_change() {
                        form method="post" action="/recordings/tapes/stop" {
                            (layout::csrf(visit))
                            input type="hidden" name="scope" value=(tape.scope);
                            button.quiet { "Stop the tape" }
                        }
                    }
                }
            }
        }
    };
    scrolled("Tapes", &["Scope", "Source", "Responses", "Change"], &rows)
}

fn recorded(visit: &Visit, recordings: &[RecordingRow]) -> Markup {
    let rows = html! {
        @for recording in recordings {
            tr {
                td { a href={ "/recordings/" (encoded(&recording.id)) } { (recording.name.as_ref().unwrap_or(&recording.id)) } }
                td { (recording.scope.as_deref().unwrap_or("all scopes")) }
                td.time { (runs::time(&recording.started_at)) }
                td { (text::number(recording.exchanges)) }
                td {
                    span class={ "tag " (if recording.state == "recording" { "on" } else { "" }) } { (recording.state) }
                    @if recording.state == "recording" && visit.caller.may_change() {
                        form method="post" action="/recordings/stop" {
                            (layout::csrf(visit))
                            input type="hidden" name="recording" value=(recording.id);
                            button.quiet { "Stop recording" }
                        }
                    }
                }
            }
        }
    };
    html! {
        @if recordings.is_empty() {
            p.soft { "Nothing has been recorded." }
        } @else {
            (scrolled("Recordings", &["Recording", "Scope", "Began (UTC)", "Exchanges", "State"], &rows))
        }
    }
}

fn sessions(stored: &[SessionRow]) -> Markup {
    let rows = html! {
        @for session in stored {
            tr {
                td { a href={ "/replays/" (encoded(&session.name)) } { (session.name) } }
                td { (session.version) }
                td.time { (runs::time(&session.updated_at)) }
            }
        }
    };
    html! {
        @if stored.is_empty() {
            p.soft { "No session is stored. " code { "squall replay import" } " and " code { "PUT /v1/replays/{id}" } " store one." }
        } @else {
            (scrolled("Replay sessions", &["Session", "Version", "Stored (UTC)"], &rows))
        }
    }
}

fn of_kind(found: &[RunRecord], kind: &str, about: &str) -> Markup {
    let rows = html! {
        @for run in found {
            tr {
                td { a href=(runs::path(&run.id)) { (run.name) } }
                td { (runs::state(run.state)) }
                td { @match run.score { Some(found) => (score(found)), None => "–" } }
                td.time { (runs::time(&run.created_at)) }
            }
        }
    };
    html! {
        @if found.is_empty() {
            p.soft { "There is none. Start a run of kind " a href="/runs" { (kind) } ". " (about) }
        } @else {
            (scrolled(kind, &["Suite", "Verdict", "Score", "Created (UTC)"], &rows))
            p { a href=(with_query("/runs", &[("kind", kind)])) { "All of them" } }
        }
    }
}

/// Begins a recording.
pub(crate) async fn begin(visit: Visit) -> PageResult {
    let mut document = json!({});
    for name in ["scope", "name"] {
        if !visit.field(name).is_empty() {
            document[name] = json!(visit.field(name));
        }
    }
    let new = Some(&document);
    visit.api.send(Method::POST, "/v1/recordings", new).await?;
    Ok(see_other("/recordings"))
}

/// Ends a recording.
pub(crate) async fn stop(visit: Visit) -> PageResult {
    let path = format!("/v1/recordings/{}/stop", encoded(visit.field("recording")));
    visit.api.send(Method::POST, &path, None).await?;
    Ok(see_other("/recordings"))
}

fn tape_of(scope: &str) -> String {
    format!("/v1/scopes/{}/tape", encoded(scope))
}

/// Plays a recording or a stored session for a scope.
pub(crate) async fn play(visit: Visit) -> PageResult {
    let kind = match visit.field("kind") {
        "replay" => "replay",
        _ => "recording",
    };
    let tape = json!({
        kind: visit.field("id"),
        "on_miss": visit.field("on_miss"),
        "speed": u8::from(visit.field("speed") == "recorded"),
    });
    let path = tape_of(visit.field("scope"));
    visit.api.send(Method::PUT, &path, Some(&tape)).await?;
    Ok(see_other("/recordings"))
}

/// Ends the tape of a scope.
pub(crate) async fn stop_tape(visit: Visit) -> PageResult {
    let path = tape_of(visit.field("scope"));
    visit.api.send(Method::DELETE, &path, None).await?;
    Ok(see_other("/recordings"))
}
