//! What may be written on the command line. Every flag has a variable `SQUALL_…`; the flag wins.

mod judging;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum};

pub(crate) use self::judging::{
    Certificate, CertificateAction, Chaos, Ci, Contract, Init, Report, Site, SuiteFile, Trial,
    Verify,
};
use crate::config::{address, quantity};
use crate::failure::EXIT_CODES;
use crate::variables;

/// A chaos proxy for AI agents: failures on the wire between an agent and everything it depends on.
#[derive(Debug, Parser)]
#[command(
    name = "squall",
    version,
    max_term_width = 100,
    after_help = after_help()
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Arguments {
    /// What this program was started with: options, and variables for those that are not given.
    pub(crate) fn read() -> Self {
        let matches = variables::given(Self::command()).get_matches();
        Self::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
    }
}

/// Reads a seed.
fn seed(text: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|_| format!("a seed is a whole number from 0 to {}", u64::MAX))
}

/// Reads the name of a scope.
fn scope(text: &str) -> Result<String, String> {
    if squall_proxy::is_scope_name(text) {
        return Ok(text.to_owned());
    }
    Err(format!(
        "`{text}` cannot be a scope; a scope is 1 to 128 characters of a-z, A-Z, 0-9, `.`, `_` and `-`, the first no `.`"
    ))
}

/// Where to begin, and what the exit codes mean.
fn after_help() -> String {
    let codes = EXIT_CODES.map(|(code, meaning)| format!("\n  {code:<10}{meaning}"));
    format!(
        "Start with `squall demo`; then `squall run --profile rate_limit_storm -- YOUR PROGRAM`.\n\n\
         Exit codes:{}",
        codes.concat()
    )
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show Squall at work: two tools, a simulated model and a small agent, under six weathers
    ///
    /// Needs no network, no key and no configuration.
    Demo(Demo),
    /// Run the daemon: the proxy and its control API
    Serve(Serve),
    /// Run a program with all its traffic going through a private proxy
    ///
    /// The program gets the proxy and CA variables of its surroundings; its input, output, signals
    /// and exit code pass through. A summary of exchanges and faults follows on stderr.
    Run(Run),
    /// Print the variables that point any program at the proxy
    ///
    /// For bash: eval "$(squall env)"
    Env(Env),
    /// The interception CA
    Ca {
        #[command(subcommand)]
        action: Ca,
    },
    /// Show what is in force
    Status(Remote),
    /// Show exchanges as they happen
    Tail(Tail),
    /// Say why each rule did or did not fire on one exchange
    Explain(Explain),
    /// End all chaos at once, or one scope's
    Off(Off),
    /// Profiles: named sets of faults
    Profile {
        #[command(subcommand)]
        action: Profile,
    },
    /// The audit log: who changed what, and whether the log is whole
    Audit {
        #[command(subcommand)]
        action: Audit,
    },
    /// Recordings: traffic with heads and bodies, secrets taken out
    Recordings {
        #[command(subcommand)]
        action: Recordings,
    },
    /// Replay sessions: incidents, recorded and written down
    Replay {
        #[command(subcommand)]
        action: Replay,
    },
    /// Write a commented suite to begin with, and say what to do next
    Init(Init),
    /// Check everything that a run of a suite needs, and say how to put right what fails
    Verify(Box<Verify>),
    /// Ask an agent its golden prompts under chaos: how much of it does it stand?
    Chaos(Box<Chaos>),
    /// Contracts: what must hold, in every scenario of a matrix
    Contract {
        #[command(subcommand)]
        action: Contract,
    },
    /// Everything a suite configures: one score, reports, an exit code
    Ci(Box<Ci>),
    /// Write the report of a run
    Report(Box<Report>),
    /// Write a signed statement of what a run came to, or check one
    Certificate(Box<Certificate>),
    /// Runs: what agents were tried with, and what came of it
    Runs {
        #[command(subcommand)]
        action: Runs,
    },
    /// Tokens: who may use the control API
    Token {
        #[command(subcommand)]
        action: Token,
    },
    /// Print a JSON Schema, for editors
    Schema {
        /// Which file it describes
        of: SchemaOf,
    },
    /// The agent of the demo
    #[command(hide = true)]
    DemoAgent(DemoAgent),
}

/// How to reach a running daemon.
#[derive(Debug, Clone, Args)]
pub(crate) struct Remote {
    /// Control API of the daemon
    #[arg(
        long,
        value_name = "URL",
        env = "SQUALL_SERVER",
        default_value = "http://127.0.0.1:7071"
    )]
    pub(crate) server: String,
    /// Token, where the daemon asks for one
    #[arg(
        long,
        value_name = "TOKEN",
        env = "SQUALL_TOKEN",
        hide_env_values = true
    )]
    pub(crate) token: Option<String>,
    /// Print one JSON document on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Leave everything running afterwards, and say what to try
    #[arg(long)]
    pub(crate) keep: bool,
    /// What every draw hangs on
    #[arg(
        long,
        value_name = "N",
        env = "SQUALL_SEED",
        default_value_t = 6,
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
    /// Base URL of the model
    #[arg(long, default_value = "http://model.test")]
    pub(crate) model: String,
    /// Base URL of the flight search
    #[arg(long, default_value = "http://flights.test")]
    pub(crate) search: String,
    /// Base URL of the booking service
    #[arg(long, default_value = "http://booking.test")]
    pub(crate) booking: String,
    /// What to do; `-` reads it from stdin
    #[arg(default_value = crate::demo::TASK)]
    pub(crate) task: String,
}

#[derive(Debug, Args)]
pub(crate) struct Serve {
    #[command(flatten)]
    pub(crate) daemon: Daemon,
    /// Where state is kept: sqlite (in the home directory), sqlite:PATH or postgres://… [default: sqlite]
    #[arg(long, value_name = "URL", env = "SQUALL_STORE", hide_env_values = true)]
    pub(crate) store: Option<String>,
    /// Time that open exchanges get to finish after SIGTERM
    #[arg(long, value_name = "TIME", env = "SQUALL_GRACE", default_value = "10s", value_parser = quantity::duration)]
    pub(crate) grace: Duration,
    /// How much to log: error, warn, info, debug, trace, or per module as in `squall_proxy=debug`
    #[arg(
        long,
        value_name = "LEVEL",
        env = "SQUALL_LOG_LEVEL",
        default_value = "info"
    )]
    pub(crate) log_level: String,
    /// How to log
    #[arg(
        long,
        value_name = "FORMAT",
        env = "SQUALL_LOG_FORMAT",
        default_value = "text"
    )]
    pub(crate) log_format: LogFormat,
}

/// What `serve` and `run` say about the daemon they start.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Daemon {
    /// Configuration file [default: squall.yaml, if it is there]
    #[arg(short, long, value_name = "FILE", env = "SQUALL_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// Address of the proxy; port 0 takes a free one
    #[arg(long, value_name = "ADDR", env = "SQUALL_PROXY", value_parser = address)]
    pub(crate) proxy: Option<SocketAddr>,
    /// Address of the control API; port 0 takes a free one
    #[arg(long, value_name = "ADDR", env = "SQUALL_API", value_parser = address)]
    pub(crate) api: Option<SocketAddr>,
    /// Profile in force from the start, for the default scope
    #[arg(long, value_name = "NAME", env = "SQUALL_PROFILE")]
    pub(crate) profile: Option<String>,
    /// What every draw hangs on [default: 42]
    #[arg(
        long,
        value_name = "N",
        env = "SQUALL_SEED",
        value_parser = seed,
        allow_negative_numbers = true
    )]
    pub(crate) seed: Option<u64>,
    /// Threads that carry traffic [default: one per core]
    #[arg(long, value_name = "N", env = "SQUALL_WORKERS", value_parser = clap::value_parser!(u16).range(1..=1024))]
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
    #[arg(long, value_name = "FILE", env = "SQUALL_RECORD")]
    pub(crate) record: Option<PathBuf>,
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

#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// Id of the exchange, from `squall tail`
    pub(crate) exchange: String,
    #[command(flatten)]
    pub(crate) remote: Remote,
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
    /// List the daemon's profiles
    List(Remote),
    /// Print one profile
    Show {
        /// Its name
        name: String,
        #[command(flatten)]
        remote: Remote,
    },
    /// Check profile files; needs no daemon
    Validate {
        /// The files, YAML or JSON
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// Print one JSON document on stdout
        #[arg(long)]
        json: bool,
    },
    /// Put a profile in force
    Use {
        /// Its name, or `none`
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
        /// Where to; default: the replay session to stdout
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
        #[command(flatten)]
        remote: Remote,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Replay {
    /// Record a program, or a running daemon until Ctrl-C
    Record(Box<Record>),
    /// Write a recording of the daemon as a session
    Export {
        /// Id of the recording, from `squall recordings list`
        id: String,
        /// Where to: FILE.har is an HTTP archive, any other a replay session
        #[arg(long, short, value_name = "FILE")]
        output: PathBuf,
        #[command(flatten)]
        remote: Remote,
    },
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

#[derive(Debug, Subcommand)]
pub(crate) enum Runs {
    /// List runs, newest first
    List {
        /// Only those in this state: `queued`, `awaiting_approval`, `running`, `passed`, `failed`, …
        #[arg(long, value_name = "STATE")]
        state: Option<String>,
        /// Most of them
        #[arg(long, value_name = "N", default_value_t = 20)]
        limit: usize,
        #[command(flatten)]
        remote: Remote,
    },
    /// Show what came of a run, and why
    Show {
        /// Its id
        run: String,
        #[command(flatten)]
        remote: Remote,
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
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, ValueEnum};

    use super::{Arguments, Shell};

    #[test]
    fn the_command_line_makes_sense() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn zsh_gets_what_bash_gets() {
        for shell in ["bash", "zsh", "sh"] {
            assert_eq!(Shell::from_str(shell, false), Ok(Shell::Bash), "{shell}");
        }
    }

    #[test]
    fn help_reads_well() {
        let mut command = Arguments::command()
            .term_width(100)
            .mut_args(|arg| arg.hide_env(true));
        command.build();
        let mut pages = vec![command.render_long_help().to_string()];
        for name in [
            "demo",
            "serve",
            "run",
            "env",
            "ca",
            "tail",
            "profile",
            "recordings",
            "replay",
            "chaos",
            "contract",
            "ci",
            "init",
            "verify",
            "report",
            "certificate",
            "token",
        ] {
            let sub = command.find_subcommand_mut(name).expect(name);
            pages.push(sub.render_long_help().to_string());
        }
        insta::assert_snapshot!(pages.join("\n---\n"));
    }
}
