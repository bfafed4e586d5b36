//! Chaos: what is in force in every scope, switching it, and its effect.

use std::convert::Infallible;
use std::time::Duration;

use axum::response::IntoResponse as _;
use axum::response::sse::{Event, KeepAlive, Sse};
use http::{HeaderName, Method, StatusCode};
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::{Value, json};
use squall_journal::activation::ActivationRecord;
use tokio::time::{Interval, MissedTickBehavior, interval};

use crate::api::{ApiClient, ApiError, List, encoded, with_query};
use crate::visit::{PageContent, PageResult, Visit, fragment, see_other};
use crate::{layout, text};

/// Times to live that the form offers.
const TTLS: [&str; 5] = ["1m", "5m", "15m", "1h", "8h"];

/// The one that is selected at first.
const USUAL: &str = "15m";

/// Time between two figures.
const INTERVAL: Duration = Duration::from_millis(500);

/// Makes the page read again what is in force.
const CHANGED: (HeaderName, &str) = (HeaderName::from_static("hx-trigger"), "chaos");

#[derive(Deserialize)]
struct ProfileName {
    name: String,
    source: String,
    #[serde(default)]
    description: Option<String>,
}

pub(crate) async fn show(visit: Visit) -> PageResult {
    let scopes = scopes(&visit.api).await?;
    let form = if visit.caller.may_change() {
        switch_form(&visit, &scopes, &profiles(&visit.api).await?)
    } else {
        html! {}
    };
    let body = html! {
        div.cards {
            (form)
            (figures())
        }
        h2 { "In force" }
        (table(&visit, &scopes))
    };
    Ok(PageContent {
        title: "Chaos".to_owned(),
        nav: "/chaos",
        assets: &["uplot.css", "uplot.js", "figures.js"],
        body,
    }
    .into_response())
}

/// Every scope, and who switched it: a token, or Squall itself.
async fn scopes(api: &ApiClient) -> Result<Vec<(ActivationRecord, Option<String>)>, ApiError> {
    let list: List<Value> = api.get("/v1/scopes?limit=1000").await?;
    let lines = list.items.into_iter().filter_map(|line| {
        let by = line["by"].as_str().map(str::to_owned);
        Some((serde_json::from_value(line).ok()?, by))
    });
    Ok(lines.collect())
}

/// Every profile; the API lists a thousand at a time, which is also the most that are stored.
async fn profiles(api: &ApiClient) -> Result<Vec<ProfileName>, ApiError> {
    let list: List<ProfileName> = api.get("/v1/profiles?limit=1000").await?;
    Ok(list.items)
}

fn switch_form(
    visit: &Visit,
    scopes: &[(ActivationRecord, Option<String>)],
    profiles: &[ProfileName],
) -> Markup {
    let scope = visit.param("scope").unwrap_or(&visit.caller.default_scope);
    let chosen = visit.param("profile").unwrap_or_default();
    html! {
        section.card aria-labelledby="switch" {
            h2 #switch { "Switch a profile" }
            form.fields method="post" action="/chaos" hx-post="/chaos" hx-target="#told" hx-swap="innerHTML" {
                (layout::csrf(visit))
                label.broad {
                    span { "Profile" }
                    select name="profile" required {
                        @for profile in profiles {
                            option value=(profile.name) selected[profile.name == chosen]
                                title=[profile.description.as_deref()] {
                                (profile.name) @if profile.source != "builtin" { " (" (profile.source) ")" }
                            }
                        }
                    }
                }
                label {
                    span { "Scope" }
                    input name="scope" value=(scope) list="scopes" required spellcheck="false";
                }
                datalist #scopes { @for (record, _) in scopes { option value=(record.scope) {} } }
                label {
                    span { "Seed" }
                    input name="seed" inputmode="numeric" placeholder="default" spellcheck="false";
                }
                label {
                    span { "Ends after" }
                    select name="ttl" {
                        @for ttl in TTLS { option selected[ttl == USUAL] { (ttl) } }
                        option value="" { "safety.ttl, or never" }
                    }
                }
                button { "Switch" }
            }
            div #told aria-live="polite" {}
        }
    }
}

/// The effect of chaos; `figures.js` fills it in.
fn figures() -> Markup {
    html! {
        section.card #figures data-source="/chaos/figures" aria-labelledby="effect" {
            h2 #effect { "Effect" }
            dl.numbers {
                div { dt { "Exchanges a second" } dd #exchanges { "–" } }
                div { dt { "Faults a second" } dd #faults { "–" } }
                div { dt { "Error share before the switch" } dd #before { "–" } }
                div { dt { "Error share since" } dd #since { "–" } }
            }
            div #plot role="img" aria-label="Faults a second and error share of the last two minutes" {}
            p.soft { "Error share: exchanges that did not end ok, because of a fault or a failure. The plot begins when the page opens." }
            noscript { p { "The plot needs JavaScript; " a href="/metrics" { "metrics" } " have the same figures." } }
        }
    }
}

fn table(visit: &Visit, scopes: &[(ActivationRecord, Option<String>)]) -> Markup {
    let is_own = |record: &ActivationRecord| !record.inherited && record.profile != "none";
    let own: Vec<_> = scopes.iter().filter(|(record, _)| is_own(record)).collect();
    let inherited = scopes.iter().filter(|(record, _)| record.inherited).count();
    html! {
        div #in-force hx-get="/chaos/scopes" hx-trigger="every 2s, chaos from:body" hx-swap="morph:outerHTML" {
            @if own.is_empty() {
                p { "No chaos is in force. All traffic passes unchanged." }
            } @else {
                div.scroll role="region" aria-label="Scopes" tabindex="0" {
                    table {
                        thead {
                            tr {
                                th scope="col" { "Scope" } th scope="col" { "Profile" } th.number.wide scope="col" { "Rules" }
                                th.number scope="col" { "Seed" } th.wide scope="col" { "Started (UTC)" } th scope="col" { "By" }
                                th scope="col" { "Time left" }
                                @if visit.caller.may_change() { th scope="col" { span.unseen { "Stop" } } }
                            }
                        }
                        tbody { @for (record, by) in own { (row(visit, record, by.as_deref())) } }
                    }
                }
            }
            @if inherited > 0 { p.soft { "Scopes that inherit the default scope's: " (inherited) } }
        }
    }
}

fn row(visit: &Visit, record: &ActivationRecord, by: Option<&str>) -> Markup {
    let left = record.expires_at.as_deref().and_then(text::time_left);
    let started = record.started_at.as_deref().unwrap_or_default();
    html! {
        tr {
            td { a href=(with_query("/live", &[("scope", &record.scope)])) { (record.scope) } }
            td {
                span.tag.on { (record.profile) }
                @if let Some(suspended) = &record.suspended {
                    div.soft { "a run has suspended " (suspended.profile) }
                }
            }
            td.number.wide { (record.rules) }
            td.number { (record.seed) }
            td.time.wide { (started.get(..19).unwrap_or(started).replace('T', " ")) }
            td { (by.unwrap_or("–")) }
            td { (left.as_deref().unwrap_or("until it is stopped")) }
            @if visit.caller.may_change() {
                td {
                    form method="post" action="/chaos/stop" hx-post="/chaos/stop" hx-target="#told" hx-swap="innerHTML" {
                        (layout::csrf(visit))
                        input type="hidden" name="scope" value=(record.scope);
                        button.quiet { "Stop" span.unseen { " " (record.scope) } }
                    }
                }
            }
        }
    }
}

pub(crate) async fn table_part(visit: Visit) -> PageResult {
    Ok(fragment(table(&visit, &scopes(&visit.api).await?)))
}

fn path(scope: &str) -> String {
    format!("/v1/scopes/{}/chaos", encoded(scope))
}

/// Puts a profile in force.
pub(crate) async fn switch(visit: Visit) -> PageResult {
    let (scope, profile, seed) = (
        visit.field("scope"),
        visit.field("profile"),
        visit.field("seed"),
    );
    let mut document = json!({ "profile": profile });
    if !seed.is_empty() {
        // The API says what is wrong with a text.
        document["seed"] = seed
            .parse::<u64>()
            .map_or_else(|_| json!(seed), |seed| json!(seed));
    }
    if !visit.field("ttl").is_empty() {
        document["ttl"] = json!(visit.field("ttl"));
    }
    visit
        .api
        .send(Method::PUT, &path(scope), Some(&document))
        .await?;
    if !visit.is_partial {
        return Ok(see_other("/chaos"));
    }
    let done = fragment(html! { p { b { (profile) } " is in force in " b { (scope) } "." } });
    Ok(([CHANGED], done).into_response())
}

/// Ends the chaos of one scope.
pub(crate) async fn stop(visit: Visit) -> PageResult {
    let scope = visit.field("scope");
    visit.api.send(Method::DELETE, &path(scope), None).await?;
    if !visit.is_partial {
        return Ok(see_other("/chaos"));
    }
    let done = fragment(html! { p { "The chaos of " b { (scope) } " has ended." } });
    Ok(([CHANGED], done).into_response())
}

/// Counters for the plot, twice a second.
struct FigureStream {
    api: ApiClient,
    ticks: Interval,
}

pub(crate) async fn figures_stream(visit: Visit) -> PageResult {
    let mut ticks = interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let figures = FigureStream {
        api: visit.api.clone(),
        ticks,
    };
    let events = futures_util::stream::unfold(figures, |mut figures| async {
        figures.ticks.tick().await;
        let event = figures.read().await.ok()?;
        Some((Ok::<_, Infallible>(event), figures))
    });
    Ok(Sse::new(events)
        .keep_alive(KeepAlive::default())
        .into_response())
}

impl FigureStream {
    async fn read(&self) -> Result<Event, ApiError> {
        let metrics = self.api.text("/metrics").await?;
        let sum = |name: &str, part: &str| -> f64 {
            let lines = metrics
                .lines()
                .filter(|line| line.starts_with(name) && line.contains(part));
            let values = lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
            values.sum()
        };
        let exchanges = sum("squall_exchanges_total{", "");
        let scopes = scopes(&self.api).await?;
        let activations = scopes.iter().filter(|(record, _)| !record.inherited);
        let activations: Vec<_> = activations
            .map(|(record, _)| (&record.scope, &record.activation, &record.profile))
            .collect();
        let figures = json!({
            "exchanges": exchanges,
            "failed": exchanges - sum("squall_exchanges_total{", "outcome=\"ok\""),
            "faults": sum("squall_faults_injected_total{", ""),
            "in_force": json!(activations).to_string(),
        });
        Event::default()
            .json_data(figures)
            .map_err(|error| ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))
    }
}
