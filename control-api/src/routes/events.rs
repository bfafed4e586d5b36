//! `GET /v1/events` and `GET /v1/runs/{id}/events`: server-sent events that resume.
//!
//! A stream stores only the id of its last event and one batch of later ones. It reads no further batch before the
//! client has read this one. The recorder counts the events of `/v1/events` that are dropped meanwhile.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::response::IntoResponse;
use axum::response::sse::{self, KeepAlive, Sse};
use http::HeaderMap;
use serde_json::json;
use squall_journal::events::EventId;
use squall_journal::ring::Filter;
use squall_proxy::recorder::{JournalEvent, Recorder};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::exchanges;
use super::path::Name;
use super::runs::find;
use crate::access::Caller;
use crate::problem::ApiProblem;
use crate::query::Params;
use crate::runs::Runs;
use crate::state::ApiState;

/// Interval of comments while a stream is silent.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// Pause that clients should make before they reconnect.
const RETRY: Duration = Duration::from_secs(1);

/// Interval at which a shared store is read for events of other daemons.
const POLL: Duration = Duration::from_millis(500);

/// Events read at a time.
const AT_ONCE: usize = 64;

/// Streams events from now on, or after `Last-Event-ID`.
pub(super) async fn stream(
    State(state): State<ApiState>,
    caller: Caller,
    mut params: Params,
    headers: HeaderMap,
) -> Result<impl IntoResponse, ApiProblem> {
    let mut filter = exchanges::filter(&caller, &mut params);
    if params.switch("faults") {
        filter.fault.get_or_insert_with(|| "*".to_owned());
    }
    let sampling = params.read("per_second", "a number from 1 to 1000", |text| {
        let rate = text.parse().ok().filter(|rate| (1..=1000).contains(rate));
        rate.map(Sampling::new)
    });
    params.finish()?;
    let resumed = headers.get("last-event-id").map(|id| {
        // An unknown id counts as a previous daemon's: all stored events, after a gap.
        let id = id.to_str().ok().and_then(|id| id.parse().ok());
        id.unwrap_or(EventId::ELSEWHERE)
    });
    // Subscribed before the newest id is read, so that no event is missed in between.
    let changes = state.recorder.changes();
    let newest = state.recorder.newest_event();
    let source = DaemonEvents {
        recorder: state.recorder.clone(),
        filter,
        sampling,
        last: resumed.unwrap_or(newest),
    };
    let mut opening = opening();
    if resumed.is_none() {
        // A client that disconnects before the first event resumes from here.
        opening = opening.id(newest.to_string());
    }
    Ok(EventStream::new(&state, &caller, opening, changes, source).into_sse())
}

/// Streams the events of a run from its beginning, or after `Last-Event-ID`.
pub(super) async fn stream_run(
    State(state): State<ApiState>,
    caller: Caller,
    Name(id): Name,
    params: Params,
    headers: HeaderMap,
) -> Result<impl IntoResponse, ApiProblem> {
    params.finish()?;
    let run = find(&state, &caller, &id).await?;
    let resumed = headers.get("last-event-id");
    let last: Option<i64> = resumed.and_then(|id| id.to_str().ok()?.trim().parse().ok());
    let changes = state.runs.changes();
    let source = RunEvents {
        runs: Arc::clone(&state.runs),
        was_over: run.state.is_over(),
        run: run.id,
        last: last.unwrap_or(0).max(0),
        is_over: false,
    };
    Ok(EventStream::new(&state, &caller, opening(), changes, source).into_sse())
}

fn opening() -> sse::Event {
    sse::Event::default().retry(RETRY).comment("squall events")
}

/// Where a stream reads its events.
trait EventSource: Send + 'static {
    /// The next events; `None` at the end of the stream. `Some` of an empty list: none yet.
    fn read(&mut self) -> impl Future<Output = Option<Vec<sse::Event>>> + Send;

    /// Interval at which it is read without a notice.
    fn poll(&self) -> Option<Duration> {
        None
    }
}

/// A stream of events.
struct EventStream<S> {
    source: S,
    changes: watch::Receiver<()>,
    ready: VecDeque<sse::Event>,
    stopping: CancellationToken,
    /// Cancelled when the client loses access.
    revoked: CancellationToken,
}

impl<S: EventSource> EventStream<S> {
    fn new(
        state: &ApiState,
        caller: &Caller,
        opening: sse::Event,
        changes: watch::Receiver<()>,
        source: S,
    ) -> Self {
        Self {
            source,
            changes,
            ready: VecDeque::from([opening]),
            stopping: state.stopping.clone(),
            revoked: caller.ended(),
        }
    }

    fn into_sse(self) -> impl IntoResponse {
        let events = futures_util::stream::unfold(self, |mut stream| async {
            let event = stream.next().await?;
            Some((Ok::<_, Infallible>(event), stream))
        });
        let heartbeat = KeepAlive::new().interval(HEARTBEAT).text("alive");
        Sse::new(events).keep_alive(heartbeat)
    }

    /// The next event to send; `None` at its end, when the daemon stops, or when the client loses access.
    async fn next(&mut self) -> Option<sse::Event> {
        loop {
            if self.revoked.is_cancelled() {
                return None;
            }
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            self.changes.mark_unchanged();
            self.ready.extend(self.source.read().await?);
            if !self.ready.is_empty() {
                continue;
            }
            let poll = self.source.poll();
            tokio::select! {
                changed = self.changes.changed() => changed.ok()?,
                () = tokio::time::sleep(poll.unwrap_or_default()), if poll.is_some() => {}
                () = self.stopping.cancelled() => return None,
                () = self.revoked.cancelled() => return None,
            }
        }
    }
}

/// Whether an event passes the filters of exchanges. Others depend on the scope only.
fn holds(filter: &Filter, event: &JournalEvent) -> bool {
    let scope = match event {
        JournalEvent::Exchange(note) => return filter.holds(note),
        JournalEvent::Chaos(event) => event.now.scope.as_str(),
        JournalEvent::Run { scope, .. } => &**scope,
    };
    let is_in_scope = filter.scope.as_ref().is_none_or(|only| only == scope);
    is_in_scope && filter.scopes.hold(scope)
}

/// A bound of the exchanges that a stream sends, in windows of a quarter of a second; the rest is counted.
#[derive(Debug)]
struct Sampling {
    per_window: usize,
    left: usize,
    skipped: u64,
    ends: Instant,
}

impl Sampling {
    const WINDOW: Duration = Duration::from_millis(250);

    fn new(per_second: usize) -> Self {
        Self {
            per_window: per_second.div_ceil(4),
            left: 0,
            skipped: 0,
            ends: Instant::now(),
        }
    }

    /// Starts the next window when this one is over; returns what to send about this one.
    fn turned(&mut self, now: Instant) -> Option<sse::Event> {
        if now < self.ends {
            return None;
        }
        self.ends = now + Self::WINDOW;
        self.left = self.per_window;
        let skipped = std::mem::take(&mut self.skipped);
        let data = json!({ "count": skipped }).to_string();
        (skipped > 0).then(|| sse::Event::default().event("skipped").data(data))
    }

    fn admits(&mut self, event: &JournalEvent) -> bool {
        if !matches!(event, JournalEvent::Exchange(_)) {
            return true;
        }
        if self.left == 0 {
            self.skipped += 1;
            return false;
        }
        self.left -= 1;
        true
    }
}

/// The events of the daemon.
struct DaemonEvents {
    recorder: Recorder,
    filter: Filter,
    sampling: Option<Sampling>,
    last: EventId,
}

impl EventSource for DaemonEvents {
    async fn read(&mut self) -> Option<Vec<sse::Event>> {
        loop {
            let turned = self.sampling.as_mut();
            let turned = turned.and_then(|sampling| sampling.turned(Instant::now()));
            let batch = self.recorder.events_after(self.last, AT_ONCE);
            self.last = batch.last;
            let is_end = batch.events.is_empty() && batch.gap.is_none();
            let gap = batch.gap.map(|gap| {
                let missed = json!({ "missed": gap.missed });
                sse::Event::default().event("gap").data(missed.to_string())
            });
            let (filter, sampling) = (&self.filter, &mut self.sampling);
            let events = batch.events.iter().filter(|(_, event)| {
                holds(filter, event) && sampling.as_mut().is_none_or(|some| some.admits(event))
            });
            let first = turned.into_iter().chain(gap);
            let events: Vec<_> = first.chain(events.map(written)).collect();
            if is_end || !events.is_empty() {
                return Some(events);
            }
        }
    }

    fn poll(&self) -> Option<Duration> {
        let waiting = self
            .sampling
            .as_ref()
            .filter(|sampling| sampling.skipped > 0);
        waiting.map(|_| Sampling::WINDOW)
    }
}

impl Drop for DaemonEvents {
    /// The recorder counts the events that the client missed since the last read.
    fn drop(&mut self) {
        self.recorder.events_after(self.last, 0);
    }
}

fn written((id, event): &(EventId, JournalEvent)) -> sse::Event {
    let (name, data) = match event {
        JournalEvent::Exchange(note) => ("exchange", json!(note.to_record()).to_string()),
        JournalEvent::Chaos(event) => ("chaos", json!(**event).to_string()),
        JournalEvent::Run { document, .. } => ("run", document.to_string()),
    };
    sse::Event::default()
        .id(id.to_string())
        .event(name)
        .data(data)
}

/// The events of one run.
struct RunEvents {
    runs: Arc<Runs>,
    run: String,
    /// Number of the last event read.
    last: i64,
    is_over: bool,
    /// All events of the run were stored by then.
    was_over: bool,
}

impl EventSource for RunEvents {
    /// While the store is away the stream waits.
    async fn read(&mut self) -> Option<Vec<sse::Event>> {
        if self.is_over {
            return None;
        }
        let Ok(events) = self.runs.events(&self.run, self.last, AT_ONCE).await else {
            // Unread events may follow.
            self.was_over = false;
            return Some(Vec::new());
        };
        if events.is_empty() && self.was_over {
            return None;
        }
        let written = events.into_iter().map(|event| {
            self.last = event.ordinal;
            self.is_over = event.name == "done";
            sse::Event::default()
                .id(event.ordinal.to_string())
                .event(event.name)
                .data(event.data)
        });
        Some(written.collect())
    }

    fn poll(&self) -> Option<Duration> {
        self.runs.is_shared().then_some(POLL)
    }
}
