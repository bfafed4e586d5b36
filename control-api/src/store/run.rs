//! Runs and their events.
//!
//! A run belongs to the daemon that accepted it, which renews a lease on it by the database's clock. The daemon
//! can write to the run only while the run is its own: once another daemon has marked it as errored, it is over.

use serde_json::json;
use squall_harness::run::{InvariantRecord, RunKind, RunRecord, RunState};

/// A new run.
#[derive(Debug, Clone)]
pub struct NewRun<'a> {
    /// Its workspace.
    pub workspace: &'a str,
    /// The run; its cells are empty.
    pub record: &'a RunRecord,
    /// Length of its daemon's lease, milliseconds.
    pub lease_ms: i64,
    /// Its first events.
    pub events: &'a [RunEventRow],
    /// The request, if daemons share its scenarios.
    pub posted: Option<&'a str>,
}

/// A change of a run.
#[derive(Debug, Clone)]
pub struct RunStep<'a> {
    /// Its expected current state; in another state nothing is written.
    pub from: RunState,
    /// The run after the change, with its new state.
    pub record: &'a RunRecord,
    /// The events of the change.
    pub events: &'a [RunEventRow],
}

/// An event of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunEventRow {
    /// Its number in the run, from 1 without gaps.
    pub ordinal: i64,
    /// `state`, `progress`, `cell`, `score` or `done`.
    pub name: String,
    /// A JSON document.
    pub data: String,
}

/// A filter of runs; every part that is set must match.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// Their state.
    pub state: Option<RunState>,
    /// Their kind.
    pub kind: Option<RunKind>,
    /// Their suite's name.
    pub name: Option<String>,
    /// Only runs created before this one.
    pub before: Option<String>,
    /// Only parts of this spread run; `None`: no parts of runs.
    pub part_of: Option<String>,
}

/// Runs without a daemon that executes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Abandoned<'a> {
    /// Those of this daemon, which has just started.
    OfDaemon(&'a str),
    /// Those with an expired lease.
    Expired,
}

/// A run that was marked as errored because no daemon executes it.
#[derive(Debug, Clone, PartialEq)]
pub struct GivenUp {
    /// Its workspace.
    pub workspace: String,
    /// The run before.
    pub before: RunRecord,
    /// The run after.
    pub after: RunRecord,
}

/// A run as stored: the run without its cells, and the cells.
pub(super) fn written(record: &RunRecord) -> (String, String) {
    // A JSON tree of the cells of a large run would take hundreds of megabytes.
    let cells = serde_json::to_string(&record.cells).expect("cells are JSON");
    let mut bare = record.clone();
    bare.invariants = InvariantRecord::of(&bare.cells);
    bare.cells.clear();
    let mut document = json!(bare);
    document.as_object_mut().and_then(|run| run.remove("cells"));
    (document.to_string(), cells)
}

/// Parses a stored run; `None` for one that this version cannot read.
pub(super) fn read(record: &str, cells: &str) -> Option<RunRecord> {
    let mut run: RunRecord = serde_json::from_str(record)
        .inspect_err(|error| tracing::warn!(%error, "a run in the store cannot be read"))
        .ok()?;
    run.cells = serde_json::from_str(cells)
        .inspect_err(|error| tracing::warn!(%error, run = run.id, "a run's cells cannot be read"))
        .ok()?;
    Some(run)
}
