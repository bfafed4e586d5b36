//! The commands that start a daemon, a program behind one, or the demo.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use super::{RemoteArgs, scope, seed};
use crate::config::{address, quantity};

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Leave everything running, and print commands to try
    #[arg(long)]
    pub(crate) keep: bool,
    /// Random seed; the same seed injects the same faults
    #[arg(
        long,
        value_name = "N",
        default_value_t = 40,
        value_parser = seed,
        allow_negative_numbers = true
    )]
    pub(crate) seed: u64,
    /// File for the report, an HTML page
    #[arg(long, short, value_name = "FILE", default_value = "squall-demo.html")]
    pub(crate) output: PathBuf,
    /// Print the results as one JSON document on stdout
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) shop: ShopArgs,
}

/// The demo of exploration.
#[derive(Debug, Args)]
pub(crate) struct ShopArgs {
    /// Instead run a small shop with a page, until Ctrl-C; print a suite for `squall explore`
    #[arg(id = "shop", long = "shop", conflicts_with_all = ["keep", "json"])]
    pub(crate) open: bool,
    /// Port of the shop; 0 takes a free one
    #[arg(long, value_name = "PORT", default_value_t = 0, requires = "shop")]
    pub(crate) port: u16,
    /// Run the shop without its two defects
    #[arg(long, requires = "shop")]
    pub(crate) repaired: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DemoAgentArgs {
    /// The task; `-` reads it from stdin [default: book a flight]
    pub(crate) task: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    pub(crate) daemon: DaemonArgs,
    /// Store: sqlite (a file in the home directory), sqlite:PATH or postgres://… [default: sqlite]
    #[arg(long, value_name = "URL")]
    pub(crate) store: Option<String>,
    /// Time for open exchanges to finish after SIGTERM
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = quantity::duration)]
    pub(crate) grace: Duration,
    /// Log level: error, warn, info, debug, trace, or per module as in `squall_proxy=debug`
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    pub(crate) log_level: String,
    /// Log format
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) log_format: LogFormat,
}

/// The daemon that `serve`, `run` and `replay record` start.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct DaemonArgs {
    /// Configuration file [default: squall.yaml, if it exists]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Address of the proxy; port 0 selects a free port
    #[arg(long, value_name = "ADDR", value_parser = address)]
    pub(crate) proxy: Option<SocketAddr>,
    /// Address of the control API; port 0 selects a free port
    #[arg(long, value_name = "ADDR", value_parser = address)]
    pub(crate) api: Option<SocketAddr>,
    /// Profile that is active from the start in the default scope: its name or its file
    #[arg(long, value_name = "NAME|FILE")]
    pub(crate) profile: Option<String>,
    /// Random seed; the same seed injects the same faults [default: 42]
    #[arg(
        long,
        value_name = "N",
        value_parser = seed,
        allow_negative_numbers = true
    )]
    pub(crate) seed: Option<u64>,
    /// Number of proxy threads [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) workers: Option<u16>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Lines of text
    Text,
    /// One JSON object a line
    Json,
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) daemon: DaemonArgs,
    /// Print no summary
    #[arg(long)]
    pub(crate) quiet: bool,
    /// Record the traffic to a file: FILE.har is an HTTP archive, any other file a replay session
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Answer requests from this replay session; nothing goes upstream unless it has `on_miss: passthrough`
    #[arg(long, value_name = "FILE")]
    pub(crate) replay: Option<PathBuf>,
    /// Also set `OPENAI_BASE_URL` and similar variables, for programs that ignore proxies
    #[arg(long)]
    pub(crate) base_urls: bool,
    /// Program and arguments
    #[arg(required = true, last = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct EnvArgs {
    /// Syntax of the output
    #[arg(long, default_value = "bash")]
    pub(crate) shell: Shell,
    /// Scope for the program's traffic
    #[arg(long, value_parser = scope)]
    pub(crate) scope: Option<String>,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shell {
    /// bash, zsh and other POSIX shells
    #[value(aliases = ["zsh", "sh"])]
    Bash,
    /// fish
    Fish,
    /// PowerShell
    Powershell,
    /// A .env file
    Dotenv,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CaCommand {
    /// Show path, fingerprint and validity of the CA
    Show {
        /// Print one JSON document on stdout
        #[arg(long)]
        json: bool,
    },
    /// Write the CA's certificate, never its key
    Export {
        /// Output file [default: stdout]
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
        /// Add the system's roots, for programs that replace theirs
        #[arg(long)]
        bundle: bool,
    },
    /// Create a new CA; restart daemons, and make programs trust the new certificate
    Rotate,
}
