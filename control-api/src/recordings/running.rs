//! A running recording: which exchanges it accepts, and when it is full.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use squall_journal::tape::Recorded;
use squall_proxy::tape::RecordingSink;
use tokio::sync::Notify;

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
pub(super) struct Running {
    pub(super) bounds: RecordingBounds,
    pub(super) wake: Arc<Notify>,
    pub(super) held: Mutex<Held>,
}

#[derive(Debug)]
pub(super) struct Held {
    pub(super) recording: StoredRecording,
    pub(super) waiting: Vec<Arc<Recorded>>,
}

impl Running {
    pub(super) fn held(&self) -> MutexGuard<'_, Held> {
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
pub(super) struct Keeper(pub(super) Arc<Running>);

impl RecordingSink for Keeper {
    fn keep(&self, recorded: &Arc<Recorded>) {
        let mut held = self.0.held();
        let Held { recording, waiting } = &mut *held;
        let tally = &mut recording.tally;
        match recording.state {
            RecordingState::Recording => {}
            RecordingState::Full => {
                tally.left_out += 1;
                return;
            }
            // It ended before the exchange did.
            RecordingState::Stopped | RecordingState::Cut => return,
        }
        let bytes = tally.bytes + recorded.weight() as u64;
        if tally.exchanges >= self.0.bounds.exchanges || bytes > self.0.bounds.bytes {
            recording.state = RecordingState::Full;
            recording.ended_at = Some(recorded.started_ms + recorded.duration_ms);
            tally.left_out += 1;
        } else {
            tally.exchanges += 1;
            tally.bytes = bytes;
            waiting.push(Arc::clone(recorded));
        }
        drop(held);
        self.0.wake.notify_one();
    }
}

/// A poisoned lock is usable: the value is consistent between any two statements.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
