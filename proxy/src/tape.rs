//! Recordings and tapes, by scope.
//!
//! ```text
//! recording of a scope ─┐
//! tape of a scope ──────┴─▶ Tapes ─▶ a mark on what is in force for the scope
//!                                          │ an exchange begins
//!                                          ▼
//!                       marked: look here ─┬─▶ copy heads and bodies for the recordings
//!                                          └─▶ answer from the tape
//! ```
//!
//! Exchanges of other scopes never get here: they check the mark together with the capture level.

mod body;
pub(crate) mod key;
mod playing;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};

use squall_journal::quota::{OverQuota, Quota};
use squall_journal::scopes::Scopes;
use squall_journal::tape::Recorded;

use crate::body::buffer::Inspect;
use crate::lock::lock;

pub(crate) use self::body::played;
pub use self::playing::{Counts, Playing, PlayingOptions};
pub(crate) use self::playing::{Played, TapeRefusal};

/// Most bytes of captured bodies that wait for recordings. More are left out, and the recording
/// marks them as missing.
const IN_FLIGHT: u64 = 64 << 20;

/// Most scopes that play a tape at the same time. Each may hold a session of 16 MiB. Scopes of runs are limited with
/// the runs.
const PLAYING: Quota = Quota {
    what: "scopes that play a tape",
    each: 64,
    all: 256,
    remedy: "take one of the tapes away first",
};

/// The scopes of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordedScopes {
    /// One scope.
    Scope(String),
    /// All scopes that a caller may see.
    Seen(Scopes),
}

impl RecordedScopes {
    /// Whether it includes a scope.
    pub fn holds(&self, scope: &str) -> bool {
        match self {
            Self::Scope(one) => one == scope,
            Self::Seen(scopes) => scopes.hold(scope),
        }
    }
}

/// Stores recorded exchanges.
pub trait RecordingSink: Send + Sync {
    /// An exchange ended; its secrets are redacted. Called on the journal's thread, so it must not
    /// block.
    fn keep(&self, recorded: &Arc<Recorded>);
}

/// A recording in progress.
pub struct Recording {
    id: String,
    of: RecordedScopes,
    keep: Box<dyn RecordingSink>,
}

impl Recording {
    /// A recording of these scopes' traffic.
    pub fn new(
        id: impl Into<String>,
        of: RecordedScopes,
        keep: Box<dyn RecordingSink>,
    ) -> Arc<Self> {
        Arc::new(Self {
            id: id.into(),
            of,
            keep,
        })
    }

    /// Passes an exchange to the sink.
    pub(crate) fn keep(&self, recorded: &Arc<Recorded>) {
        self.keep.keep(recorded);
    }
}

impl fmt::Debug for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recording")
            .field("id", &self.id)
            .field("of", &self.of)
            .finish_non_exhaustive()
    }
}

/// All recordings and tapes.
#[derive(Debug)]
pub struct Tapes {
    table: Mutex<TapeTable>,
    in_flight: Inspect,
}

impl Default for Tapes {
    fn default() -> Self {
        Self {
            table: Mutex::default(),
            in_flight: Inspect::new(key::BODY as u64, IN_FLIGHT),
        }
    }
}

#[derive(Debug, Default)]
struct TapeTable {
    recordings: Vec<Arc<Recording>>,
    playing: HashMap<String, Arc<Playing>>,
}

impl Tapes {
    /// Whether exchanges of a scope must check recordings or tapes.
    pub(crate) fn concern(&self, scope: &str) -> bool {
        let table = self.table();
        let recorded = || table.recordings.iter().any(|one| one.of.holds(scope));
        table.playing.contains_key(scope) || recorded()
    }

    /// The recordings that an exchange of this scope belongs to.
    pub(crate) fn recordings(&self, scope: &str) -> Vec<Arc<Recording>> {
        let table = self.table();
        let found = table.recordings.iter().filter(|one| one.of.holds(scope));
        found.cloned().collect()
    }

    /// The tape of a scope.
    pub fn playing(&self, scope: &str) -> Option<Arc<Playing>> {
        self.table().playing.get(scope).cloned()
    }

    /// Scopes that play a tape, and their tapes.
    pub fn all_playing(&self) -> Vec<(String, Arc<Playing>)> {
        let table = self.table();
        let all = table.playing.iter();
        all.map(|(scope, tape)| (scope.clone(), Arc::clone(tape)))
            .collect()
    }

    /// Memory limit of captured bodies.
    pub(crate) fn room(&self) -> &Inspect {
        &self.in_flight
    }

    pub(crate) fn record(&self, recording: Arc<Recording>) {
        self.change(|table| table.recordings.push(recording));
    }

    /// Stops a recording; returns whether it existed.
    pub(crate) fn stop(&self, id: &str) -> bool {
        self.change(|table| {
            let before = table.recordings.len();
            table.recordings.retain(|one| one.id != id);
            table.recordings.len() < before
        })
    }

    /// Sets the tape of a scope, in place of a previous one; `owner` returns the workspace of a
    /// scope.
    pub(crate) fn play(
        &self,
        scope: &str,
        tape: Arc<Playing>,
        owner: impl for<'s> Fn(&'s str) -> &'s str,
    ) -> Result<(), OverQuota> {
        self.change(|table| {
            if !table.playing.contains_key(scope) {
                let held = table.playing.keys().map(|scope| owner(scope));
                PLAYING.check(owner(scope), held)?;
            }
            table.playing.insert(scope.to_owned(), tape);
            Ok(())
        })
    }

    /// Sets the tape of a run's scope.
    pub(crate) fn play_in_run(&self, scope: &str, tape: Arc<Playing>) {
        self.change(|table| table.playing.insert(scope.to_owned(), tape));
    }

    /// Removes a scope's tape, if any.
    pub(crate) fn take_out(&self, scope: &str) {
        self.change(|table| table.playing.remove(scope));
    }

    fn change<T>(&self, change: impl FnOnce(&mut TapeTable) -> T) -> T {
        change(&mut self.table())
    }

    fn table(&self) -> MutexGuard<'_, TapeTable> {
        lock(&self.table)
    }
}
