//! Events of one run, from its beginning: server-sent events that resume.
//!
//! A stream stores only the number of its last event and one page of later ones. It reads no further page before
//! the client has read this one.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::response::sse::{self, Sse};
use futures_util::Stream;
use http::HeaderMap;
use squall_harness::run::RunRecord;
use tokio::sync::watch;
use tokio::time::Interval;
use tokio_util::sync::CancellationToken;

use super::events::{RETRY, heartbeat};
use crate::access::Caller;
use crate::runs::Runs;
use crate::state::ApiState;
use crate::store::RunEventRow;

/// Events taken from the store at a time.
const AT_ONCE: usize = 64;

/// Interval at which a shared store is read for events of other daemons.
const LOOK: Duration = Duration::from_millis(500);

/// Streams the events of a run from its beginning, or after `Last-Event-ID`.
pub(super) fn stream(
    state: &ApiState,
    caller: &Caller,
    run: RunRecord,
    headers: &HeaderMap,
) -> Sse<impl Stream<Item = Result<sse::Event, Infallible>> + use<>> {
    let resumed = headers.get("last-event-id");
    let last = resumed.and_then(|id| id.to_str().ok()?.trim().parse().ok());
    let reader = Reader {
        runs: Arc::clone(&state.runs),
        changes: state.runs.changes(),
        was_over: run.state.is_over(),
        run: run.id,
        last: last.unwrap_or(0).max(0),
        ready: VecDeque::from([sse::Event::default().retry(RETRY).comment("squall events")]),
        heartbeat: heartbeat(),
        is_over: false,
        stopping: state.stopping.clone(),
        revoked: caller.ended(),
    };
    Sse::new(futures_util::stream::unfold(reader, |mut reader| async {
        let event = reader.next().await?;
        Some((Ok(event), reader))
    }))
}

/// A stream.
struct Reader {
    runs: Arc<Runs>,
    changes: watch::Receiver<()>,
    run: String,
    /// Number of the last event read.
    last: i64,
    ready: VecDeque<sse::Event>,
    heartbeat: Interval,
    is_over: bool,
    /// All events of the run were stored by then.
    was_over: bool,
    stopping: CancellationToken,
    revoked: CancellationToken,
}

impl Reader {
    /// The next event to send; `None` when the run is over, the daemon stops, or the client loses access.
    async fn next(&mut self) -> Option<sse::Event> {
        loop {
            if self.revoked.is_cancelled() {
                return None;
            }
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            if self.is_over {
                return None;
            }
            self.changes.mark_unchanged();
            if self.read().await {
                continue;
            }
            if self.was_over {
                return None;
            }
            let look = async {
                if self.runs.is_shared() {
                    tokio::time::sleep(LOOK).await;
                } else {
                    // Only this daemon writes events.
                    std::future::pending::<()>().await;
                }
            };
            tokio::select! {
                () = look => {}
                changed = self.changes.changed() => changed.ok()?,
                _ = self.heartbeat.tick() => {
                    let alive = sse::Event::default().id(self.last.to_string()).comment("alive");
                    self.ready.push_back(alive);
                }
                () = self.stopping.cancelled() => return None,
                () = self.revoked.cancelled() => return None,
            }
        }
    }

    /// Reads new events from the store; returns whether there were any. While the store is away the caller
    /// retries.
    async fn read(&mut self) -> bool {
        let Ok(events) = self.runs.events(&self.run, self.last, AT_ONCE).await else {
            // Unread events may follow.
            self.was_over = false;
            return false;
        };
        for event in &events {
            self.last = event.ordinal;
            self.is_over = event.name == "done";
            self.ready.push_back(written(event));
        }
        !events.is_empty()
    }
}

fn written(event: &RunEventRow) -> sse::Event {
    sse::Event::default()
        .id(event.ordinal.to_string())
        .event(&event.name)
        .data(&event.data)
}
