//! A running recording: which exchanges it accepts, and when it is full.

use std::sync::{Arc, Mutex, MutexGuard};

use squall_journal::tape::Recorded;
use squall_proxy::tape::RecordingSink;
use tokio::sync::Notify;

use crate::lock;
use crate::store::{RecordingState, StoredRecording};

/// Limits of one recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordingBounds {
    /// Greatest number of exchanges. Default 10,000.
    pub exchanges: u64,
    /// Greatest sum of their bytes. Default 32 MiB.
    pub bytes: u64,
}

impl Default for RecordingBounds {
    fn default() -> Self {
        Self {
            exchanges: 10_000,
            bytes: 32 << 20,
        }
    }
}

/// A recording that runs, or has ended but is not fully written.
#[derive(Debug)]
pub(super) struct RunningRecording {
    pub(super) bounds: RecordingBounds,
    pub(super) wake: Arc<Notify>,
    pub(super) held: Mutex<RecordingQueue>,
}

#[derive(Debug)]
pub(super) struct RecordingQueue {
    pub(super) recording: StoredRecording,
    pub(super) waiting: Vec<Arc<Recorded>>,
}

impl RunningRecording {
    pub(super) fn held(&self) -> MutexGuard<'_, RecordingQueue> {
        lock(&self.held)
    }

    pub(super) fn end(&self, state: RecordingState, at: u64) {
        let mut held = self.held();
        if held.recording.state == RecordingState::Recording {
            held.recording.state = state;
            held.recording.ended_at = Some(at);
        }
    }
}

/// Receives exchanges from the proxy.
pub(super) struct QueueFiller(pub(super) Arc<RunningRecording>);

impl RecordingSink for QueueFiller {
    fn keep(&self, recorded: &Arc<Recorded>) {
        let mut held = self.0.held();
        let RecordingQueue { recording, waiting } = &mut *held;
        let size = &mut recording.size;
        match recording.state {
            RecordingState::Recording => {}
            RecordingState::Full => {
                size.left_out += 1;
                return;
            }
            // It ended before the exchange did.
            RecordingState::Stopped | RecordingState::Cut => return,
        }
        let bytes = size.bytes + recorded.weight() as u64;
        if size.exchanges >= self.0.bounds.exchanges || bytes > self.0.bounds.bytes {
            recording.state = RecordingState::Full;
            recording.ended_at = Some(recorded.started_ms + recorded.duration_ms);
            size.left_out += 1;
        } else {
            size.exchanges += 1;
            size.bytes = bytes;
            waiting.push(Arc::clone(recorded));
        }
        drop(held);
        self.0.wake.notify_one();
    }
}
