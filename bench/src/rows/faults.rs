//! Rows with a rule in force: is a delay as long as it says, and what does reading a stream cost.

use anyhow::{Result, ensure};
use serde_json::json;

use super::{CONNECTIONS, at_least, at_most, median};
use crate::load::{Work, full};
use crate::route::Route;
use crate::stage::Stage;
use crate::steady::{Delays, at_rate};
use crate::streams::{EVENTS, STREAMS, Stream};
use crate::table::Row;
use crate::upstream::SMALL;

/// A `latency` fault of 100 ms at 500 requests a second.
pub(super) fn latency(stage: &Stage) -> Result<Vec<Row>> {
    let delays = match stage.squall() {
        None => None,
        Some(squall) => {
            let route = Route::to(squall.reverse);
            squall.chaos(&json!({ "network_faults": [{ "mode": "latency", "delay_ms": 100 }] }))?;
            let mut delays: Option<Delays> = None;
            for _ in 0..stage.rounds {
                // Every answer is counted byte for byte on the way.
                let more = at_rate(&route, &route.get("/"), SMALL.len(), 500, 80, stage.stretch)?;
                delays = Some(match delays {
                    Some(before) => before.merge(more),
                    None => more,
                });
            }
            squall.calm()?;
            delays
        }
    };
    let beyond = |figure: fn(&Delays) -> f64| {
        delays
            .as_ref()
            .map(|delays| (figure(delays) - 100_000.0) / 1000.0)
    };
    Ok(vec![Row {
        metric: "100 ms fault: min/p50/p99 beyond it, ms".into(),
        reached: Vec::new(),
        judged: vec![
            at_least(beyond(Delays::least), 0.0, 0.0),
            at_most(beyond(Delays::median), 1.4, 0.3),
            at_most(beyond(Delays::p99), 2.5, 1.0),
        ],
        must: "never early, ≤ +1.4/+2.5 ms, no lost byte",
        aim: "≤ +0.3/+1.0 ms",
    }])
}

/// A rule that reads every stream of a dialect and changes nothing, dialect by dialect.
pub(super) fn content(stage: &Stage) -> Result<Vec<Row>> {
    STREAMS
        .iter()
        .map(|stream| reading(stage, stream))
        .collect()
}

/// Tokens that no stream has.
const NEVER: u64 = 1_000_000;

fn reading(stage: &Stage, stream: &Stream) -> Result<Row> {
    let mut passing = Vec::new();
    let mut reading = Vec::new();
    if let Some(squall) = stage.squall() {
        let route = Route::to(squall.reverse);
        let work = Work::Request(route.post(stream.path, stream.body));
        let rule = json!({ "llm_faults": [{ "mode": "stream_cut", "after_tokens": NEVER }] });
        let process = Some(&squall.process);
        for _ in 0..stage.rounds {
            squall.calm()?;
            passing.push(full(&route, &work, CONNECTIONS, stage.stretch, process)?.cpu);
            squall.chaos(&rule)?;
            reading.push(full(&route, &work, CONNECTIONS, stage.stretch, process)?.cpu);
            ensure!(
                squall.gave_reason(&format!("of {NEVER} tokens"))?,
                "no stream of {} was read",
                stream.name
            );
        }
        squall.calm()?;
    }
    let both = (!passing.is_empty()).then(|| (median(passing), median(reading)));
    let told = both.map(|(without, with)| {
        (
            "Squall",
            format!("{without:.0} → {with:.0} µs per stream of {EVENTS} events"),
        )
    });
    Ok(Row {
        metric: format!(
            "a content rule on every stream of {}: CPU × of passing it",
            stream.name
        ),
        reached: told.into_iter().collect(),
        judged: vec![at_most(
            both.map(|(without, with)| with / without),
            1.6,
            1.25,
        )],
        must: "≤ 1.6×",
        aim: "≤ 1.25×",
    })
}
