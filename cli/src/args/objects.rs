//! The commands on the API's objects: profiles, exchanges, recordings, runs, tokens, the audit log.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand, ValueEnum};
use squall_harness::date_range::DateRange;
use squall_harness::import::ImportFormat;

use super::{DaemonArgs, RemoteArgs, ReplayRunArgs, scope, seed};
use crate::config::quantity;

#[derive(Debug, Args)]
pub(crate) struct TailArgs {
    /// Only this scope
    #[arg(long, value_parser = scope)]
    pub(crate) scope: Option<String>,
    /// Only exchanges with an applied fault
    #[arg(long)]
    pub(crate) faults: bool,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

/// Where a command reads: in a daemon, else in this machine's configuration and store.
#[derive(Debug, Clone, Args)]
pub(crate) struct StoreArgs {
    /// Control API of a daemon [default: 127.0.0.1:7071; if no daemon answers there, this machine's configuration and
    /// store]
    #[arg(long, value_name = "URL")]
    pub(crate) server: Option<String>,
    /// Token for the daemon
    #[arg(long, value_name = "TOKEN")]
    pub(crate) token: Option<String>,
    /// Configuration that is read without a daemon [default: squall.yaml, if it exists]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

/// The same, for commands that print what they read.
#[derive(Debug, Args)]
pub(crate) struct ReadArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// Print one JSON document on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// Id of the exchange, from `squall tail` or a report
    pub(crate) exchange: String,
    #[command(flatten)]
    pub(crate) read: ReadArgs,
}

#[derive(Debug, Args)]
pub(crate) struct OffArgs {
    /// Only this scope
    #[arg(long, value_parser = scope)]
    pub(crate) scope: Option<String>,
    /// In every daemon of the fleet
    #[arg(long)]
    pub(crate) fleet: bool,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ProfileCommand {
    /// List profiles, of a daemon or of this machine
    List(ReadArgs),
    /// Print one profile, of a daemon or of this machine
    Show {
        /// Name or file of the profile
        name: String,
        #[command(flatten)]
        read: ReadArgs,
    },
    /// Check profile files; needs no daemon
    Validate {
        /// Profile files, YAML or JSON
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// Configuration with the tools and profiles that the files may name [default: squall.yaml,
        /// if it exists]
        #[arg(short, long, value_name = "FILE")]
        config: Option<PathBuf>,
        /// Print one JSON document on stdout
        #[arg(long)]
        json: bool,
    },
    /// Activate a profile
    Use {
        /// Name of the profile, `none`, or a file, which is sent and not stored
        name: String,
        /// Scope [default: the default scope]
        #[arg(long, value_parser = scope)]
        scope: Option<String>,
        /// Random seed; the same seed injects the same faults [default: the configuration's]
        #[arg(long, value_name = "N", value_parser = seed, allow_negative_numbers = true)]
        seed: Option<u64>,
        /// Deactivate it after this time, such as 10m
        #[arg(long, value_name = "TIME", value_parser = quantity::duration)]
        ttl: Option<Duration>,
        /// In every daemon of the fleet
        #[arg(long)]
        fleet: bool,
        #[command(flatten)]
        remote: RemoteArgs,
    },
    /// Store a profile, or a new version of it, in the daemon
    Put {
        /// Profile file, YAML or JSON
        file: PathBuf,
        /// Store it under this name [default: the `name` in the file, else the file's name]
        #[arg(long)]
        name: Option<String>,
        #[command(flatten)]
        remote: RemoteArgs,
    },
    /// Delete a profile that was stored with `put`
    Delete {
        /// Name of the profile
        name: String,
        #[command(flatten)]
        remote: RemoteArgs,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// Check that no entry was edited, removed, added or moved; exits with 1 if one was
    Verify {
        /// Head hash that an earlier `verify` printed: also check that the chain still contains it
        #[arg(long, value_name = "HASH")]
        head: Option<String>,
    },
    /// List changes, newest first
    List {
        /// Maximum number of entries
        #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=1000))]
        limit: u16,
        /// Only changes by this token; `squall` for changes that the daemon made by itself
        #[arg(long, value_name = "NAME")]
        actor: Option<String>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum RecordingsCommand {
    /// List recordings, newest first
    List,
    /// Start a recording, and print its id
    Start {
        /// Only this scope
        #[arg(long, value_parser = scope)]
        scope: Option<String>,
        /// A title
        #[arg(long)]
        name: Option<String>,
    },
    /// Stop a recording
    Stop {
        /// Id of the recording
        id: String,
    },
    /// Write a recording: FILE.har is an HTTP archive, any other file a replay session
    Export {
        /// Id of the recording
        id: String,
        /// Output file [default: stdout]
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
        /// Format [default: by the file's extension; `replay` on stdout]
        #[arg(long, value_name = "FORMAT")]
        format: Option<RecordingFormat>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum TapeCommand {
    /// Answer a scope's requests from a replay session or a recording
    Play(Box<PlayArgs>),
    /// Send a scope's requests upstream again, and print how many the tape answered
    Stop {
        /// Scope [default: the default scope]
        #[arg(long, value_parser = scope)]
        scope: Option<String>,
    },
}

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("source").args(["file", "recording", "replay"]).required(true))]
pub(crate) struct PlayArgs {
    /// Replay session, YAML or JSON
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Id of a recording of the daemon, instead of a file
    #[arg(long, value_name = "ID")]
    pub(crate) recording: Option<String>,
    /// Id of a replay session that is stored in the daemon, instead of a file
    #[arg(long, value_name = "ID")]
    pub(crate) replay: Option<String>,
    /// Scope [default: the default scope]
    #[arg(long, value_parser = scope)]
    pub(crate) scope: Option<String>,
    /// Action for a request that is not on the tape: an error, passthrough to the upstream, or the nearest response
    /// [default: the session's, else error]
    #[arg(long, value_name = "ACTION", value_parser = ON_MISS)]
    pub(crate) on_miss: Option<String>,
    /// Action for a request whose recorded responses are used up [default: the session's, else error]
    #[arg(long, value_name = "ACTION", value_parser = ON_EXHAUSTED)]
    pub(crate) on_exhausted: Option<String>,
    /// Speed of responses: 0 sends them at once, 1 as recorded, 2 twice as fast
    #[arg(long, value_name = "X", default_value_t = 0.0)]
    pub(crate) speed: f64,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

const ON_MISS: [&str; 3] = ["error", "passthrough", "nearest"];
const ON_EXHAUSTED: [&str; 2] = ["error", "passthrough"];

/// A format of recordings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RecordingFormat {
    /// Replay session, YAML
    Replay,
    /// HTTP archive, HAR 1.2
    Har,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ReplayCommand {
    /// Replay sessions as tests: their recorded responses answer the agent's calls
    Run(Box<ReplayRunArgs>),
    /// Run replay sessions, and find the failed responses that are enough for the failure
    ///
    /// The same as `run --shrink`.
    Shrink(Box<ReplayRunArgs>),
    /// Record a program, or a running daemon until Ctrl-C
    Record(Box<RecordArgs>),
    /// Write each failed invocation of a run as a replay session
    Export(Box<ExportArgs>),
    /// Write incidents that other tools recorded as replay sessions
    Import(Box<ImportArgs>),
}

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// Format of the source
    #[arg(long, value_name = "FORMAT", value_parser = import_formats())]
    pub(crate) from: String,
    /// A file or a folder; of LangSmith also a project or the id of a run; of Langfuse also the id of a trace, or
    /// `latest`
    #[arg(value_name = "SOURCE")]
    pub(crate) source: String,
    /// Directory for the sessions
    #[arg(long, short, value_name = "DIR")]
    pub(crate) output: PathBuf,
    /// Suite whose `tools:` match the tools of the sessions
    #[arg(long = "suite", short = 'c', value_name = "FILE")]
    pub(crate) suite: Option<PathBuf>,
    /// API of LangSmith or Langfuse [default: `LANGSMITH_ENDPOINT` or `LANGFUSE_HOST`, else the public one]
    #[arg(long, value_name = "URL")]
    pub(crate) endpoint: Option<String>,
    /// How the traces of a project ended: error, warning (a part of a trace failed, and the trace did not) or all
    #[arg(long, default_value = "error", value_parser = ["error", "warning", "all"], hide_possible_values = true)]
    pub(crate) status: String,
    /// When the traces of a project began: `last_7_days`, `last_24_hours`, `7d`, or two times with a slash
    #[arg(long, value_name = "RANGE", value_parser = DateRange::parse)]
    pub(crate) date_range: Option<DateRange>,
    /// Maximum number of traces of a project
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) limit: usize,
    /// Configuration with `redact`, `allow` and `deny` [default: squall.yaml, if it exists]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Print one JSON document on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

fn import_formats() -> PossibleValuesParser {
    let names = ImportFormat::NAMES.iter().map(|(name, _)| *name);
    PossibleValuesParser::new(names)
}

#[derive(Debug, Args)]
pub(crate) struct RecordArgs {
    /// Only this scope; a program's traffic is put into it
    #[arg(long, value_parser = scope)]
    pub(crate) scope: Option<String>,
    /// Output file: FILE.har is an HTTP archive, any other file a replay session
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: PathBuf,
    #[command(flatten)]
    pub(crate) daemon: DaemonArgs,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
    /// Program and arguments, run behind a private daemon
    #[arg(last = true, value_name = "CMD")]
    pub(crate) command: Vec<std::ffi::OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// Id of the run
    #[arg(long, value_name = "RUN")]
    pub(crate) run: String,
    /// Directory for the sessions
    #[arg(long, short, value_name = "DIR")]
    pub(crate) output: PathBuf,
    #[command(flatten)]
    pub(crate) read: ReadArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RunsCommand {
    /// List runs, newest first
    List {
        /// Only runs in this state: `queued`, `awaiting_approval`, `running`, `passed`, `failed`, …
        #[arg(long, value_name = "STATE")]
        state: Option<String>,
        /// Maximum number of runs
        #[arg(long, value_name = "N", default_value_t = 20)]
        limit: usize,
        #[command(flatten)]
        read: ReadArgs,
    },
    /// Show the result, the cells and the evidence of a run
    Show {
        /// Id of the run
        run: String,
        #[command(flatten)]
        read: ReadArgs,
    },
    /// Follow a run from its beginning to its end
    ///
    /// Exits with 0 if the run passed, 1 if it failed, 4 if it is inconclusive, 3 if it errored or was cancelled.
    Watch {
        /// Id of the run
        run: String,
        #[command(flatten)]
        read: ReadArgs,
    },
    /// Compare two runs, and report what differs beyond chance
    ///
    /// A run is its id, the name of a suite for its newest finished run, or a report in JSON.
    Compare {
        /// The earlier run
        before: String,
        /// The later run
        after: String,
        /// Exit with 1 on a regression: a cell fails that did not in the earlier run, or the score is lower
        #[arg(long, value_name = "WHAT", value_parser = ["regression"])]
        fail_on: Option<String>,
        #[command(flatten)]
        read: ReadArgs,
    },
    /// Show the scores of a suite's runs over time, oldest first
    Trend {
        /// Name of the suite
        suite: String,
        /// Number of runs
        #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=1000))]
        last: u16,
        #[command(flatten)]
        read: ReadArgs,
    },
    /// Write the failed invocations of a run, one a line
    Export {
        /// Id of the run
        run: String,
        /// Format: jsonl (JSON Lines)
        #[arg(long, value_name = "FORMAT", default_value = "jsonl", value_parser = ["jsonl"], hide_possible_values = true)]
        format: String,
        /// Output file [default: stdout]
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
        #[command(flatten)]
        store: StoreArgs,
    },
    /// Approve a run that awaits approval
    Approve {
        /// Id of the run
        run: String,
        #[command(flatten)]
        remote: RemoteArgs,
    },
    /// Cancel a run; its chaos ends first
    Cancel {
        /// Id of the run
        run: String,
        #[command(flatten)]
        remote: RemoteArgs,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Create a token and print its secret, once
    ///
    /// As soon as a token exists, the API requires one. The first token must have the role admin.
    Create {
        /// Name of the token: 1 to 64 characters of a-z, A-Z, 0-9, `.`, `_` and `-`
        name: String,
        /// Role: viewer (reads), operator (also switches chaos and edits profiles) or admin (also manages tokens)
        #[arg(long, value_parser = ["viewer", "operator", "admin"], hide_possible_values = true)]
        role: String,
        /// Workspace of the token [default: the workspace of the token in use]
        #[arg(long, value_name = "NAME")]
        workspace: Option<String>,
    },
    /// List tokens, without their secrets
    List,
    /// Revoke a token; it stops working at once
    Revoke {
        /// Name of the token
        name: String,
        /// Workspace of the token [default: the workspace of the token in use]
        #[arg(long, value_name = "NAME")]
        workspace: Option<String>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SchemaKind {
    /// squall.yaml
    Config,
    /// A profile file
    Profile,
    /// A suite
    Suite,
    /// A replay session
    Replay,
    /// A report in JSON
    Report,
}
