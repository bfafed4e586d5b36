//! Rows on model calls over WebSocket: what the proxy adds to a message, and what an idle one costs.

use anyhow::Result;
use serde_json::json;

use super::latency::{added, told};
use super::{Scores, at_most, between};
use crate::idle::{Opening, per_connection};
use crate::stage::{Contestant, Mode, Stage};
use crate::steady::{cpu_each, events, messages};
use crate::table::Row;

/// Delay and CPU of a message that passes, and of one that a content rule reads; idle sockets.
pub(super) fn sockets(stage: &Stage) -> Result<Vec<Row>> {
    let delay = || turns(stage, |one| messages(&one.route, 4, stage.stretch));
    let cpu = || {
        turns(stage, |one| {
            cpu_each(one.process, || messages(&one.route, 1, stage.stretch))
        })
    };
    let event = turns(stage, |one| {
        cpu_each(one.process, || events(&one.route, 1, stage.stretch))
    })?;
    let (passing, passing_cpu) = (delay()?, cpu()?);
    // It reads every message and changes none.
    let rule = json!({ "llm_faults": [{ "mode": "stream_cut", "after_tokens": 1_000_000 }] });
    if let Some(squall) = stage.squall() {
        squall.chaos(&rule)?;
    }
    let (read, read_cpu) = (delay()?, cpu()?);
    if let Some(squall) = stage.squall() {
        squall.calm()?;
    }
    let of_event = |scores: &Scores<f64>| {
        let of = |scores: &Scores<f64>| scores.median("Squall", |cpu| *cpu);
        Some(of(scores)? / of(&event)?)
    };
    let each = [
        ("passing", &passing_cpu),
        ("read", &read_cpu),
        ("SSE event", &event),
    ];
    let cpus = each.iter().filter_map(|(what, scores)| {
        let cpu = scores.median("Squall", |cpu| *cpu)?;
        Some(("Squall", format!("{what} {cpu:.1} µs")))
    });
    Ok(vec![
        Row {
            metric: "WebSocket message delay, passing, added p50/p99 µs".into(),
            reached: told(&passing),
            judged: added(&passing, [80.0, 300.0], [45.0, 90.0]),
            must: "≤ 80/300 µs",
            aim: "≤ 45/90 µs",
        },
        Row {
            metric: "WebSocket message delay, a content rule, added p50/p99 µs".into(),
            reached: told(&read),
            judged: added(&read, [150.0, 500.0], [80.0, 200.0]),
            must: "≤ 150/500 µs",
            aim: "≤ 80/200 µs",
        },
        Row {
            metric: "CPU per WebSocket message, passing / a content rule, to an SSE event's".into(),
            reached: cpus.collect(),
            judged: vec![
                at_most(of_event(&passing_cpu), 1.5, 1.2),
                at_most(of_event(&read_cpu), 2.0, 1.5),
            ],
            must: "≤ 1.5 / 2",
            aim: "≤ 1.2 / 1.5",
        },
        idle(stage)?,
    ])
}

/// Memory of sockets on which nothing was sent.
fn idle(stage: &Stage) -> Result<Row> {
    const SOCKETS: usize = 1000;
    let fresh = stage.again()?;
    let memory = turns(&fresh, |one| match one.process {
        Some(process) => per_connection(&one.route, SOCKETS, process, Opening::WebSocket),
        None => Ok((0.0, 0)),
    })?;
    let each = memory.median("Squall", |figures| figures.0);
    let total = memory.median("Squall", |figures| figures.1 as f64 / 1e6);
    let total = total.map(|total| ("Squall", format!("{total:.0} MB in all with {SOCKETS}")));
    Ok(Row {
        metric: "memory per idle WebSocket of model calls, KB".into(),
        reached: total.into_iter().collect(),
        judged: vec![at_most(each, 60.0, 40.0)],
        must: "≤ 60 KB",
        aim: "≤ 40 KB",
    })
}

/// Direct and Squall: the floor passes no upgrades.
fn turns<T>(stage: &Stage, turn: impl FnMut(&Contestant<'_>) -> Result<T>) -> Result<Scores<T>> {
    let mut contestants = stage.contestants(Mode::Reverse)?;
    contestants.retain(|one| one.name != "H");
    between(stage.rounds, &contestants, turn)
}
