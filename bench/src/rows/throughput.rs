//! Rows under full load: requests per second, CPU per request, megabytes, connections.

use anyhow::Result;

use super::{CONNECTIONS, at_least, at_most, between, turns};
use crate::load::{Outcome, Work, full};
use crate::route::Route;
use crate::squall::{Squall, Store};
use crate::stage::{Contestant, Mode, Stage};
use crate::table::Row;

/// Reverse proxying of small answers: CPU and rate.
pub(super) fn reverse(stage: &Stage) -> Result<Vec<Row>> {
    let scores = turns(stage, Mode::Reverse, |one| small(stage, one, CONNECTIONS))?;
    let cpu = scores.ratio("Squall", "H", cpu);
    let over_floor = scores.ratio("Squall", "H", rate);
    let over_direct = scores.ratio("Squall", "direct", rate);
    Ok(vec![
        Row {
            metric: "reverse CPU/req".into(),
            reached: scores.tell(" µs", self::cpu),
            judged: vec![at_most(cpu, 1.25, 1.0)],
            must: "≤ 1.25 H",
            aim: "≤ 1.0 H",
        },
        Row {
            metric: "reverse rps (to H / to direct)".into(),
            reached: scores.tell(" rps", rate),
            judged: vec![
                at_least(over_floor, 0.8, 1.1),
                at_least(over_direct, 0.0, 0.0),
            ],
            must: "≥ 0.8 H",
            aim: "≥ 1.1 H",
        },
    ])
}

/// Reverse proxying of small answers by a daemon with a store, as it comes, and by one without.
pub(super) fn with_store(stage: &Stage) -> Result<Vec<Row>> {
    let row = |reached, ratio| Row {
        metric: "reverse rps with a store (to that without)".into(),
        reached,
        judged: vec![at_least(ratio, 0.85, 0.95)],
        must: "≥ .85",
        aim: "≥ .95",
    };
    let (Some(binary), Some(without)) = (&stage.binary, stage.squall()) else {
        return Ok(vec![row(Vec::new(), None)]);
    };
    let home = stage.dir.join("with-a-store");
    let with = Squall::start(binary, &home, stage.http, &stage.pki, Store::Default)?;
    let scores = between(
        stage.rounds,
        &[
            Contestant::through("without", Route::to(without.reverse), &without.process),
            Contestant::through("with", Route::to(with.reverse), &with.process),
        ],
        |one| small(stage, one, CONNECTIONS),
    )?;
    let ratio = scores.ratio("with", "without", rate);
    Ok(vec![row(scores.tell_two(" µs/rps", cpu, rate), ratio)])
}

/// Forward proxying in clear.
pub(super) fn forward(stage: &Stage) -> Result<Vec<Row>> {
    let scores = turns(stage, Mode::Forward, |one| small(stage, one, CONNECTIONS))?;
    Ok(vec![Row {
        metric: "forward plain CPU/req".into(),
        reached: scores.tell_two(" µs/rps", cpu, rate),
        judged: vec![at_most(scores.ratio("Squall", "hudsucker", cpu), 1.1, 0.8)],
        must: "≤ 1.1 hudsucker",
        aim: "≤ 0.8 hudsucker",
    }])
}

/// Kept-alive exchanges inside intercepted tunnels.
pub(super) fn intercept(stage: &Stage) -> Result<Vec<Row>> {
    let scores = turns(stage, Mode::Intercept, |one| small(stage, one, CONNECTIONS))?;
    Ok(vec![
        Row {
            metric: "interception CPU/req".into(),
            reached: scores.tell(" µs", cpu),
            judged: vec![at_most(scores.ratio("Squall", "hudsucker", cpu), 1.1, 0.8)],
            must: "≤ 1.1 hudsucker",
            aim: "≤ 0.8 hudsucker",
        },
        Row {
            metric: "interception rps (to direct TLS)".into(),
            reached: scores.tell(" rps", rate),
            judged: vec![at_least(scores.ratio("Squall", "direct", rate), 0.25, 0.40)],
            must: "≥ .25",
            aim: "≥ .40",
        },
    ])
}

/// A connection, a whole handshake and one request each time.
pub(super) fn fresh(stage: &Stage) -> Result<Vec<Row>> {
    let scores = turns(stage, Mode::Intercept, |one| {
        let work = Work::Fresh(one.route.get("/"));
        full(&one.route, &work, 16, stage.stretch, one.process)
    })?;
    Ok(vec![Row {
        metric: "fresh intercepted connections (to direct TLS)".into(),
        reached: scores.tell("/s", rate),
        judged: vec![at_least(scores.ratio("Squall", "direct", rate), 0.40, 0.55)],
        must: "≥ .40 of direct TLS",
        aim: "≥ .55",
    }])
}

/// CONNECT and a whole handshake, for names never seen before and for names seen before.
pub(super) fn handshakes(stage: &Stage) -> Result<Vec<Row>> {
    let new = turns(stage, Mode::Intercept, |one| {
        full(
            &one.route,
            &Work::HandshakeNew,
            16,
            stage.stretch,
            one.process,
        )
    })?;
    let cached = turns(stage, Mode::Intercept, |one| {
        full(
            &one.route,
            &Work::HandshakeCached,
            16,
            stage.stretch,
            one.process,
        )
    })?;
    let mut reached = new.tell("", rate);
    for ((_, text), (_, other)) in reached.iter_mut().zip(cached.tell("/s", rate)) {
        *text = format!("{text}/{other}");
    }
    Ok(vec![Row {
        metric: "handshakes to new / cached hosts".into(),
        reached,
        judged: vec![
            at_least(new.ratio("Squall", "hudsucker", rate), 1.0, 1.3),
            at_least(cached.ratio("Squall", "hudsucker", rate), 1.0, 1.1),
        ],
        must: "≥ 1.0 hudsucker",
        aim: "≥ 1.3 / 1.1 hudsucker",
    }])
}

/// Answers of 1 MiB.
pub(super) fn large(stage: &Stage) -> Result<Vec<Row>> {
    let measure = |mode| {
        turns(stage, mode, |one| {
            let work = Work::Request(one.route.get("/1m"));
            full(&one.route, &work, 8, stage.stretch, one.process)
        })
    };
    let plain = measure(Mode::Reverse)?;
    let intercepted = measure(Mode::Intercept)?;
    let megabytes = |outcome: &Outcome| outcome.bytes_rate / 1e6;
    let mut reached = plain.tell(" MB/s plain", megabytes);
    reached.extend(intercepted.tell(" MB/s intercepted", megabytes));
    Ok(vec![Row {
        metric: "1 MiB bodies, plain / intercepted (to direct)".into(),
        reached,
        judged: vec![
            at_least(plain.ratio("Squall", "direct", megabytes), 0.30, 0.60),
            at_least(intercepted.ratio("Squall", "direct", megabytes), 0.28, 0.45),
        ],
        must: "≥ .30 / .28",
        aim: "≥ .60 / .45",
    }])
}

/// How CPU per request grows with the number of busy connections.
pub(super) fn busy(stage: &Stage) -> Result<Vec<Row>> {
    let scores = turns(stage, Mode::Reverse, |one| {
        Ok((small(stage, one, CONNECTIONS)?, small(stage, one, 1024)?))
    })?;
    let growth = |pair: &(Outcome, Outcome)| pair.1.cpu / pair.0.cpu;
    let kept = |pair: &(Outcome, Outcome)| pair.1.rate / pair.0.rate;
    Ok(vec![Row {
        metric: "64 → 1,024 busy connections: CPU × / rps ×".into(),
        reached: scores.tell_two("", growth, kept),
        judged: vec![
            at_most(scores.median("Squall", growth), 1.6, 1.4),
            at_least(scores.median("Squall", kept), 0.0, 0.0),
        ],
        must: "CPU ≤ 1.6×",
        aim: "CPU ≤ 1.4×",
    }])
}

/// The small answer, as fast as it goes.
fn small(stage: &Stage, one: &Contestant<'_>, connections: usize) -> Result<Outcome> {
    let work = Work::Request(one.route.get("/"));
    full(&one.route, &work, connections, stage.stretch, one.process)
}

fn cpu(outcome: &Outcome) -> f64 {
    outcome.cpu
}

fn rate(outcome: &Outcome) -> f64 {
    outcome.rate
}
