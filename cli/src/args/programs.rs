//! The commands that start something: a daemon, a program behind one, the demo.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use super::{Remote, scope, seed};
use crate::config::{address, quantity};

#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Leave everything running afterwards, and say what to try
    #[arg(long)]
    pub(crate) keep: bool,
    /// What every draw hangs on
    #[arg(
        long,
        value_name = "N",
        default_value_t = 40,
        value_parser = seed,
        allow_negative_numbers = true
    )]
    pub(crate) seed: u64,
    /// Where the report goes, a page
    #[arg(long, short, value_name = "FILE", default_value = "squall-demo.html")]
    pub(crate) output: PathBuf,
    /// Print the results as one JSON document on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DemoAgent {
    /// What to do; `-` reads it from stdin
    #[arg(default_value = crate::demo::TASK)]
    pub(crate) task: String,
}

#[derive(Debug, Args)]
pub(crate) struct Serve {
    #[command(flatten)]
    pub(crate) daemon: Daemon,
    /// Where state is kept: sqlite (in the home directory), sqlite:PATH or postgres://… [default: sqlite]
    #[arg(long, value_name = "URL")]
    pub(crate) store: Option<String>,
    /// Time that open exchanges get to finish after SIGTERM
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = quantity::duration)]
    pub(crate) grace: Duration,
    /// How much to log: error, warn, info, debug, trace, or per module as in `squall_proxy=debug`
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    pub(crate) log_level: String,
    /// How to log
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) log_format: LogFormat,
}

/// What `serve` and `run` say about the daemon they start.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Daemon {
    /// Configuration file [default: squall.yaml, if it is there]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Address of the proxy; port 0 takes a free one
    #[arg(long, value_name = "ADDR", value_parser = address)]
    pub(crate) proxy: Option<SocketAddr>,
    /// Address of the control API; port 0 takes a free one
    #[arg(long, value_name = "ADDR", value_parser = address)]
    pub(crate) api: Option<SocketAddr>,
    /// Profile in force from the start, for the default scope: its name or its file
    #[arg(long, value_name = "NAME|FILE")]
    pub(crate) profile: Option<String>,
    /// What every draw hangs on [default: 42]
    #[arg(
        long,
        value_name = "N",
        value_parser = seed,
        allow_negative_numbers = true
    )]
    pub(crate) seed: Option<u64>,
    /// Threads that carry traffic [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) workers: Option<u16>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Lines for people
    Text,
    /// One JSON object a line
    Json,
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) daemon: Daemon,
    /// Print no summary
    #[arg(long)]
    pub(crate) quiet: bool,
    /// Write what went through to a file: FILE.har is an HTTP archive, any other a replay session
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Answer requests from this replay session; without `on_miss: passthrough` in it nothing goes upstream
    #[arg(long, value_name = "FILE")]
    pub(crate) replay: Option<PathBuf>,
    /// Set `OPENAI_BASE_URL` and its like too, for programs that ignore proxies
    #[arg(long)]
    pub(crate) base_urls: bool,
    /// The program and its arguments
    #[arg(required = true, last = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct Env {
    /// Whose syntax to write
    #[arg(long, default_value = "bash")]
    pub(crate) shell: Shell,
    /// Scope that the program's traffic belongs to
    #[arg(long, value_parser = scope)]
    pub(crate) scope: Option<String>,
    #[command(flatten)]
    pub(crate) remote: Remote,
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
pub(crate) enum Ca {
    /// Show where the CA is, its fingerprint and how long it is valid
    Show {
        /// Print one JSON document on stdout
        #[arg(long)]
        json: bool,
    },
    /// Write the CA's certificate (never its key)
    Export {
        /// Where to; default: stdout
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
        /// Together with the system's roots, for programs that replace theirs
        #[arg(long)]
        bundle: bool,
    },
    /// Make a new CA; programs must trust the new one, and daemons restart
    Rotate,
}

#[derive(Debug, Args)]
pub(crate) struct Record {
    /// Only this scope; a program's traffic is in it
    #[arg(long, value_parser = scope)]
    pub(crate) scope: Option<String>,
    /// Where to: FILE.har is an HTTP archive, any other a replay session
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: PathBuf,
    #[command(flatten)]
    pub(crate) daemon: Daemon,
    #[command(flatten)]
    pub(crate) remote: Remote,
    /// The program and its arguments, behind a private daemon
    #[arg(last = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}
