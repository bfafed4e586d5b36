//! Rows about a process that does nothing: start-up, idle memory, idle connections.

use anyhow::Result;

use super::{at_most, median, turns};
use crate::idle::{Opening, per_connection};
use crate::squall::{Squall, Store};
use crate::stage::{Mode, Stage};
use crate::table::Row;

/// Starts in a row, of which the median counts.
const STARTS: usize = 7;

/// Idle memory, and the time from the start of the process to both ready lines. The interception
/// authority exists already, as at every start but the first.
pub(super) fn start(stage: &Stage) -> Result<Vec<Row>> {
    let mut memory = Vec::new();
    let mut times = Vec::new();
    if let Some(binary) = &stage.binary {
        let home = stage.dir.join("started");
        for turn in 0..=STARTS {
            let squall = Squall::start(binary, &home, stage.http, &stage.pki, Store::Memory)?;
            if turn > 0 {
                times.push(squall.started_in.as_secs_f64() * 1e3);
                memory.push(squall.process.resident()? as f64 / 1e6);
            }
        }
    }
    let known = !times.is_empty();
    Ok(vec![Row {
        metric: "idle memory MB / start ms".into(),
        reached: vec![(
            "H",
            format!("{:.1} MB", stage.floor().resident()? as f64 / 1e6),
        )],
        judged: vec![
            at_most(known.then(|| median(memory)), 40.0, 40.0),
            at_most(known.then(|| median(times)), 100.0, 100.0),
        ],
        must: "≤ 40 MB / 100 ms",
        aim: "the same",
    }])
}

/// Memory per idle connection, each of which has carried one request. Each daemon starts anew, so
/// that nothing an earlier row left in its allocator hides the growth.
pub(super) fn idle_connections(stage: &Stage) -> Result<Vec<Row>> {
    let connections = if stage.smoke { 500 } else { 5000 };
    let measure = |mode| {
        let fresh = stage.again()?;
        turns(&fresh, mode, |one| match one.process {
            Some(process) => per_connection(&one.route, connections, process, Opening::Request),
            None => Ok((0.0, 0)),
        })
    };
    let plain = measure(Mode::Reverse)?;
    let intercepted = measure(Mode::Intercept)?;
    let each = |figures: &(f64, u64)| figures.0;
    let total = |figures: &(f64, u64)| figures.1 as f64 / 1e6;
    let mut reached = plain.tell(" KB plain", each);
    reached.extend(intercepted.tell(" KB intercepted", each));
    if let (Some(plain), Some(intercepted)) = (
        plain.median("Squall", total),
        intercepted.median("Squall", total),
    ) {
        let whole = format!("{plain:.0}/{intercepted:.0} MB in all with {connections}");
        reached.push(("Squall", whole));
    }
    Ok(vec![Row {
        metric: "memory per idle connection, plain / intercepted KB".into(),
        reached,
        judged: vec![
            at_most(plain.median("Squall", each), 25.0, 12.0),
            at_most(intercepted.median("Squall", each), 50.0, 30.0),
        ],
        must: "≤ 25 / 50 KB",
        aim: "≤ 12 / 30 KB",
    }])
}
