//! The commands on what a running daemon has: profiles, exchanges, recordings, runs, tokens, its audit log.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use super::{Record, Remote, Site, scope, seed};
use crate::config::quantity;

#[derive(Debug, Args)]
pub(crate) struct Tail {
    /// Only this scope
    #[arg(long, value_parser = scope)]
    pub(crate) scope: Option<String>,
    /// Only exchanges that a fault was applied to
    #[arg(long)]
    pub(crate) faults: bool,
    #[command(flatten)]
    pub(crate) remote: Remote,
}

/// Where what is shown is read: a daemon, or this machine's configuration and store.
#[derive(Debug, Args)]
pub(crate) struct Reading {
    #[command(flatten)]
    pub(crate) site: Site,
    /// Print one JSON document on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// Id of the exchange, from `squall tail` or a report
    pub(crate) exchange: String,
    #[command(flatten)]
    pub(crate) reading: Reading,
}

#[derive(Debug, Args)]
pub(crate) struct Off {
    /// Only this scope
    #[arg(long, value_parser = scope)]
    pub(crate) scope: Option<String>,
    #[command(flatten)]
    pub(crate) remote: Remote,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Profile {
    /// List the daemon's profiles; without a daemon, those of this machine
    List(Reading),
    /// Print one profile; without a daemon, one of this machine
    Show {
        /// Its name or file
        name: String,
        #[command(flatten)]
        reading: Reading,
    },
    /// Check profile files; needs no daemon
    Validate {
        /// The files, YAML or JSON
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// The configuration whose tools and profiles are known; default: `squall.yaml`
        #[arg(short, long, value_name = "FILE")]
        config: Option<PathBuf>,
        /// Print one JSON document on stdout
        #[arg(long)]
        json: bool,
    },
    /// Put a profile in force
    Use {
        /// Its name, `none`, or a file, which is not stored
        name: String,
        /// For this scope; default: the default scope
        #[arg(long, value_parser = scope)]
        scope: Option<String>,
        /// What every draw hangs on
        #[arg(long, value_name = "N", value_parser = seed, allow_negative_numbers = true)]
        seed: Option<u64>,
        /// End it by itself after this time
        #[arg(long, value_name = "TIME", value_parser = quantity::duration)]
        ttl: Option<Duration>,
        #[command(flatten)]
        remote: Remote,
    },
    /// Give the daemon a profile, or a new version of one
    Put {
        /// The file, YAML or JSON
        file: PathBuf,
        /// Its name, if not the one in the file
        #[arg(long)]
        name: Option<String>,
        #[command(flatten)]
        remote: Remote,
    },
    /// Delete a profile that came by API
    Delete {
        /// Its name
        name: String,
        #[command(flatten)]
        remote: Remote,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Audit {
    /// Check that no entry was edited, taken out, put in or moved; exits with 1 if one was
    Verify {
        /// A hash that `verify` has printed before: check too that it is still in the chain
        #[arg(long, value_name = "HASH")]
        head: Option<String>,
        #[command(flatten)]
        remote: Remote,
    },
    /// Show who changed what, newest first
    List {
        /// Most entries
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=1000))]
        limit: u16,
        /// Only those of this token, or of `squall` for what happened by itself
        #[arg(long, value_name = "NAME")]
        actor: Option<String>,
        #[command(flatten)]
        remote: Remote,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Recordings {
    /// List recordings, newest first
    List(Remote),
    /// Record from now on, and print the recording's id
    Start {
        /// Only this scope
        #[arg(long, value_parser = scope)]
        scope: Option<String>,
        /// A title
        #[arg(long)]
        name: Option<String>,
        #[command(flatten)]
        remote: Remote,
    },
    /// End a recording
    Stop {
        /// Its id
        id: String,
        #[command(flatten)]
        remote: Remote,
    },
    /// Write a recording: FILE.har is an HTTP archive, any other a replay session
    Export {
        /// Its id
        id: String,
        /// Where to; default: stdout
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
        /// Its form; default: what the file's name says, on stdout `replay`
        #[arg(long, value_name = "FORM")]
        format: Option<Form>,
        #[command(flatten)]
        remote: Remote,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Tape {
    /// Answer a scope's requests from a replay session or a recording, from its beginning
    Play(Box<PlayTape>),
    /// Send a scope's requests upstream again, and print how many the tape answered
    Stop {
        /// For this scope; default: the default scope
        #[arg(long, value_parser = scope)]
        scope: Option<String>,
        #[command(flatten)]
        remote: Remote,
    },
}

#[derive(Debug, Args)]
pub(crate) struct PlayTape {
    /// The replay session, YAML or JSON
    #[arg(value_name = "FILE", required_unless_present_any = ["recording", "replay"])]
    pub(crate) file: Option<PathBuf>,
    /// A recording of the daemon, by its id, in the place of a file
    #[arg(long, value_name = "ID", conflicts_with_all = ["file", "replay"])]
    pub(crate) recording: Option<String>,
    /// A replay session that the daemon has, by its id, in the place of a file
    #[arg(long, value_name = "ID", conflicts_with = "file")]
    pub(crate) replay: Option<String>,
    /// For this scope; default: the default scope
    #[arg(long, value_parser = scope)]
    pub(crate) scope: Option<String>,
    /// What becomes of a request that is not on the tape [default: as the session says, else error]
    #[arg(long, value_name = "WHAT")]
    pub(crate) on_miss: Option<OnMiss>,
    /// What becomes of a request all of whose responses were given [default: as the session says, else error]
    #[arg(long, value_name = "WHAT")]
    pub(crate) on_exhausted: Option<OnMiss>,
    /// 0: responses come at once; 1: as they were recorded; 2: twice as fast
    #[arg(long, value_name = "X", default_value_t = 0.0)]
    pub(crate) speed: f64,
    #[command(flatten)]
    pub(crate) remote: Remote,
}

/// What becomes of a request that a tape has no response for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnMiss {
    /// It gets an error, and nothing goes upstream
    Error,
    /// It goes upstream
    Passthrough,
}

impl OnMiss {
    /// As the API has it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Passthrough => "passthrough",
        }
    }
}

/// A form of recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// A replay session, YAML
    Replay,
    /// An HTTP archive, HAR 1.2
    Har,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Replay {
    /// Record a program, or a running daemon until Ctrl-C
    Record(Box<Record>),
    /// Write every invocation that failed in a run, a session each
    Export(Box<Export>),
}

#[derive(Debug, Args)]
pub(crate) struct Export {
    /// Id of the run; where no daemon is named, of the store
    #[arg(long, value_name = "RUN")]
    pub(crate) run: String,
    /// Directory of the sessions
    #[arg(long, short, value_name = "DIR")]
    pub(crate) output: PathBuf,
    /// Print one JSON document on stdout
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) site: Site,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Runs {
    /// List runs, newest first; without a daemon, those in the store of this machine
    List {
        /// Only those in this state: `queued`, `awaiting_approval`, `running`, `passed`, `failed`, …
        #[arg(long, value_name = "STATE")]
        state: Option<String>,
        /// Most of them
        #[arg(long, value_name = "N", default_value_t = 20)]
        limit: usize,
        #[command(flatten)]
        reading: Reading,
    },
    /// Show what came of a run, and why; without a daemon, one in the store of this machine
    Show {
        /// Its id
        run: String,
        #[command(flatten)]
        reading: Reading,
    },
    /// Follow a run from its beginning to its end
    ///
    /// Ends with 0 if it passed, 1 if it failed, 4 if it proves nothing, 3 if it could not be carried out
    /// or was cancelled.
    Watch {
        /// Its id
        run: String,
        #[command(flatten)]
        remote: Remote,
    },
    /// Say yes to a run that waits for it
    Approve {
        /// Its id
        run: String,
        #[command(flatten)]
        remote: Remote,
    },
    /// End a run, its chaos first
    Cancel {
        /// Its id
        run: String,
        #[command(flatten)]
        remote: Remote,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Token {
    /// Make a token and print it, this once
    ///
    /// From the first token on the API asks everybody for one; the first must be an admin's.
    Create {
        /// Who it is for: 1 to 64 characters of a-z, A-Z, 0-9, `.`, `_` and `-`
        name: String,
        /// What it allows
        #[arg(long)]
        role: Role,
        /// The workspace it belongs to [default: that of the token this is asked with]
        #[arg(long, value_name = "NAME")]
        workspace: Option<String>,
        #[command(flatten)]
        remote: Remote,
    },
    /// List tokens, never their secrets
    List(Remote),
    /// Make a token good for nothing, at once
    Revoke {
        /// Its name
        name: String,
        /// The workspace it belongs to [default: that of the token this is asked with]
        #[arg(long, value_name = "NAME")]
        workspace: Option<String>,
        #[command(flatten)]
        remote: Remote,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Role {
    /// Read
    Viewer,
    /// Switch chaos, edit profiles
    Operator,
    /// Everything, tokens included
    Admin,
}

impl Role {
    /// As the API has it.
    pub(crate) fn as_str(self) -> &'static str {
        use squall_control_api::access::Role;
        match self {
            Self::Viewer => Role::Viewer,
            Self::Operator => Role::Operator,
            Self::Admin => Role::Admin,
        }
        .as_str()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SchemaOf {
    /// squall.yaml
    Config,
    /// A profile file
    Profile,
    /// A suite
    Suite,
    /// A replay session
    Replay,
    /// A report in JSON, as `squall report` reads it
    Report,
}
