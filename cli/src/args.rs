//! What may be written on the command line. Every flag has a variable `SQUALL_…`; the flag wins.

mod judging;
mod objects;
mod programs;

use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

pub(crate) use self::judging::{
    Certificate, CertificateAction, Chaos, Contract, DEFAULT_SUITE, Init, Report, Site, SuiteFile,
    Trial, Verify,
};
pub(crate) use self::objects::{
    Audit, Explain, Export, Form, Off, OnMiss, PlayTape, Profile, Reading, Recordings, Replay,
    Runs, SchemaOf, Tail, Tape, Token,
};
pub(crate) use self::programs::{
    Ca, Daemon, Demo, DemoAgent, Env, LogFormat, Record, Run, Serve, Shell,
};
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
        "`{text}` cannot be a scope; a scope is 1 to 128 characters of a-z, A-Z, 0-9, `.`, `_` and `-`, the first no `.`, and no key"
    ))
}

/// Where to begin, and what the exit codes mean.
fn after_help() -> String {
    let codes = EXIT_CODES.map(|(code, meaning)| format!("\n  {code:<10}{meaning}"));
    format!(
        "Start with `squall demo`; then `squall run --profile rate_limit_storm -- YOUR PROGRAM`.\n\n\
         Every option has a variable: `SQUALL_LOG_LEVEL` is `--log-level`.\n\n\
         Exit codes:{}",
        codes.concat()
    )
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a contract over a small agent with two tools and a simulated model
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
    /// Tapes: recorded responses in the place of a scope's upstreams
    Tape {
        #[command(subcommand)]
        action: Tape,
    },
    /// Replay sessions: incidents, recorded and written down
    Replay {
        #[command(subcommand)]
        action: Replay,
    },
    /// Write a suite to begin with, with `-- CMD` as its agent
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
    Ci(Box<Chaos>),
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

/// Where a daemon's control API is unless somebody says otherwise.
pub(crate) const USUAL_SERVER: &str = "http://127.0.0.1:7071";

/// How to reach a running daemon.
#[derive(Debug, Clone, Args)]
pub(crate) struct Remote {
    /// Control API of the daemon
    #[arg(
        long,
        value_name = "URL",
        default_value = USUAL_SERVER
    )]
    pub(crate) server: String,
    /// Token, where the daemon asks for one
    #[arg(long, value_name = "TOKEN")]
    pub(crate) token: Option<String>,
    /// Print one JSON document on stdout
    #[arg(long)]
    pub(crate) json: bool,
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
            "tape",
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
