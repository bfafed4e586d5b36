//! The commands that test an agent: their suite, their daemon, and how the run is made.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use squall_harness::runner::ConcurrencyRange;

use super::{StoreArgs, seed};
use crate::config::address;
use crate::failure::Failure;

/// Default suite file.
pub(crate) const DEFAULT_SUITE: &str = "suite.yaml";

/// The suite.
#[derive(Debug, Clone, Args)]
pub(crate) struct SuiteArgs {
    /// Suite file, YAML or JSON; `squall init` writes one
    #[arg(
        short = 'c',
        long = "suite",
        value_name = "FILE",
        default_value = DEFAULT_SUITE
    )]
    pub(crate) file: PathBuf,
}

/// The daemon of a run: a running one, or a private one for this command.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct SiteArgs {
    /// Control API of a running daemon [default: a running `squall serve` on the ports, or a private daemon]
    #[arg(long, value_name = "URL")]
    pub(crate) server: Option<String>,
    /// Token for the daemon of `--server`
    #[arg(long, value_name = "TOKEN")]
    pub(crate) token: Option<String>,
    /// Configuration of the private daemon [default: squall.yaml, if it exists]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Address of the private daemon's proxy [default: a free port; 127.0.0.1:7070 if the agent is running already]
    #[arg(long, value_name = "ADDR", value_parser = address)]
    pub(crate) proxy: Option<SocketAddr>,
    /// Address of the private daemon's control API [default: a free port; 127.0.0.1:7071 if the agent is running already]
    #[arg(long, value_name = "ADDR", value_parser = address)]
    pub(crate) api: Option<SocketAddr>,
}

/// How a run is made.
#[derive(Debug, Clone, Args)]
pub(crate) struct TrialArgs {
    #[command(flatten)]
    pub(crate) suite: SuiteArgs,
    /// Random seed; the same seed injects the same faults [default: the suite's, else 42]
    #[arg(
        long,
        value_name = "N",
        value_parser = seed,
        allow_negative_numbers = true
    )]
    pub(crate) seed: Option<u64>,
    /// Concurrent invocations of the agent, 1 to 100 [default: the suite's, else 10]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100))]
    pub(crate) concurrency: Option<u64>,
    /// Exit with 4 if a cell of a scenario with chaos was not exercised, unless the run failed
    #[arg(long)]
    pub(crate) strict: bool,
    /// Minimum score: 0 to 100, or a share up to 1 [default: the suite's, else none]
    #[arg(long, value_name = "X", value_parser = score)]
    pub(crate) min_score: Option<f64>,
    /// Number of repeats, 1 to 100; repeats show what is flaky [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100))]
    pub(crate) repeat: Option<u64>,
    /// Earlier run to compare with: its id, or its report in JSON
    #[arg(long, value_name = "RUN")]
    pub(crate) baseline: Option<String>,
    /// Also fail on a regression: a cell fails that did not in the baseline, or the score is lower
    #[arg(long, value_name = "WHAT", requires = "baseline", value_parser = ["regression"])]
    pub(crate) fail_on: Option<String>,
    /// Repeat failed invocations with fewer faults, to find the faults that are enough
    #[arg(long)]
    pub(crate) shrink: bool,
    /// Directory for reports [default: the suite's `output.path`, else ./reports]
    #[arg(long, short, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) site: SiteArgs,
    /// Print one JSON document on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ChaosArgs {
    /// Profile that replaces the suite's `chaos`: its name or its file
    #[arg(long, value_name = "NAME|FILE")]
    pub(crate) profile: Option<String>,
    #[command(flatten)]
    pub(crate) trial: TrialArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ReplayRunArgs {
    /// Replay sessions: files, or folders with .yaml, .yml and .json files [default: the suite's `replays.sessions`]
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Pass while the sessions still fail, and fail when one passes
    #[arg(long)]
    pub(crate) expect_failure: bool,
    /// Source of responses to model calls: recorded or live [default: the session's, else recorded if it has any]
    #[arg(long, value_name = "SOURCE", value_parser = ["recorded", "live"], hide_possible_values = true)]
    pub(crate) models: Option<String>,
    #[command(flatten)]
    pub(crate) trial: TrialArgs,
}

#[derive(Debug, Args)]
pub(crate) struct MutateArgs {
    /// Run the mutants under the suite's chaos
    #[arg(long)]
    pub(crate) chaos: bool,
    /// Also write the mutants to this file, for `mutations.corpus`
    #[arg(long, value_name = "FILE")]
    pub(crate) export: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) trial: TrialArgs,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ExploreArgs {
    #[command(subcommand)]
    pub(crate) action: Option<ExploreCommand>,
    /// Most invocations of the agent [default: 200]
    #[arg(long, value_name = "INVOCATIONS", value_parser = clap::value_parser!(u64).range(1..=14_000))]
    pub(crate) budget: Option<u64>,
    /// Continue the suite's last exploration, which was interrupted or had a smaller budget
    #[arg(long)]
    pub(crate) resume: bool,
    /// Of an application with state: number of episodes; each begins with a reset [default: 5]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(crate) episodes: Option<u64>,
    /// Of an application with state: actions of each episode [default: 15]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(crate) steps: Option<u64>,
    /// Of an application with state: share of actions that are drawn instead of chosen by what was learned, 0 to 1
    /// [default: 0.2]
    #[arg(long, value_name = "X", value_parser = share)]
    pub(crate) epsilon: Option<f64>,
    #[command(flatten)]
    pub(crate) trial: TrialArgs,
}

impl ExploreArgs {
    /// The seed of an exploration over actions.
    pub(crate) fn seed(&self) -> u64 {
        self.trial.seed.unwrap_or(42)
    }

    /// Rejects the options that have no effect on an exploration over actions, or over calls.
    pub(crate) fn check(&self, over_actions: bool) -> Result<(), Failure> {
        let (trial, site) = (&self.trial, &self.trial.site);
        let of_calls = [
            ("budget", self.budget.is_some()),
            ("resume", self.resume),
            ("concurrency", trial.concurrency.is_some()),
            ("strict", trial.strict),
            ("min-score", trial.min_score.is_some()),
            ("repeat", trial.repeat.is_some()),
            ("baseline", trial.baseline.is_some()),
            ("shrink", trial.shrink),
            ("server", site.server.is_some()),
            ("config", site.config.is_some()),
            ("proxy", site.proxy.is_some()),
            ("api", site.api.is_some()),
        ];
        let of_actions = [
            ("episodes", self.episodes.is_some()),
            ("steps", self.steps.is_some()),
            ("epsilon", self.epsilon.is_some()),
        ];
        let (other, whose, has) = if over_actions {
            (
                &of_calls[..],
                "the calls of an agent",
                "the suite has `explore`, which declares an application",
            )
        } else {
            (
                &of_actions[..],
                "the actions of an application",
                "the suite has no `explore`, which declares one",
            )
        };
        match other.iter().find(|(_, is_given)| *is_given) {
            None => Ok(()),
            Some((name, _)) => Err(Failure::Usage(format!(
                "--{name} is for explorations over {whose}, and {has}: leave it out"
            ))),
        }
    }

    /// The directory for episodes with an anomaly.
    pub(crate) fn episodes_directory(&self) -> &Path {
        let given = self.trial.output.as_deref();
        given.unwrap_or(Path::new("artifacts/episodes"))
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum ExploreCommand {
    /// Repeat an episode; exits with 1 if an anomaly of it persists
    Replay(ExploreReplayArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ExploreReplayArgs {
    /// An episode that `squall explore` wrote
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Suite file [default: the one that the episode names]
    #[arg(short = 'c', long, value_name = "FILE")]
    pub(crate) suite: Option<PathBuf>,
    /// Find the shortest sequence for each anomaly that persists, and write it beside the file
    #[arg(long)]
    pub(crate) shrink: bool,
    /// Print one JSON document on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

/// Parses a share.
fn share(text: &str) -> Result<f64, String> {
    let share = text.trim().parse::<f64>().ok();
    let share = share.filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "a share is a number from 0 to 1".to_owned())
}

#[derive(Debug, Args)]
pub(crate) struct LoadArgs {
    #[command(flatten)]
    pub(crate) suite: SuiteArgs,
    /// Concurrent invocations, from 1 to at most 64; doubled from level to level
    #[arg(long, value_name = "FIRST..LAST", default_value = "1..64", value_parser = concurrency)]
    pub(crate) concurrency: String,
    /// Invocations of each level, at least as many as run at once [default: twice as many, at least 10]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(crate) per_level: Option<u64>,
    /// Profile that replaces the suite's `chaos`: its name or its file
    #[arg(long, value_name = "NAME|FILE")]
    pub(crate) profile: Option<String>,
    /// Random seed; the same seed injects the same faults [default: the suite's, else 42]
    #[arg(long, value_name = "N", value_parser = seed, allow_negative_numbers = true)]
    pub(crate) seed: Option<u64>,
    /// The success below which the agent breaks, which then fails the run: 0 to 100, or a share up to 1 [default: the
    /// suite's; without one the agent breaks below 90, and the run passes]
    #[arg(long, value_name = "X", value_parser = score)]
    pub(crate) min_score: Option<f64>,
    /// Directory for reports [default: the suite's `output.path`, else ./reports]
    #[arg(long, short, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) site: SiteArgs,
    /// Print one JSON document on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

impl LoadArgs {
    /// The options that it has in common with other runs.
    pub(crate) fn trial(&self) -> TrialArgs {
        TrialArgs {
            suite: self.suite.clone(),
            seed: self.seed,
            concurrency: None,
            strict: false,
            min_score: self.min_score,
            repeat: None,
            baseline: None,
            fail_on: None,
            shrink: false,
            output: self.output.clone(),
            site: self.site.clone(),
            json: self.json,
        }
    }
}

/// Checks a range of concurrency.
fn concurrency(text: &str) -> Result<String, String> {
    text.parse::<ConcurrencyRange>().map(|_| text.to_owned())
}

#[derive(Debug, Args)]
pub(crate) struct ContractRunArgs {
    /// Share the scenarios among the daemons of the fleet that take the suite; they expand its variables
    #[arg(long)]
    pub(crate) spread: bool,
    #[command(flatten)]
    pub(crate) trial: TrialArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ContractCommand {
    /// Test every invariant in every scenario, and print the matrix
    Run(Box<ContractRunArgs>),
    /// Check a suite without running it; needs no daemon
    Validate {
        #[command(flatten)]
        suite: SuiteArgs,
        /// Print one JSON document on stdout
        #[arg(long)]
        json: bool,
    },
    /// Run the contract like `run`, and print only the score
    Score(Box<TrialArgs>),
}

#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    pub(crate) suite: SuiteArgs,
    #[command(flatten)]
    pub(crate) site: SiteArgs,
    /// Print one JSON document on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Id of the run, from `squall runs list`, or the file of a report in JSON
    pub(crate) run: String,
    /// Format: html (a page), json (all data), junit (XML for CI systems), markdown (a comment for a pull request) or
    /// jsonl (the failed invocations, one a line)
    #[arg(
        long,
        value_name = "FORMAT",
        default_value = "html",
        value_parser = ["html", "json", "junit", "markdown", "jsonl"],
        hide_possible_values = true
    )]
    pub(crate) format: String,
    /// Output file [default: stdout]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct CertificateArgs {
    #[command(subcommand)]
    pub(crate) action: Option<CertificateCommand>,
    /// Id of the run, from `squall runs list`
    #[arg(required = true)]
    pub(crate) run: Option<String>,
    /// Output file: FILE.html is a page, FILE.pdf a PDF; without an extension, the suite's
    /// `certificate.output_format` decides [default: certificate-RUN in that format]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Name of the tester [default: the suite's `certificate.tester_name`, else your user name]
    #[arg(long, value_name = "NAME")]
    pub(crate) tester: Option<String>,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CertificateCommand {
    /// Check the signature of a certificate; exits with 1 if the file is not a certificate or was changed
    Verify {
        /// The certificate
        file: PathBuf,
        /// Print one JSON document on stdout
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// The file to write
    #[arg(value_name = "FILE", default_value = DEFAULT_SUITE)]
    pub(crate) file: PathBuf,
    /// Overwrite an existing file
    #[arg(long)]
    pub(crate) force: bool,
    /// The agent: a program that reads a prompt on stdin and writes its answer to stdout
    #[arg(last = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

/// Parses a minimum score.
fn score(text: &str) -> Result<f64, String> {
    let score = text.trim().parse::<f64>().ok();
    score
        .filter(|score| (0.0..=100.0).contains(score))
        .ok_or_else(|| {
            "a score is a number from 0 to 100; above 0 and up to 1 it is a share, 0.9 is 90"
                .to_owned()
        })
}
