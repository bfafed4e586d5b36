//! Live: exchanges as they end.

use std::collections::{HashSet, VecDeque};
use std::convert::Infallible;
use std::time::Duration;

use axum::response::IntoResponse as _;
use axum::response::sse::{Event, KeepAlive, Sse};
use maud::{Markup, html};
use serde_json::Value;
use squall_journal::record::{ExchangeRecord, Kind, Outcome};
use tokio::time::{Instant, timeout_at};

use super::exchange;
use crate::api::{ApiClient, ApiError, Events, List, encoded, with_query};
use crate::text;
use crate::visit::{PageContent, PageResult, Visit, fragment};

/// The filters of exchanges, as the API names them.
const FILTERS: [&str; 7] = ["scope", "kind", "tool", "host", "fault", "status", "run"];

/// Exchanges that the page begins with.
const FIRST: &str = "50";

/// Exchanges a second that a page shows.
const PER_SECOND: &str = "80";

/// Time between two updates of a page.
const INTERVAL: Duration = Duration::from_millis(250);

type Filters<'a> = Vec<(&'a str, &'a str)>;

fn filters(visit: &Visit) -> Filters<'_> {
    let given = FILTERS.into_iter().map(|name| (name, visit.param(name)));
    given
        .filter_map(|(name, value)| Some((name, value?)))
        .collect()
}

fn with<'a>(filters: &Filters<'a>, more: &[(&'a str, &'a str)]) -> Filters<'a> {
    filters.iter().chain(more).copied().collect()
}

async fn newest(
    api: &ApiClient,
    filters: &Filters<'_>,
    cursor: Option<&str>,
) -> Result<List<ExchangeRecord>, ApiError> {
    let mut query = with(filters, &[("limit", FIRST)]);
    query.extend(cursor.map(|cursor| ("cursor", cursor)));
    api.get(&with_query("/v1/exchanges", &query)).await
}

pub(crate) async fn show(visit: Visit) -> PageResult {
    let (filters, cursor) = (filters(&visit), visit.param("cursor"));
    let is_paused = cursor.is_some() || visit.param("pause").is_some();
    let list = newest(&visit.api, &filters, cursor).await?;
    let older = list
        .next_cursor
        .as_deref()
        .map(|cursor| with_query("/live", &with(&filters, &[("cursor", cursor)])));
    let body = html! {
        (filter_form(&visit))
        (stream_control(&filters, is_paused))
        div.panes {
            div.scroll role="region" aria-label="Exchanges" tabindex="0" {
                table.exchanges {
                    thead {
                        tr {
                            th scope="col" { "Time (UTC)" } th scope="col" { "Call" } th.wide scope="col" { "Request" }
                            th scope="col" { "Status" } th.number.wide scope="col" { "Delay" } th scope="col" { "Faults" }
                            th.number.wide scope="col" { "Duration" }
                        }
                    }
                    tbody #rows data-most="200" hx-target="#detail" hx-swap="innerHTML" { (rows_of(&list.items)) }
                }
                p.empty { "No exchange matches yet. Traffic appears here as soon as an agent calls through the proxy." }
            }
            section #detail aria-label="One exchange" aria-live="polite" {}
        }
        @if let Some(older) = older { p { a href=(older) { "Older exchanges" } } }
    };
    Ok(PageContent {
        title: "Live".to_owned(),
        nav: "/live",
        assets: &[],
        body,
    }
    .into_response())
}

fn filter_form(visit: &Visit) -> Markup {
    let value = |name| visit.param(name).unwrap_or_default();
    let text = |name: &'static str, label: &str, hint: &str| {
        html! {
            label { span { (label) } input name=(name) value=(value(name)) placeholder=(hint) spellcheck="false"; }
        }
    };
    html! {
        form.filters action="/live" role="search" aria-label="Filter exchanges" {
            label {
                span { "Kind" }
                select name="kind" {
                    option value="" { "any" }
                    @for kind in Kind::ALL {
                        option selected[kind.as_str() == value("kind")] { (kind.as_str()) }
                    }
                }
            }
            (text("tool", "Tool", "search"))
            (text("host", "Host", "api.example.com"))
            (text("scope", "Scope", &visit.caller.default_scope))
            (text("fault", "Fault", "* or a mode"))
            (text("status", "Status", "503, 5xx, none"))
            @if visit.param("run").is_some() { (text("run", "Run", "")) }
            button { "Filter" }
            @if !filters(visit).is_empty() { a.button.quiet href="/live" { "Clear" } }
        }
    }
}

/// The line above the table, which holds the stream of rows. A click on its link replaces it.
fn stream_control(filters: &Filters<'_>, is_paused: bool) -> Markup {
    let other = if is_paused {
        with(filters, &[])
    } else {
        with(filters, &[("pause", "1")])
    };
    let (page, part) = (
        with_query("/live", &other),
        with_query("/live/stream", &other),
    );
    html! {
        div #stream.stream sse-connect=[(!is_paused).then(|| with_query("/live/rows", filters))] {
            a.button.quiet href=(page) hx-get=(part) hx-target="#stream" hx-swap="outerHTML" hx-replace-url=(page) {
                @if is_paused { "Resume" } @else { "Pause" }
            }
            @if is_paused {
                span.soft { "Paused. New exchanges are not shown." }
            } @else {
                span hidden sse-swap="all" hx-target="#rows" hx-swap="innerHTML" {}
                span hidden sse-swap="rows" hx-target="#rows" hx-swap="afterbegin" {}
                span.soft sse-swap="note" { "Exchanges appear as they end." }
            }
        }
    }
}

pub(crate) async fn stream(visit: Visit) -> PageResult {
    let is_paused = visit.param("pause").is_some();
    Ok(fragment(stream_control(&filters(&visit), is_paused)))
}

fn rows_of(exchanges: &[ExchangeRecord]) -> Markup {
    html! { @for exchange in exchanges { (row(exchange)) } }
}

/// One exchange, in one row.
fn row(exchange: &ExchangeRecord) -> Markup {
    let path = format!("/live/{}", encoded(&exchange.id));
    let at = text::time_of_day(&exchange.started_at);
    let (time, fraction) = at.split_at_checked(8).unwrap_or((at, ""));
    html! {
        tr {
            td.time { (time) span.wide { (fraction) } }
            td { span class={ "kind " (exchange.kind.as_str()) } { (exchange.kind.as_str()) } " " span.subject { (exchange::subject(exchange)) } }
            td.request.wide { a href=(path) hx-get=(path) { (exchange.method) " " (shortened(&exchange.url)) } }
            td { (exchange::status(exchange)) a.narrow-only href=(path) hx-get=(path) { "explain" } }
            td.number.wide { @if exchange.injected_ms > 0.0 { "+" (text::milliseconds(exchange.injected_ms)) } }
            td.faults { @for rule in exchange::applied(exchange) { span.tag.on { (rule.mode) } " " } }
            td.number.wide { @if let Some(ms) = exchange.duration_ms { (text::milliseconds(ms)) } }
        }
    }
}

/// The URL without its scheme, at most 80 characters.
fn shortened(url: &str) -> String {
    let url = url.split_once("://").map_or(url, |(_, rest)| rest);
    match url.char_indices().nth(80) {
        Some((end, _)) => format!("{}…", &url[..end]),
        None => url.to_owned(),
    }
}

/// The new exchanges of a page.
struct Rows {
    api: ApiClient,
    filters: Vec<(String, String)>,
    events: Events,
    /// The newest exchanges were sent; the stream may have them again.
    listed: Option<HashSet<String>>,
    skipped: u64,
    next: Instant,
    ready: VecDeque<Event>,
}

/// Server-sent events of rows: first `all`, the newest; then `rows`, what is new, four times a second at most. `note`
/// counts what was not shown.
pub(crate) async fn rows(visit: Visit) -> PageResult {
    let filters = filters(&visit);
    // The stream begins before the list is read, so that no exchange is missed in between.
    let path = with_query("/v1/events", &with(&filters, &[("per_second", PER_SECOND)]));
    let rows = Rows {
        events: visit.api.events(&path).await?,
        filters: filters
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        api: visit.api.clone(),
        listed: None,
        skipped: 0,
        next: Instant::now(),
        ready: VecDeque::new(),
    };
    let events = futures_util::stream::unfold(rows, |mut rows| async {
        let event = rows.next().await?;
        Some((Ok::<_, Infallible>(event), rows))
    });
    Ok(Sse::new(events)
        .keep_alive(KeepAlive::default())
        .into_response())
}

impl Rows {
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            if self.listed.is_none() {
                self.list().await?;
            } else {
                self.gather().await?;
            }
        }
    }

    async fn list(&mut self) -> Option<()> {
        let filters = self.filters.iter().map(|(name, value)| (&**name, &**value));
        let list = newest(&self.api, &filters.collect(), None).await.ok()?;
        self.ready.push_back(event("all", &rows_of(&list.items)));
        let ended = list
            .items
            .into_iter()
            .filter(|one| one.outcome != Outcome::Open);
        self.listed = Some(ended.map(|one| one.id).collect());
        Some(())
    }

    /// Waits for an event and what comes soon after it; `None` at the end of the stream.
    async fn gather(&mut self) -> Option<()> {
        let mut exchanges = VecDeque::new();
        let mut has_skipped = false;
        let first = self.events.next().await?;
        let mut event_read = Some(first);
        while let Some((name, data)) = event_read {
            match &*name {
                "exchange" => exchanges.extend(self.unlisted(data)),
                "skipped" | "gap" => {
                    let count = data["count"].as_u64().or(data["missed"].as_u64());
                    self.skipped += count.unwrap_or(0);
                    has_skipped = true;
                }
                _ => {}
            }
            event_read = match timeout_at(self.next, self.events.next()).await {
                Ok(event) => Some(event?),
                Err(_) => None,
            };
        }
        self.next = Instant::now() + INTERVAL;
        if !exchanges.is_empty() {
            let rows = html! { @for exchange in exchanges.iter().rev() { (row(exchange)) } };
            self.ready.push_back(event("rows", &rows));
        }
        if has_skipped {
            let note = html! {
                (text::number(self.skipped)) " not shown: the page shows at most " (PER_SECOND) " exchanges a second."
            };
            self.ready.push_back(event("note", &note));
        }
        Some(())
    }

    fn unlisted(&self, data: Value) -> Option<ExchangeRecord> {
        let exchange: ExchangeRecord = serde_json::from_value(data).ok()?;
        let is_listed = self
            .listed
            .as_ref()
            .is_some_and(|listed| listed.contains(&exchange.id));
        (!is_listed).then_some(exchange)
    }
}

/// A carriage return would end a line of the stream.
pub(super) fn event(name: &str, markup: &Markup) -> Event {
    Event::default()
        .event(name)
        .data(markup.0.replace('\r', "&#13;"))
}
