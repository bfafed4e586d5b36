//! Rows under light load: what the proxy adds to one exchange and to one event.

use anyhow::Result;

use super::{Scores, at_most, turns};
use crate::stage::{Contestant, Mode, Stage};
use crate::steady::{Delays, at_rate, cpu_each, events as listen};
use crate::table::{Judged, Row};
use crate::upstream::SMALL;

/// Reverse, 1,000 requests a second.
pub(super) fn reverse(stage: &Stage) -> Result<Vec<Row>> {
    let scores = exchanges(stage, Mode::Reverse, 1000)?;
    Ok(vec![Row {
        metric: "reverse @1000 rps, added p50/p99 µs".into(),
        reached: told(&scores),
        judged: added(&scores, [100.0, 300.0], [50.0, 100.0]),
        must: "≤ 100/300 µs",
        aim: "≤ 50/100 µs",
    }])
}

/// CPU of a request at low rates, and of an event of one stream.
pub(super) fn low_rates(stage: &Stage) -> Result<Vec<Row>> {
    let paced = |rate| {
        turns(stage, Mode::Reverse, |one| {
            cpu_each(one.process, || paced_by(stage, one, rate))
        })
    };
    let (thousand, hundred) = (paced(1000)?, paced(100)?);
    let streamed = turns(stage, Mode::Reverse, |one| {
        cpu_each(one.process, || listen(&one.route, 1, stage.stretch))
    })?;
    let mut requests = thousand.tell("", |cpu| *cpu);
    for ((_, text), (_, other)) in requests.iter_mut().zip(hundred.tell(" µs", |cpu| *cpu)) {
        *text = format!("{text}/{other}");
    }
    let ratio = |scores: &Scores<f64>| scores.ratio("Squall", "H", |cpu| *cpu);
    Ok(vec![
        Row {
            metric: "CPU/req at 1,000 requests/s / at 100".into(),
            reached: requests,
            judged: vec![
                at_most(ratio(&thousand), 2.5, 1.3),
                at_most(ratio(&hundred), 4.0, 1.5),
            ],
            must: "≤ 2.5 H / ≤ 4 H",
            aim: "≤ 1.3 H / ≤ 1.5 H",
        },
        Row {
            metric: "CPU per SSE event, one stream".into(),
            reached: streamed.tell(" µs", |cpu| *cpu),
            judged: vec![at_most(ratio(&streamed), 1.7, 1.2)],
            must: "≤ 1.7 H",
            aim: "≤ 1.2 H",
        },
    ])
}

/// Intercepted, 100 requests a second.
pub(super) fn intercept(stage: &Stage) -> Result<Vec<Row>> {
    let scores = exchanges(stage, Mode::Intercept, 100)?;
    Ok(vec![Row {
        metric: "interception @100 rps, added p50/p99 µs".into(),
        reached: told(&scores),
        judged: added(&scores, [350.0, 900.0], [200.0, 400.0]),
        must: "≤ 350/900 µs",
        aim: "≤ 200/400 µs",
    }])
}

/// Server-sent events, plain and intercepted.
pub(super) fn events(stage: &Stage) -> Result<Vec<Row>> {
    let measure = |mode| turns(stage, mode, |one| listen(&one.route, 4, stage.stretch));
    let plain = measure(Mode::Reverse)?;
    let intercepted = measure(Mode::Intercept)?;
    let mut slowest = told(&intercepted);
    for ((_, text), (_, most)) in slowest
        .iter_mut()
        .zip(intercepted.tell("", Delays::greatest))
    {
        *text = format!("{text}, slowest {most}");
    }
    let mut judged = added(&intercepted, [150.0, 500.0], [80.0, 200.0]);
    judged.push(at_most(
        intercepted.median("Squall", Delays::greatest),
        f64::INFINITY,
        10_000.0,
    ));
    Ok(vec![
        Row {
            metric: "SSE event delay, plain, added p50/p99 µs".into(),
            reached: told(&plain),
            judged: added(&plain, [80.0, 300.0], [45.0, 90.0]),
            must: "≤ 80/300 µs",
            aim: "≤ 45/90 µs",
        },
        Row {
            metric: "SSE event delay, intercepted, added p50/p99 µs; slowest".into(),
            reached: slowest,
            judged,
            must: "≤ 150/500 µs",
            aim: "≤ 80/200 µs, none over 10 ms",
        },
    ])
}

fn exchanges(stage: &Stage, mode: Mode, rate: u32) -> Result<Scores<Delays>> {
    turns(stage, mode, |one| paced_by(stage, one, rate))
}

/// So many exchanges a second in all.
fn paced_by(stage: &Stage, one: &Contestant<'_>, rate: u32) -> Result<Delays> {
    let request = one.route.get("/");
    at_rate(&one.route, &request, SMALL.len(), rate, 4, stage.stretch)
}

pub(super) fn told(scores: &Scores<Delays>) -> Vec<(&'static str, String)> {
    scores.tell_two(" µs", Delays::median, Delays::p99)
}

/// Median and 99th percentile beyond what the direct way takes.
pub(super) fn added(scores: &Scores<Delays>, must: [f64; 2], aim: [f64; 2]) -> Vec<Judged> {
    vec![
        at_most(scores.added("Squall", Delays::median), must[0], aim[0]),
        at_most(scores.added("Squall", Delays::p99), must[1], aim[1]),
    ]
}
