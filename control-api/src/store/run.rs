//! Runs and what happened in them.
//!
//! A run belongs to the daemon that took it, which promises again and again to be there (its lease, by
//! the database's clock). What it writes is written only while the run is still its own: once another has
//! marked the run as errored, it is over.

use serde_json::json;
use squall_harness::run::{RunKind, RunRecord, RunState};

/// A run that is written for the first time.
#[derive(Debug, Clone)]
pub struct NewRun<'a> {
    /// Whose.
    pub workspace: &'a str,
    /// The run; its cells are empty.
    pub record: &'a RunRecord,
    /// How long its daemon is trusted to be there, milliseconds.
    pub lease_ms: i64,
    /// What happened first.
    pub events: &'a [RunEventRow],
}

/// What is written of a run that has come further.
#[derive(Debug, Clone)]
pub struct RunStep<'a> {
    /// The state that it is in so far; nothing is written if it is in another.
    pub from: RunState,
    /// The run from now on; its state is the new one.
    pub record: &'a RunRecord,
    /// What happened.
    pub events: &'a [RunEventRow],
}

/// Something that happened in a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunEventRow {
    /// Which it is in its run, from 1 without holes.
    pub ordinal: i64,
    /// `state`, `progress`, `cell`, `score` or `done`.
    pub name: String,
    /// A JSON document.
    pub data: String,
}

/// Which runs are wanted; every part that is given must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// How far they are.
    pub state: Option<RunState>,
    /// What they try.
    pub kind: Option<RunKind>,
    /// Only those asked for before this one.
    pub before: Option<String>,
}

/// Runs that nobody executes any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Abandoned<'a> {
    /// Those of this daemon, which has just started.
    OfDaemon(&'a str),
    /// Those whose daemon has not kept its promise to be there.
    Expired,
}

/// A run that was marked as errored because nobody executes it.
#[derive(Debug, Clone, PartialEq)]
pub struct GivenUp {
    /// Whose it is.
    pub workspace: String,
    /// What was written of it before.
    pub before: RunRecord,
    /// What is written of it now.
    pub after: RunRecord,
}

/// A run as it is stored: the run without its cells, and its cells.
pub(super) fn written(record: &RunRecord) -> (String, String) {
    // As a tree the cells of a large run take hundreds of megabytes.
    let cells = serde_json::to_string(&record.cells).expect("cells are JSON");
    let mut bare = record.clone();
    bare.cells.clear();
    let mut document = json!(bare);
    document.as_object_mut().and_then(|run| run.remove("cells"));
    (document.to_string(), cells)
}

/// Reads a run back; `None` for one that this version cannot read.
pub(super) fn read(record: &str, cells: &str) -> Option<RunRecord> {
    let mut run: RunRecord = serde_json::from_str(record)
        .inspect_err(|error| tracing::warn!(%error, "a run in the store cannot be read"))
        .ok()?;
    run.cells = serde_json::from_str(cells)
        .inspect_err(|error| tracing::warn!(%error, run = run.id, "a run's cells cannot be read"))
        .ok()?;
    Some(run)
}
