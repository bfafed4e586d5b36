//! Measures Squall against direct connections and two bare proxies, in one run.
//!
//! Host load moves the same binary by half, so only what is measured in the same minutes can be
//! compared: every row takes turns between direct, the floors and Squall, several rounds of each,
//! and reports medians. `squall-bench run --help` says how to call it; `docs/performance.md` shows
//! what came of it.

mod clock;
mod floor;
mod http;
mod hudsucker;
mod idle;
mod load;
mod operations;
mod pki;
mod process;
mod route;
mod rows;
mod squall;
mod stage;
mod steady;
mod streams;
mod table;
mod upstream;

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, Parser, Subcommand};

use crate::pki::Pki;

#[derive(Parser)]
#[command(about = "Measures Squall against direct connections and two bare proxies")]
struct Cli {
    #[command(subcommand)]
    role: Role,
}

#[derive(Subcommand)]
enum Role {
    /// Measure, and print the table
    Run(Run),
    /// Measure what a store takes and costs, and whether memory grows
    Operations(operations::Operations),
    /// The upstream (started by `run`)
    #[command(hide = true)]
    Upstream { dir: PathBuf },
    /// Floor H, a bare hyper proxy (started by `run`)
    #[command(hide = true)]
    Floor { upstream: SocketAddr },
    /// The interception floor (started by `run`)
    #[command(hide = true)]
    Hudsucker { dir: PathBuf },
}

/// What to measure and how long.
#[derive(Debug, Args)]
pub struct Run {
    /// Squall's release binary; without it only direct and the floors are measured
    #[arg(long)]
    squall: Option<PathBuf>,
    /// A minute instead of ten: shows that everything works, its figures are rough
    #[arg(long)]
    smoke: bool,
    /// Only rows whose group is named (see `rows.rs`), comma-separated
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Rounds per row [default: 3, smoke 1]
    #[arg(long)]
    rounds: Option<usize>,
    /// Seconds per measurement [default: 3, smoke 0.5]
    #[arg(long)]
    seconds: Option<f64>,
    /// Write the table here as well, in Markdown
    #[arg(long)]
    markdown: Option<PathBuf>,
    /// Write the figures here, in JSON
    #[arg(long)]
    json: Option<PathBuf>,
    /// Exit 1 when a `must` is missed
    #[arg(long)]
    enforce: bool,
}

fn main() -> Result<()> {
    match Cli::parse().role {
        Role::Run(run) => rows::run(&run),
        Role::Operations(wanted) => operations::run(&wanted),
        Role::Upstream { dir } => upstream::serve(&Pki::at(&dir)),
        Role::Floor { upstream } => multi_threaded()?.block_on(floor::serve(upstream)),
        Role::Hudsucker { dir } => multi_threaded()?.block_on(hudsucker::serve(&Pki::at(&dir))),
    }
}

fn multi_threaded() -> Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?)
}
