//! What people who run a daemon ask: how much its journal takes, what the store costs, whether memory grows.
//!
//! Each figure is of a daemon of its own. `scripts/operations` puts them into `docs/operations.md`.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use clap::{Args, ValueEnum};

use crate::load::{Work, full};
use crate::route::Route;
use crate::squall::{Squall, Store};
use crate::stage::Stage;
use crate::table::plain;

/// Connections that are kept busy.
const CONNECTIONS: usize = 64;

/// Connections that keep a pace; each has a thread of its own.
const PACERS: u32 = 32;

/// What to measure and how long.
#[derive(Debug, Args)]
pub struct Operations {
    /// Squall's release binary
    #[arg(long)]
    squall: PathBuf,
    /// A `PostgreSQL` database to fill, as `postgres://…`; without it only `SQLite` is measured
    #[arg(long)]
    postgres: Option<String>,
    /// Seconds per measurement
    #[arg(long, default_value_t = 12.0)]
    seconds: f64,
    /// Turns of the daemon with a store and of the one without
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Exchanges that memory is watched over
    #[arg(long, default_value_t = 1_000_000)]
    exchanges: u64,
    /// Only these parts, one after the other with commas; default: all
    #[arg(long, value_delimiter = ',')]
    part: Vec<Part>,
    /// Give up after so many minutes
    #[arg(long, default_value_t = 12)]
    minutes: u64,
    /// Write the figures here, in Markdown
    #[arg(long)]
    markdown: PathBuf,
}

/// What can be measured by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// What `SQLite` takes and costs
    Sqlite,
    /// What `PostgreSQL` takes and costs
    Postgres,
    /// Memory while exchanges go through
    Memory,
}

/// One figure.
struct Figure {
    what: String,
    reached: String,
}

/// Measures, and writes the figures down.
pub fn run(wanted: &Operations) -> Result<()> {
    let stretch = Duration::from_secs_f64(wanted.seconds);
    let stage = Stage::bare(wanted.rounds, stretch)?;
    let until = Instant::now() + Duration::from_secs(60 * wanted.minutes);
    let is_wanted = |part| wanted.part.is_empty() || wanted.part.contains(&part);
    let mut stores = Vec::new();
    if is_wanted(Part::Sqlite) {
        stores.push(("SQLite", "sqlite"));
    }
    if let Some(url) = wanted
        .postgres
        .as_ref()
        .filter(|_| is_wanted(Part::Postgres))
    {
        stores.push(("PostgreSQL", url));
    }
    let mut figures = Vec::new();
    let measuring = Measuring {
        stage,
        wanted,
        until,
    };
    for (name, url) in stores {
        eprintln!("measuring {name}");
        figures.push(measuring.writes(name, url)?);
        figures.push(measuring.throughput(name, url)?);
    }
    if is_wanted(Part::Memory) {
        eprintln!("measuring memory");
        figures.push(measuring.memory()?);
    }
    let mut text = String::from("| | |\n|---|---|\n");
    for figure in figures {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "| {} | {} |", figure.what, figure.reached);
    }
    print!("{text}");
    std::fs::write(&wanted.markdown, text)?;
    Ok(())
}

/// What every figure needs.
struct Measuring<'a> {
    stage: Stage,
    wanted: &'a Operations,
    /// It gives up then.
    until: Instant,
}

impl Measuring<'_> {
    /// The greatest rate of exchanges, each written down, that loses none: what the store takes under full load,
    /// and from there down until a whole stretch goes by without a drop.
    fn writes(&self, name: &str, url: &str) -> Result<Figure> {
        let exchanges = "all";
        let squall = self.start(name, Store::At { url, exchanges })?;
        let route = Route::to(squall.reverse);
        let before = Journal::of(&squall)?;
        let work = Work::Request(route.get("/"));
        let load = full(&route, &work, CONNECTIONS, self.stage.stretch, None)?;
        let loaded = Journal::of(&squall)?.since(before);
        let what = format!("journal writes a second without a drop, {name}, `exchanges: all`");
        let most = load.rate;
        if loaded.dropped == 0 {
            let reached = format!("{}, all that went through the proxy", plain(most));
            return Ok(Figure { what, reached });
        }
        // What was written is that of the load and its warm-up.
        let mut rate = u32::try_from(loaded.stored / self.stage.stretch.as_secs().max(1))?;
        for _ in 0..20 {
            self.in_time()?;
            let before = settled(&squall)?;
            crate::steady::paced(&route, &route.get("/"), rate, PACERS, self.stage.stretch)?;
            let paced = settled(&squall)?.since(before);
            if paced.dropped == 0 {
                let written = paced.stored as f64 / self.stage.stretch.as_secs_f64();
                let reached = format!(
                    "{} (under full load, {} exchanges a second, {:.0} % are dropped)",
                    plain(written),
                    plain(most),
                    100.0 * loaded.dropped as f64 / (loaded.stored + loaded.dropped) as f64,
                );
                return Ok(Figure { what, reached });
            }
            // No more than it has taken now.
            let taken = u32::try_from(paced.stored / self.stage.stretch.as_secs().max(1))?;
            rate = (rate - rate / 10).min(taken);
        }
        anyhow::bail!("{name} drops at every rate down to {rate} a second")
    }

    /// Exchanges a second of a daemon with a store over those of one without, turn by turn.
    fn throughput(&self, name: &str, url: &str) -> Result<Figure> {
        let exchanges = "faulted";
        let with = self.start("with", Store::At { url, exchanges })?;
        let without = self.start("without", Store::Memory)?;
        let mut ratios = Vec::new();
        let mut rates = Vec::new();
        for _ in 0..self.stage.rounds {
            self.in_time()?;
            let rate = |squall: &Squall| -> Result<f64> {
                let route = Route::to(squall.reverse);
                let work = Work::Request(route.get("/"));
                Ok(full(&route, &work, CONNECTIONS, self.stage.stretch, None)?.rate)
            };
            let (bare, kept) = (rate(&without)?, rate(&with)?);
            ratios.push(kept / bare);
            rates.push(kept);
        }
        let spread = (least(&ratios), greatest(&ratios));
        Ok(Figure {
            what: format!("exchanges a second with {name} to those without a store"),
            reached: format!(
                "{:.2} ({:.2} to {:.2} in {} turns; {} a second)",
                middle(&mut ratios),
                spread.0,
                spread.1,
                self.stage.rounds,
                plain(middle(&mut rates)),
            ),
        })
    }

    /// Resident memory while exchanges go through a daemon as it comes.
    fn memory(&self) -> Result<Figure> {
        let squall = self.start("memory", Store::Default)?;
        let route = Route::to(squall.reverse);
        let work = Work::Request(route.get("/"));
        let slice = Duration::from_secs(1).min(self.stage.stretch);
        let mut told = Vec::new();
        let mut next = 1;
        while next <= 4 {
            self.in_time()?;
            let gone = squall.counted("squall_exchanges_total", "")?;
            if gone < self.wanted.exchanges * next / 4 {
                full(&route, &work, CONNECTIONS, slice, None)?;
                continue;
            }
            let mebibytes = squall.process.resident()? as f64 / f64::from(1 << 20);
            told.push(format!("{} after {}", plain(mebibytes), thousands(gone)));
            next += 1;
        }
        Ok(Figure {
            what: "resident memory in MiB, a daemon as it comes".to_owned(),
            reached: told.join(", "),
        })
    }

    /// Whether there is time for more.
    fn in_time(&self) -> Result<()> {
        ensure!(
            Instant::now() < self.until,
            "the time is over: let the machine do nothing else, or measure parts with `--part`"
        );
        Ok(())
    }

    fn start(&self, name: &str, store: Store<'_>) -> Result<Squall> {
        let stage = &self.stage;
        let home = fresh(stage, name);
        Squall::start(&self.wanted.squall, &home, stage.http, &stage.pki, store)
            .with_context(|| format!("a daemon with {name}"))
    }
}

/// A directory that no other daemon had.
fn fresh(stage: &Stage, name: &str) -> PathBuf {
    let mut number = 0;
    loop {
        let home = stage.dir.join(format!("{name}-{number}"));
        if !home.exists() {
            return home;
        }
        number += 1;
    }
}

/// What became of exchanges on their way to the store.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Journal {
    stored: u64,
    dropped: u64,
}

impl Journal {
    fn of(squall: &Squall) -> Result<Self> {
        Ok(Self {
            stored: squall.counted("squall_exchanges_stored_total", "")?,
            dropped: squall.counted("squall_events_dropped_total", "sink=\"store\"")?,
        })
    }

    fn since(self, before: Self) -> Self {
        Self {
            stored: self.stored - before.stored,
            dropped: self.dropped - before.dropped,
        }
    }
}

/// The same, once nothing is on its way any more.
fn settled(squall: &Squall) -> Result<Journal> {
    let mut last = Journal::of(squall)?;
    loop {
        std::thread::sleep(Duration::from_millis(300));
        let now = Journal::of(squall)?;
        if now == last {
            return Ok(now);
        }
        last = now;
    }
}

fn middle(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

fn greatest(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

/// `1234567` as `1,234,567`.
fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
