//! Recordings: their way into the store, and their end.
//!
//! ```text
//! journal's thread ─ keep() ─▶ queue of a recording ─▶ writer ─▶ Store
//!                       └ over the limit of a recording: full, and left out
//! ```
//!
//! A recording and its queue are bounded in exchanges and bytes. While the store is away the writer retries. If
//! the daemon is killed, unwritten exchanges are lost and the recording becomes `cut`.

mod running;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use squall_journal::quota::Quota;
use squall_journal::scopes::Scopes;
use squall_journal::tape::{Recorded, Session};
use squall_proxy::chaos::Chaos;
use squall_proxy::recorder::Recorder;
use squall_proxy::tape::{RecordedScopes, Recording};
use tokio::sync::Notify;

pub use self::running::RecordingBounds;
use self::running::{QueueFiller, RecordingQueue, RunningRecording};
use crate::lock;
use crate::outage::Outage;
use crate::problem::ApiProblem;
use crate::readiness::BrokenFile;
use crate::store::{
    RecordedRow, RecordingSize, RecordingState, Store, StoreError, StoredRecording,
};
use crate::tasks;

/// Recordings that may run at once in one daemon. While the store is away each takes up to 32 MiB of memory.
const RUNNING: Quota = Quota {
    what: "recordings that run",
    each: 16,
    all: 64,
    remedy: "stop one of them first",
};

/// Recordings that a workspace keeps; beyond them the oldest finished ones are deleted.
const KEPT: u64 = 100;

/// Exchanges in one transaction.
const BATCH: usize = 64;

/// Interval at which a daemon marks its recordings as alive and retries failed writes.
const HEARTBEAT: Duration = Duration::from_secs(5);

/// After this silence a recording of another daemon counts as cut.
const SILENCE_MS: u64 = 30_000;

/// All recordings of one daemon.
#[derive(Debug)]
pub struct Recordings {
    store: Store,
    recorder: Recorder,
    chaos: Arc<Chaos>,
    bounds: RecordingBounds,
    daemon: String,
    running: Mutex<BTreeMap<String, Arc<RunningRecording>>>,
    /// Serializes starts, so that two recordings cannot both take the last free place.
    beginning: tokio::sync::Mutex<()>,
    /// Serializes batches.
    turn: tokio::sync::Mutex<()>,
    wake: Arc<Notify>,
    outage: Outage,
}

/// A recording to begin.
#[derive(Debug, Clone, Default)]
pub struct NewRecording {
    /// Its workspace.
    pub workspace: String,
    /// A title.
    pub name: Option<String>,
    /// Its scope; `None`: every scope in `scopes`.
    pub scope: Option<String>,
    /// The scopes that the caller may see.
    pub scopes: Scopes,
}

impl Recordings {
    /// With a store, for the daemon with this id. Requires the runtime that will write.
    pub fn over(
        store: Store,
        recorder: Recorder,
        chaos: Arc<Chaos>,
        bounds: RecordingBounds,
        daemon: String,
    ) -> Arc<Self> {
        let wake = Arc::new(Notify::new());
        let recordings = Arc::new(Self {
            store,
            recorder,
            chaos,
            bounds,
            daemon,
            running: Mutex::default(),
            beginning: tokio::sync::Mutex::default(),
            turn: tokio::sync::Mutex::default(),
            wake: Arc::clone(&wake),
            outage: Outage::of("recordings are not written"),
        });
        let weak = Arc::downgrade(&recordings);
        tokio::spawn(async move {
            loop {
                // It checks all recordings after a wake-up as after a timeout.
                let _ = tokio::time::timeout(HEARTBEAT, wake.notified()).await;
                let Some(recordings) = weak.upgrade() else {
                    return;
                };
                recordings.write_all().await;
            }
        });
        recordings
    }

    /// Marks recordings of a previous daemon as cut. In a shared store a recording counts as cut after a silence.
    pub async fn look_back(&self) -> Result<(), StoreError> {
        if self.store.is_shared() {
            return Ok(());
        }
        let cut = self.store.cut_recordings().await?;
        if cut > 0 {
            tracing::warn!(
                "{cut} recordings were cut when the daemon ended; what they have is there"
            );
        }
        Ok(())
    }

    /// Begins a recording.
    pub async fn begin(&self, new: NewRecording) -> Result<StoredRecording, ApiProblem> {
        let _turn = self.beginning.lock().await;
        RUNNING
            .check(&new.workspace, self.holders())
            .map_err(|over| ApiProblem::conflict(over.to_string()))?;
        let now = self.now();
        let recording = StoredRecording {
            id: self.recorder.begin(Instant::now()).to_string(),
            workspace: new.workspace,
            name: new.name,
            scope: new.scope.clone(),
            state: RecordingState::Recording,
            daemon: self.daemon.clone(),
            started_at: now,
            seen_at: now,
            ended_at: None,
            size: RecordingSize::default(),
        };
        self.store.add_recording(&recording, KEPT).await?;
        let running = Arc::new(RunningRecording {
            bounds: self.bounds,
            wake: Arc::clone(&self.wake),
            held: Mutex::new(RecordingQueue {
                recording: recording.clone(),
                waiting: Vec::new(),
            }),
        });
        let of = new
            .scope
            .map_or(RecordedScopes::Seen(new.scopes), RecordedScopes::Scope);
        let keeper = Box::new(QueueFiller(Arc::clone(&running)));
        self.running().insert(recording.id.clone(), running);
        self.chaos
            .start_recording(Recording::new(recording.id.clone(), of, keeper));
        Ok(recording)
    }

    /// Ends a recording. It holds all exchanges that have ended by now. A finished one does not change.
    pub async fn stop(&self, workspace: &str, id: &str) -> Result<StoredRecording, ApiProblem> {
        let Some(running) = self.of(workspace, id) else {
            let stored = self.find(workspace, id).await?;
            let stored = stored.ok_or_else(|| unknown(id))?;
            if stored.state == RecordingState::Recording {
                let daemon = stored.daemon;
                return Err(ApiProblem::conflict(format!(
                    "recording `{id}` is made by another daemon, `{daemon}`; stop it there"
                )));
            }
            return Ok(stored);
        };
        tasks::flushed(&self.recorder).await;
        self.chaos.stop_recording(id);
        running.end(RecordingState::Stopped, self.now());
        self.write(&running).await?;
        let recording = running.held().recording.clone();
        Ok(recording)
    }

    /// Recordings of a workspace, newest first, those older than `before` (empty: from the newest).
    pub async fn list(
        &self,
        workspace: &str,
        before: &str,
        limit: usize,
    ) -> Result<Vec<StoredRecording>, StoreError> {
        let mut listed = self.store.recordings(workspace, before, limit).await?;
        for recording in &mut listed {
            self.bring_up_to_date(recording);
        }
        Ok(listed)
    }

    /// One recording.
    pub async fn find(
        &self,
        workspace: &str,
        id: &str,
    ) -> Result<Option<StoredRecording>, StoreError> {
        let mut found = self.store.recording(workspace, id).await?;
        if let Some(recording) = &mut found {
            self.bring_up_to_date(recording);
        }
        Ok(found)
    }

    /// Its exchanges so far, in order of their start.
    pub async fn recorded(&self, recording: &StoredRecording) -> Result<Vec<Recorded>, StoreError> {
        if let Some(running) = self.of(&recording.workspace, &recording.id) {
            tasks::flushed(&self.recorder).await;
            self.write(&running).await?;
        }
        self.store.recorded(&recording.id).await
    }

    /// A recording as a replay session.
    pub fn session(recording: &StoredRecording, recorded: &[Recorded]) -> Session {
        Session::of_recording(&recording.id, recording.name.as_deref(), recorded)
    }

    /// Why recordings cannot be written at the moment.
    pub fn broken(&self) -> Option<BrokenFile> {
        self.outage.broken()
    }

    /// Ends all recordings, as far as the store accepts them.
    pub async fn stop_all(&self) {
        let all: Vec<_> = self.running().values().cloned().collect();
        if !all.is_empty() {
            tasks::flushed(&self.recorder).await;
        }
        for running in all {
            let id = running.held().recording.id.clone();
            self.chaos.stop_recording(&id);
            running.end(RecordingState::Stopped, self.now());
            if let Err(error) = self.write(&running).await {
                tracing::warn!(recording = id, %error, "a recording could not be written to its end");
            }
        }
    }

    /// Memory's state for a recording that runs here; cut for one of a previous or silent daemon.
    fn bring_up_to_date(&self, recording: &mut StoredRecording) {
        if let Some(running) = self.of(&recording.workspace, &recording.id) {
            recording.clone_from(&running.held().recording);
        } else if recording.state == RecordingState::Recording
            && (recording.daemon == self.daemon
                || self.now().saturating_sub(recording.seen_at) > SILENCE_MS)
        {
            recording.state = RecordingState::Cut;
            recording.ended_at = Some(recording.seen_at);
        }
    }

    async fn write_all(&self) {
        let all: Vec<_> = self.running().values().cloned().collect();
        for running in all {
            let ended = {
                let recording = &mut running.held().recording;
                recording.seen_at = self.now();
                (recording.state != RecordingState::Recording).then(|| recording.id.clone())
            };
            if let Some(id) = ended {
                self.chaos.stop_recording(&id);
            }
            // `broken` reports the error; the next round retries.
            let _ = self.write(&running).await;
        }
    }

    /// Writes the queue of a recording; a finished and written one is removed.
    async fn write(&self, running: &RunningRecording) -> Result<(), StoreError> {
        let _turn = self.turn.lock().await;
        loop {
            let (recording, batch) = {
                let held = running.held();
                let batch = held.waiting.iter().take(BATCH).cloned().collect::<Vec<_>>();
                let mut recording = held.recording.clone();
                if batch.len() < held.waiting.len() {
                    // Its end is only written with its last exchanges.
                    recording.state = RecordingState::Recording;
                    recording.ended_at = None;
                }
                (recording, batch)
            };
            let rows: Vec<_> = batch.iter().map(|one| RecordedRow::of(one)).collect();
            let written = self.store.keep_recorded(&recording, &rows).await;
            written.inspect_err(|error| self.outage.begin(error))?;
            self.outage.end();
            let mut held = running.held();
            held.waiting.drain(..batch.len());
            if held.waiting.is_empty() {
                if recording.state != RecordingState::Recording {
                    self.running().remove(&recording.id);
                }
                return Ok(());
            }
        }
    }

    fn of(&self, workspace: &str, id: &str) -> Option<Arc<RunningRecording>> {
        let found = self.running().get(id).cloned()?;
        let is_theirs = found.held().recording.workspace == workspace;
        is_theirs.then_some(found)
    }

    /// The workspace of each running recording.
    fn holders(&self) -> Vec<String> {
        // The writer takes the locks in the other order.
        let running: Vec<_> = self.running().values().cloned().collect();
        let of = |running: &Arc<RunningRecording>| running.held().recording.workspace.clone();
        running.iter().map(of).collect()
    }

    fn now(&self) -> u64 {
        self.recorder.unix_ms(Instant::now())
    }

    fn running(&self) -> MutexGuard<'_, BTreeMap<String, Arc<RunningRecording>>> {
        lock(&self.running)
    }
}

/// The error for a recording that does not exist.
pub(crate) fn unknown(id: &str) -> ApiProblem {
    let id: String = id.chars().take(64).collect();
    ApiProblem::not_found(format!("there is no recording `{id}`"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use squall_proxy::tape::RecordingSink as _;

    use super::*;

    fn exchange(id: u32) -> Arc<Recorded> {
        let entry = json!({
            "id": format!("{id:04}"), "scope": "default", "started_ms": 5, "kind": "tool",
            "dialect": null, "outcome": "ok", "fingerprint": 1, "input": null, "answer": null,
            "request": { "method": "GET", "url": "http://h/", "headers": [], "body": "", "bytes": 0,
                "over_limit": false },
            "version": "HTTP/1.1", "response_bytes": 0, "duration_ms": 3, "faults": [],
        });
        Arc::new(serde_json::from_value(entry).expect("an exchange"))
    }

    fn recordings(bounds: RecordingBounds) -> (Arc<Recordings>, Arc<Chaos>) {
        use squall_profiles::library::Library;
        use squall_profiles::tools::ToolNames;
        use squall_proxy::metrics::Metrics;
        use squall_proxy::recorder::RecorderOptions;
        let metrics = Arc::new(Metrics::new("0"));
        let recorder = Recorder::start(RecorderOptions::default(), Arc::clone(&metrics));
        let recorder = recorder.expect("a thread");
        let chaos = Chaos::new(
            Library::default(),
            ToolNames::default(),
            squall_proxy::chaos::Defaults::default(),
            recorder.clone(),
            metrics,
        );
        let store = Store::in_memory();
        let recordings = Recordings::over(
            store,
            recorder,
            Arc::clone(&chaos),
            bounds,
            "this".to_owned(),
        );
        (recordings, chaos)
    }

    fn new_recording() -> NewRecording {
        NewRecording {
            workspace: "default".to_owned(),
            ..NewRecording::default()
        }
    }

    #[tokio::test]
    async fn a_recording_that_is_full_ends_by_itself_and_says_what_it_left_out() {
        for (exchanges, bytes) in [(3, u64::MAX), (u64::MAX, 3 * 530)] {
            let (recordings, _) = recordings(RecordingBounds { exchanges, bytes });
            let begun = recordings.begin(new_recording()).await.expect("it begins");
            let keeper = QueueFiller(recordings.of("default", &begun.id).expect("it runs"));
            for id in 0..5 {
                keeper.keep(&exchange(id));
            }
            // Independent of the writer's progress.
            let held = recordings.recorded(&begun).await.expect("a store");
            assert_eq!(held.len(), 3, "{exchanges} {bytes}");
            let found = recordings
                .find("default", &begun.id)
                .await
                .expect("a store");
            let found = found.expect("a recording");
            assert_eq!(found.state, RecordingState::Full);
            assert_eq!((found.size.exchanges, found.ended_at), (3, Some(8)));
            let stopped = recordings
                .stop("default", &begun.id)
                .await
                .expect("it has ended");
            assert_eq!(stopped.state, RecordingState::Full, "it stays so");
        }
    }

    #[tokio::test]
    async fn what_is_recorded_is_written_without_anybody_asking() {
        let (recordings, _) = recordings(RecordingBounds::default());
        let begun = recordings.begin(new_recording()).await.expect("it begins");
        let keeper = QueueFiller(recordings.of("default", &begun.id).expect("it runs"));
        keeper.keep(&exchange(1));
        while recordings
            .store
            .recorded(&begun.id)
            .await
            .expect("a store")
            .is_empty()
        {
            tokio::task::yield_now().await;
        }
        let stored = recordings.store.recording("default", &begun.id).await;
        let stored = stored.expect("a store").expect("a recording");
        assert_eq!(stored.size.exchanges, 1);
        recordings.stop_all().await;
        let stored = recordings.find("default", &begun.id).await;
        let stored = stored.expect("a store").expect("a recording");
        assert_eq!(stored.state, RecordingState::Stopped);
        keeper.keep(&exchange(2));
        assert_eq!(
            recordings.recorded(&stored).await.expect("a store").len(),
            1
        );
    }

    #[tokio::test]
    async fn a_recording_of_a_daemon_that_says_nothing_was_cut() {
        let (recordings, _) = recordings(RecordingBounds::default());
        let now = recordings.now();
        for (id, daemon, seen_at, expected) in [
            ("a", "another", now, RecordingState::Recording),
            ("b", "another", now - SILENCE_MS - 1000, RecordingState::Cut),
            ("c", "this", now, RecordingState::Cut),
        ] {
            let recording = StoredRecording {
                id: id.to_owned(),
                workspace: "default".to_owned(),
                name: None,
                scope: None,
                state: RecordingState::Recording,
                daemon: daemon.to_owned(),
                started_at: 1,
                seen_at,
                ended_at: None,
                size: RecordingSize::default(),
            };
            recordings
                .store
                .add_recording(&recording, 9)
                .await
                .expect("a store");
            let found = recordings.find("default", id).await.expect("a store");
            assert_eq!(found.map(|found| found.state), Some(expected), "{id}");
        }
        let refused = recordings
            .stop("default", "a")
            .await
            .expect_err("elsewhere");
        assert!(refused.to_string().contains("another daemon"), "{refused}");
    }
}
