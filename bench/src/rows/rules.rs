//! Rows about many rules that do not match: what each request pays, what they weigh, how fast they
//! take over.

use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};

use super::{CONNECTIONS, at_most, median};
use crate::load::{Work, full};
use crate::route::Route;
use crate::stage::Stage;
use crate::table::Row;

/// Sizes measured; the first is what the others are held against.
const COUNTS: [usize; 4] = [1, 100, 1000, 10_000];

/// A family of globs, none of which matches the traffic.
struct Set {
    name: &'static str,
    glob: fn(&str, usize) -> String,
}

const SETS: [Set; 3] = [
    Set {
        name: "N hosts",
        glob: |_, index| format!("http://host-{index}.bench.test/*"),
    },
    Set {
        name: "one host × N paths",
        glob: |host, index| format!("http://{host}/path-{index}/*"),
    },
    Set {
        name: "N globs beginning with *",
        glob: |_, index| format!("*/nowhere-{index}/*"),
    },
];

impl Set {
    fn chaos(&self, host: &str, count: usize) -> Value {
        let rule = |index| json!({ "mode": "latency", "delay_ms": 1, "match_url": (self.glob)(host, index) });
        json!({ "network_faults": (0..count).map(rule).collect::<Vec<_>>() })
    }
}

/// Microseconds of CPU that 100, 1,000 and 10,000 rules add to one.
pub(super) fn per_request(stage: &Stage) -> Result<Vec<Row>> {
    SETS.iter().map(|set| growth(stage, set)).collect()
}

fn growth(stage: &Stage, set: &Set) -> Result<Row> {
    let mut costs: [Vec<f64>; COUNTS.len()] = Default::default();
    if let Some(squall) = stage.squall() {
        let route = Route::to(squall.reverse);
        let work = Work::Request(route.get("/"));
        for _ in 0..stage.rounds {
            for (count, cost) in COUNTS.iter().zip(&mut costs) {
                squall.chaos(&set.chaos(&stage.http.to_string(), *count))?;
                let outcome = full(
                    &route,
                    &work,
                    CONNECTIONS,
                    stage.stretch,
                    Some(&squall.process),
                )?;
                cost.push(outcome.cpu);
            }
        }
        squall.calm()?;
    }
    let known = !costs[0].is_empty();
    let medians = known.then(|| costs.map(median));
    let added = |index: usize| medians.map(|medians| medians[index] - medians[0]);
    let told = medians.map(|medians| {
        (
            "Squall",
            medians.map(|cpu| format!("{cpu:.1}")).join(" → ") + " µs",
        )
    });
    Ok(Row {
        metric: format!("rules 1 → 100 / 1,000 / 10,000, added µs/req: {}", set.name),
        reached: told.into_iter().collect(),
        judged: vec![
            at_most(added(1), 3.0, 1.0),
            at_most(added(2), 5.0, 2.0),
            at_most(added(3), 15.0, 4.0),
        ],
        must: "≤ 3 / 5 / 15",
        aim: "≤ 1 / 2 / 4",
    })
}

/// What 10,000 rules weigh and how long the call that puts them in force takes, worst set.
pub(super) fn swap(stage: &Stage) -> Result<Vec<Row>> {
    let mut weight: Option<f64> = None;
    let mut time: Option<f64> = None;
    for set in &SETS {
        let fresh = stage.again()?;
        let Some(squall) = fresh.squall() else {
            continue;
        };
        let before = squall.process.resident()?;
        let took = squall.chaos(&set.chaos(&stage.http.to_string(), COUNTS[3]))?;
        let grown = squall.process.resident()?.saturating_sub(before) as f64 / 1e6;
        weight = Some(weight.map_or(grown, |most| most.max(grown)));
        let took = milliseconds(took);
        time = Some(time.map_or(took, |most| most.max(took)));
    }
    Ok(vec![Row {
        metric: "10,000 rules: memory MB / swap time ms".into(),
        reached: Vec::new(),
        judged: vec![at_most(weight, 100.0, 100.0), at_most(time, 500.0, 100.0)],
        must: "≤ 100 MB / 500 ms",
        aim: "≤ 100 ms",
    }])
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
