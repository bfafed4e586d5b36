//! The rows: which are there, in which order they are measured, and how turns are taken.

mod faults;
mod latency;
mod memory;
mod rules;
mod throughput;
mod websocket;

use anyhow::{Context as _, Result, bail};

use crate::Run;
use crate::stage::{Contestant, Mode, Stage};
use crate::table::{self, Bar, Judged, Row};

/// Connections that are kept busy where a row does not say otherwise.
const CONNECTIONS: usize = 64;

/// A group of rows that are measured together.
struct Group {
    /// Its name on the command line.
    name: &'static str,
    measure: fn(&Stage) -> Result<Vec<Row>>,
}

/// Every group, in the order of the table.
const GROUPS: &[Group] = &[
    Group {
        name: "reverse",
        measure: throughput::reverse,
    },
    Group {
        name: "reverse-latency",
        measure: latency::reverse,
    },
    Group {
        name: "low-rates",
        measure: latency::low_rates,
    },
    Group {
        name: "forward",
        measure: throughput::forward,
    },
    Group {
        name: "intercept",
        measure: throughput::intercept,
    },
    Group {
        name: "intercept-latency",
        measure: latency::intercept,
    },
    Group {
        name: "fresh",
        measure: throughput::fresh,
    },
    Group {
        name: "handshakes",
        measure: throughput::handshakes,
    },
    Group {
        name: "large",
        measure: throughput::large,
    },
    Group {
        name: "sse",
        measure: latency::events,
    },
    Group {
        name: "fault",
        measure: faults::latency,
    },
    Group {
        name: "start",
        measure: memory::start,
    },
    Group {
        name: "idle",
        measure: memory::idle_connections,
    },
    Group {
        name: "rules",
        measure: rules::per_request,
    },
    Group {
        name: "swap",
        measure: rules::swap,
    },
    Group {
        name: "busy",
        measure: throughput::busy,
    },
    Group {
        name: "store",
        measure: throughput::with_store,
    },
    Group {
        name: "content",
        measure: faults::content,
    },
    Group {
        name: "websocket",
        measure: websocket::sockets,
    },
];

/// Measures what was asked for and prints it.
pub fn run(run: &Run) -> Result<()> {
    for name in &run.only {
        if !GROUPS.iter().any(|group| group.name == name) {
            let names: Vec<_> = GROUPS.iter().map(|group| group.name).collect();
            bail!("no group `{name}`; there are {}", names.join(", "));
        }
    }
    let stage = Stage::set(run)?;
    let mut rows = Vec::new();
    for group in GROUPS {
        if run.only.is_empty() || run.only.iter().any(|name| name == group.name) {
            eprintln!("measuring {}", group.name);
            let measured =
                (group.measure)(&stage).with_context(|| format!("group {}", group.name))?;
            eprint!("{}", table::markdown(&measured));
            rows.extend(measured);
        }
    }
    let text = table::markdown(&rows);
    println!("{text}");
    if let Some(path) = &run.markdown {
        std::fs::write(path, &text)?;
    }
    if let Some(path) = &run.json {
        std::fs::write(path, serde_json::to_string_pretty(&table::json(&rows))?)?;
    }
    let missed: Vec<_> = rows
        .iter()
        .filter(|row| row.met() == Some(false))
        .map(|row| row.metric.as_str())
        .collect();
    if run.enforce && !missed.is_empty() {
        bail!("missed: {}", missed.join(", "));
    }
    Ok(())
}

/// Gives each contestant of `mode` a turn per round, interleaved; what each reached, by name.
fn turns<T>(
    stage: &Stage,
    mode: Mode,
    turn: impl FnMut(&Contestant<'_>) -> Result<T>,
) -> Result<Scores<T>> {
    between(stage.rounds, &stage.contestants(mode)?, turn)
}

/// The same between any contestants.
fn between<T>(
    rounds: usize,
    contestants: &[Contestant<'_>],
    mut turn: impl FnMut(&Contestant<'_>) -> Result<T>,
) -> Result<Scores<T>> {
    let mut scores: Vec<_> = contestants
        .iter()
        .map(|one| (one.name, Vec::new()))
        .collect();
    for _ in 0..rounds {
        for (contestant, (name, reached)) in contestants.iter().zip(&mut scores) {
            reached.push(turn(contestant).with_context(|| format!("on the way of {name}"))?);
        }
    }
    Ok(Scores(scores))
}

/// What every contestant reached in its turns.
struct Scores<T>(Vec<(&'static str, Vec<T>)>);

impl<T> Scores<T> {
    /// Median of a figure of one contestant's turns; `None` when it took no part.
    fn median(&self, name: &str, figure: impl Fn(&T) -> f64) -> Option<f64> {
        let (_, reached) = self.0.iter().find(|(one, _)| *one == name)?;
        Some(median(reached.iter().map(figure).collect()))
    }

    /// Median over the rounds of `name`'s figure over `other`'s of the same round: what slows a whole
    /// round down leaves its ratio alone.
    fn ratio(&self, name: &str, other: &str, figure: impl Fn(&T) -> f64 + Copy) -> Option<f64> {
        self.paired(name, other, |one, other| figure(one) / figure(other))
    }

    /// Median over the rounds of what `name` takes beyond `direct` in the same round.
    fn added(&self, name: &str, figure: impl Fn(&T) -> f64 + Copy) -> Option<f64> {
        self.paired(name, "direct", |one, direct| figure(one) - figure(direct))
    }

    fn paired(&self, name: &str, other: &str, compare: impl Fn(&T, &T) -> f64) -> Option<f64> {
        let of = |name| {
            self.0
                .iter()
                .find(|(one, _)| *one == name)
                .map(|(_, reached)| reached)
        };
        let pairs = of(name)?.iter().zip(of(other)?);
        Some(median(
            pairs.map(|(one, other)| compare(one, other)).collect(),
        ))
    }

    /// Everybody's median, ready to read.
    fn tell(&self, unit: &str, figure: impl Fn(&T) -> f64 + Copy) -> Vec<(&'static str, String)> {
        let told = |(name, _): &(&'static str, Vec<T>)| {
            let value = self.median(name, figure).filter(|value| *value > 0.0)?;
            Some((*name, format!("{}{unit}", table::plain(value))))
        };
        self.0.iter().filter_map(told).collect()
    }

    /// Everybody's medians of two figures, ready to read.
    fn tell_two(
        &self,
        unit: &str,
        first: impl Fn(&T) -> f64 + Copy,
        second: impl Fn(&T) -> f64 + Copy,
    ) -> Vec<(&'static str, String)> {
        let told = |(name, _): &(&'static str, Vec<T>)| {
            let second = self
                .median(name, second)
                .filter(|value| value.is_finite())?;
            let first = match self.median(name, first)? {
                // The direct way has no process whose costs would count.
                first if first == 0.0 || !first.is_finite() => "–".to_owned(),
                value => table::plain(value),
            };
            (second > 0.0).then(|| (*name, format!("{first}/{}{unit}", table::plain(second))))
        };
        self.0.iter().filter_map(told).collect()
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// A figure that should be small.
fn at_most(value: Option<f64>, must: f64, aim: f64) -> Judged {
    Judged {
        value,
        must: Bar::AtMost(must),
        aim: Bar::AtMost(aim),
    }
}

/// A figure that should be great.
fn at_least(value: Option<f64>, must: f64, aim: f64) -> Judged {
    Judged {
        value,
        must: Bar::AtLeast(must),
        aim: Bar::AtLeast(aim),
    }
}
