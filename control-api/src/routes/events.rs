//! `GET /v1/events`: server-sent events that resume.
//!
//! A stream stores only the id of its last event, and reads later events from the recorder's log. Each second it
//! counts events that were dropped while its client did not read.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::extract::State;
use axum::response::sse::{self, Sse};
use futures_util::Stream;
use http::HeaderMap;
use serde::Serialize;
use serde_json::json;
use squall_journal::events::{EventGap, EventId};
use squall_journal::ring::Entry;
use squall_journal::scopes::Scopes;
use squall_proxy::recorder::{Event, Recorder};
use tokio::sync::watch;
use tokio::time::{Interval, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use crate::access::Caller;
use crate::problem::Problem;
use crate::query::Params;
use crate::state::ApiState;

/// Interval of heartbeats while a stream is silent.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// Pause that clients should make before they reconnect.
pub(super) const RETRY: Duration = Duration::from_secs(1);

/// Interval at which missed events of slow clients are counted.
const COUNTING: Duration = Duration::from_secs(1);

/// Events taken from the log at a time.
const AT_ONCE: usize = 64;

/// Streams events from now on, or after `Last-Event-ID`.
pub(super) async fn stream(
    State(state): State<ApiState>,
    caller: Caller,
    mut params: Params,
    headers: HeaderMap,
) -> Result<Sse<impl Stream<Item = Result<sse::Event, Infallible>>>, Problem> {
    let wanted = Wanted {
        scopes: caller.scopes(),
        scope: params.scope(),
        faults: params.switch("faults"),
    };
    params.finish()?;
    let resumed = headers.get("last-event-id").map(|id| {
        // An unknown id counts as a previous daemon's: all stored events, after a gap.
        id.to_str()
            .ok()
            .and_then(|id| id.parse().ok())
            .unwrap_or(EventId::ELSEWHERE)
    });
    let reader = Reader::new(&state, &caller, wanted, resumed);
    let events = futures_util::stream::unfold(reader, |mut reader| async {
        let event = reader.next().await?;
        Some((Ok(event), reader))
    });
    Ok(Sse::new(events))
}

/// Ticks while a stream is silent; the first tick is one heartbeat from now.
pub(super) fn heartbeat() -> Interval {
    let mut heartbeat = tokio::time::interval(HEARTBEAT);
    heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    heartbeat.reset();
    heartbeat
}

/// The filter of a stream.
#[derive(Debug)]
struct Wanted {
    /// The scopes that the caller may see.
    scopes: Scopes,
    /// Only this scope.
    scope: Option<String>,
    /// Only exchanges with an applied rule; other events are not affected.
    faults: bool,
}

impl Wanted {
    fn holds(&self, event: &Event) -> bool {
        let scope = match event {
            Event::Exchange(note) => &note.scope,
            Event::Chaos(event) => event.now.scope.as_str(),
            Event::Run { scope, .. } => scope,
        };
        let is_other = self.scope.as_ref().is_some_and(|wanted| wanted != scope);
        if is_other || !self.scopes.hold(scope) {
            return false;
        }
        match event {
            Event::Exchange(note) => !self.faults || note.had_fault("*"),
            Event::Chaos(_) | Event::Run { .. } => true,
        }
    }
}

/// The position of a stream.
struct Position {
    recorder: Recorder,
    last: EventId,
    /// Dropped events that were not reported to the client yet.
    gap: Option<EventGap>,
}

impl Position {
    /// The next events; the recorder counts those that were dropped.
    fn read(&mut self, limit: usize) -> Vec<(EventId, Event)> {
        let batch = self.recorder.events_after(self.last, limit);
        self.last = batch.last;
        self.gap = match (self.gap, batch.gap) {
            (Some(one), Some(other)) => Some(EventGap {
                missed: one.missed.zip(other.missed).map(|(one, other)| one + other),
            }),
            (one, other) => one.or(other),
        };
        batch.events
    }
}

/// A stream.
struct Reader {
    changes: watch::Receiver<()>,
    wanted: Wanted,
    position: Arc<Mutex<Position>>,
    ready: VecDeque<sse::Event>,
    heartbeat: Interval,
    stopping: CancellationToken,
    /// Cancelled when the client loses access.
    revoked: CancellationToken,
}

impl Reader {
    fn new(state: &ApiState, caller: &Caller, wanted: Wanted, resumed: Option<EventId>) -> Self {
        let heartbeat = heartbeat();
        // Subscribed before the newest id is read, so that no event is missed in between.
        let changes = state.recorder.changes();
        let newest = state.recorder.newest_event();
        let mut opening = sse::Event::default().retry(RETRY).comment("squall events");
        if resumed.is_none() {
            // A client that disconnects before the first event resumes from here.
            opening = opening.id(newest.to_string());
        }
        let position = Arc::new(Mutex::new(Position {
            recorder: state.recorder.clone(),
            last: resumed.unwrap_or(newest),
            gap: None,
        }));
        let weak = Arc::downgrade(&position);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(COUNTING).await;
                let Some(position) = weak.upgrade() else {
                    return;
                };
                lock(&position).read(0);
            }
        });
        Self {
            changes,
            wanted,
            position,
            ready: VecDeque::from([opening]),
            heartbeat,
            stopping: state.stopping.clone(),
            revoked: caller.ended(),
        }
    }

    /// The next event to send; `None` when the daemon stops, or the reader's token is revoked.
    async fn next(&mut self) -> Option<sse::Event> {
        loop {
            if self.revoked.is_cancelled() {
                return None;
            }
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            self.changes.mark_unchanged();
            if self.read() {
                continue;
            }
            tokio::select! {
                changed = self.changes.changed() => changed.ok()?,
                _ = self.heartbeat.tick() => {
                    // With the id of the last event read, so that a client with a strict filter does not resume
                    // from an old event.
                    let last = lock(&self.position).last.to_string();
                    let alive = sse::Event::default().id(last).comment("alive");
                    self.ready.push_back(alive);
                }
                () = self.stopping.cancelled() => return None,
                () = self.revoked.cancelled() => return None,
            }
        }
    }

    /// Reads new events from the log; returns whether there were any.
    fn read(&mut self) -> bool {
        let (events, gap) = {
            let mut position = lock(&self.position);
            (position.read(AT_ONCE), position.gap.take())
        };
        if let Some(gap) = gap {
            let missed = json!({ "missed": gap.missed });
            self.ready
                .push_back(sse::Event::default().event("gap").data(missed.to_string()));
        }
        for (id, event) in &events {
            if self.wanted.holds(event) {
                self.ready.push_back(written(*id, event));
            }
        }
        !events.is_empty() || gap.is_some()
    }
}

impl Drop for Reader {
    /// Counts the events that the client missed since the last count.
    fn drop(&mut self) {
        lock(&self.position).read(0);
    }
}

fn lock(position: &Mutex<Position>) -> MutexGuard<'_, Position> {
    position.lock().unwrap_or_else(PoisonError::into_inner)
}

fn written(id: EventId, event: &Event) -> sse::Event {
    let (name, data) = match event {
        Event::Exchange(note) => ("exchange", text(&note.to_record())),
        Event::Chaos(event) => ("chaos", text(&**event)),
        Event::Run { document, .. } => ("run", document.to_string()),
    };
    sse::Event::default()
        .id(id.to_string())
        .event(name)
        .data(data)
}

fn text(document: &impl Serialize) -> String {
    json!(document).to_string()
}
