//! The command line. Every option has a variable `SQUALL_…`; the option overrides it.

mod judging;
mod objects;
mod programs;

use std::path::PathBuf;

use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

pub(crate) use self::judging::{
    CertificateArgs, CertificateCommand, ChaosArgs, ContractCommand, ContractRunArgs,
    DEFAULT_SUITE, ExploreArgs, ExploreCommand, ExploreReplayArgs, InitArgs, LoadArgs, MutateArgs,
    ReplayRunArgs, ReportArgs, SiteArgs, SuiteArgs, TrialArgs, VerifyArgs,
};
pub(crate) use self::objects::{
    AuditCommand, ExplainArgs, ExportArgs, ImportArgs, OffArgs, ProfileCommand, ReadArgs,
    RecordArgs, RecordingFormat, RecordingsCommand, ReplayCommand, RunsCommand, SchemaKind,
    StoreArgs, TailArgs, TapeCommand, TokenCommand,
};
pub(crate) use self::programs::{
    CaCommand, DaemonArgs, DemoAgentArgs, DemoArgs, EnvArgs, LogFormat, RunArgs, ServeArgs, Shell,
    ShopArgs,
};
use crate::failure::EXIT_CODES;
use crate::variables;

/// A chaos proxy for AI agents: injects failures between an agent and everything it depends on.
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
    /// Parses the command line; variables give the options that are not on it.
    pub(crate) fn read() -> Self {
        let matches = Self::with_variables().try_get_matches();
        let matches = matches.unwrap_or_else(|error| variables::named(error).exit());
        Self::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
    }

    /// The command line's description, for the parser, shell completions and man pages.
    pub(crate) fn with_variables() -> clap::Command {
        variables::given(Self::command())
    }
}

/// Parses a seed.
fn seed(text: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|_| format!("a seed is a whole number from 0 to {}", u64::MAX))
}

/// Parses the name of a scope.
fn scope(text: &str) -> Result<String, String> {
    if squall_proxy::is_scope_name(text) {
        return Ok(text.to_owned());
    }
    Err(format!(
        "`{text}` is not a valid scope name; use 1 to 128 characters of a-z, A-Z, 0-9, `.`, `_` and `-`; the first must not \
         be `.`, and the name must not look like a secret key"
    ))
}

/// Help text: first steps, and the exit codes.
fn after_help() -> String {
    let codes = EXIT_CODES.map(|(code, meaning)| format!("\n  {code:<10}{meaning}"));
    format!(
        "Start with `squall demo`; then `squall run --profile rate_limit_storm -- YOUR PROGRAM`.\n\n\
         Every option has an environment variable: `SQUALL_LOG_LEVEL` is `--log-level`.\n\n\
         Exit codes:{}",
        codes.concat()
    )
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a contract against a small agent with two tools and a simulated model
    ///
    /// Needs no network, no key and no configuration.
    Demo(DemoArgs),
    /// Run the daemon: the proxy and its control API
    Serve(ServeArgs),
    /// Run a program behind a private proxy
    ///
    /// The program gets the proxy and CA variables. Its input, output, signals and exit code pass
    /// through. A summary of exchanges and faults follows on stderr.
    Run(RunArgs),
    /// Print the variables that point a program at the proxy
    ///
    /// For bash: eval "$(squall env)"
    Env(EnvArgs),
    /// Show, export or rotate the interception CA
    Ca {
        #[command(subcommand)]
        action: CaCommand,
    },
    /// Show the active profile of each scope, and problems of the daemon
    Status(RemoteArgs),
    /// List the daemons that share the PostgreSQL of one, with their traffic and chaos
    Fleet(RemoteArgs),
    /// Print exchanges as they end
    Tail(TailArgs),
    /// Explain why each rule did or did not fire on one exchange
    Explain(ExplainArgs),
    /// End all chaos, or the chaos of one scope
    Off(OffArgs),
    /// Manage profiles: named sets of faults
    Profile {
        #[command(subcommand)]
        action: ProfileCommand,
    },
    /// List or verify the audit log
    Audit {
        #[command(subcommand)]
        action: AuditCommand,
        #[command(flatten)]
        remote: RemoteArgs,
    },
    /// Manage recordings of traffic
    Recordings {
        #[command(subcommand)]
        action: RecordingsCommand,
        #[command(flatten)]
        remote: RemoteArgs,
    },
    /// Play recorded responses instead of sending a scope's requests upstream
    Tape {
        #[command(subcommand)]
        action: TapeCommand,
        #[command(flatten)]
        remote: RemoteArgs,
    },
    /// Run, record, import and export replay sessions
    Replay {
        #[command(subcommand)]
        action: ReplayCommand,
    },
    /// Write a first suite, with the program after `--` as its agent
    Init(InitArgs),
    /// Check that the agent, its traffic and the judge model are ready for a run
    Verify(Box<VerifyArgs>),
    /// Run golden prompts under chaos and report chaos resilience
    Chaos(Box<ChaosArgs>),
    /// Run mutated golden prompts and requests, and report robustness
    Mutate(Box<MutateArgs>),
    /// Search for the faults on calls, or the actions of an application, that break it
    Explore(Box<ExploreArgs>),
    /// Run golden prompts under rising concurrency, and report where the agent breaks
    Load(Box<LoadArgs>),
    /// Run or check a contract: invariants that must hold in every scenario
    Contract {
        #[command(subcommand)]
        action: ContractCommand,
    },
    /// Run everything that a suite configures; write reports and one score
    Ci(Box<ChaosArgs>),
    /// Write the report of a run
    Report(Box<ReportArgs>),
    /// Write or verify a signed certificate of a run's result
    Certificate(Box<CertificateArgs>),
    /// List, show, follow, approve or cancel runs
    Runs {
        #[command(subcommand)]
        action: RunsCommand,
    },
    /// Manage the tokens of the control API
    Token {
        #[command(subcommand)]
        action: TokenCommand,
        #[command(flatten)]
        remote: RemoteArgs,
    },
    /// Print a JSON Schema, for editors
    Schema {
        /// The file that the schema describes
        #[arg(value_name = "KIND")]
        of: SchemaKind,
    },
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write man pages, one for each command
    Man {
        /// Directory for the pages
        directory: PathBuf,
    },
    /// The agent of the demo
    #[command(hide = true)]
    DemoAgent(DemoAgentArgs),
}

/// Default address of a daemon's control API.
pub(crate) const DEFAULT_SERVER: &str = "http://127.0.0.1:7071";

/// How to reach a running daemon.
#[derive(Debug, Clone, Args)]
pub(crate) struct RemoteArgs {
    /// Control API of the daemon
    #[arg(long, global = true, value_name = "URL", default_value = DEFAULT_SERVER)]
    pub(crate) server: String,
    /// Token, if the daemon requires one
    #[arg(long, global = true, value_name = "TOKEN")]
    pub(crate) token: Option<String>,
    /// Print one JSON document on stdout
    #[arg(long, global = true)]
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
        let names = command
            .get_subcommands()
            .map(|sub| sub.get_name().to_owned());
        for name in names.collect::<Vec<_>>() {
            let sub = command.find_subcommand_mut(name).expect("a command");
            pages.push(sub.render_long_help().to_string());
        }
        insta::assert_snapshot!(pages.join("\n---\n"));
    }
}
